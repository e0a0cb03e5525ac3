-- The training step: layouts, gradients of the whole step, backends, learning.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local presets = require "tilelab.model.presets"
local step = require "tilelab.model.step"
local texts = require "tilelab.model.text"

local device = lab.device "cpu"

-- A layout small enough for finite differences.
local function small(overrides)
  local config = assert(presets.config("tiny", {
    d_model = 16, ffn = 24, heads = 2, kv_heads = 1, head_dim = 8, experts = 4, top_k = 2,
    expert_ffn = 8, shared_ffn = 8, layers = 2, vocabulary = 256, sequence = 6, micro_batch = 2,
    update_frequency = 1 }))
  for key, value in pairs(overrides or {}) do config[key] = value end
  return config
end

-- Eight fixed sequences in turn: something that can be learnt by heart.
local function fixed_text(length, count)
  local tokens = lab.tensor { device = device, dtype = "i32", shape = { count * (length + 1) } }
  local random, values = lab.random(7, 7), {}
  for i = 1, tokens.numel do values[i] = random:below(256) end
  tokens:assign(values)
  return { sequence = function(_, ids, targets, n, _, index)
    local start = index % count * (length + 1)
    ids:copy(tokens:view(start, { n }))
    targets:copy(tokens:view(start + 1, { n }))
  end }
end

local function build(config, options)
  options = options or {}
  return assert(step.build { device = device, config = config, backend = options.backend or "rapidgemm",
    seed = options.seed or 3, routing = options.routing, precision = options.precision })
end

-- Forward and backward of one micro-batch; returns the objective that the gradients belong to.
local function evaluate(model)
  for _, tensor in ipairs { model.loss, model.aux, model.parameters.accumulated } do tensor:fill(0) end
  for _, gradient in ipairs(model.zeroed) do gradient:fill(0) end
  for _, entry in ipairs(model.first) do entry.plan:launch() end
  return model.loss:get(1) + model.aux:get(1)
end

-- The largest error of the step's gradients against central differences, over `count` elements of
-- each parameter, relative to the largest gradient of that parameter.
local function gradient_error(config, options, count)
  options.precision = "fp64"
  local model, worst, where = build(config, options), 0, "-"
  fixed_text(config.sequence, 8):sequence(model.ids:view(0, { config.sequence }),
    model.targets:view(0, { config.sequence }), config.sequence, 0, 0)
  for i = 1, config.micro_batch - 1 do
    fixed_text(config.sequence, 8):sequence(model.ids:view(i * config.sequence, { config.sequence }),
      model.targets:view(i * config.sequence, { config.sequence }), config.sequence, 0, i)
  end
  if model.routing then model.routing:load(0) end
  local random = lab.random(11, 1)
  for name, gradient in pairs(model.parameters.gradient) do
    local value = model.parameters.value[name]
    local flat_value, flat_gradient = value:view(0, { value.numel }), gradient:view(0, { value.numel })
    evaluate(model)
    local analytic, largest, picks = flat_gradient:totable(), 0, {}
    for i = 1, #analytic do largest = math.max(largest, math.abs(analytic[i])) end
    for i = 1, count do picks[i] = random:below(value.numel) + 1 end
    for _, i in ipairs(picks) do
      local kept, h = flat_value:get(i), 1e-6
      flat_value:set(kept + h, i)
      local above = evaluate(model)
      flat_value:set(kept - h, i)
      local below = evaluate(model)
      flat_value:set(kept, i)
      local off = math.abs((above - below) / (2 * h) - analytic[i]) / math.max(largest, 1e-8)
      if not (off <= worst) then worst, where = off, name end
    end
  end
  return worst, where
end

do -- layouts
  local config = presets.config("30b-a3b")
  for field, value in pairs { d_model = 3072, ffn = 9216, heads = 24, kv_heads = 4, head_dim = 128,
    experts = 128, top_k = 8, expert_ffn = 1280, shared_ffn = 1280, layers = 20, sequence = 4096,
    micro_batch = 1, update_frequency = 4, vocabulary = 65536, learning_rate = 2e-4 } do
    t.is(config[field], value, "30b-a3b has the published " .. field)
  end
  config = presets.config("tiny")
  for _, field in ipairs { "d_model", "ffn", "head_dim", "expert_ffn", "shared_ffn" } do
    t.is(config[field] % 8, 0, "tiny: " .. field .. " is a multiple of 8")
  end
  t.is(config.ffn * 3072, 9216 * config.d_model, "tiny keeps ffn : d_model")
  t.is(config.expert_ffn * 3072, 1280 * config.d_model, "tiny keeps expert_ffn : d_model")
  t.is(config.heads * config.head_dim, config.d_model, "tiny keeps heads x head_dim = d_model")
  local _, message = presets.config("huge")
  t.like(message, "unknown model 'huge'; models are 30b%-a3b, tiny", "an unknown model is named")
  _, message = presets.config("tiny", { colour = 3 })
  t.like(message, "no field 'colour'", "an unknown field is named")
  _, message = presets.config("tiny", { top_k = 9 })
  t.like(message, "top_k = 9 is more than experts = 8", "widths that do not fit are named")
end

do -- gradients of the whole step, auxiliary loss included
  local cases = {
    { "moe, routing model", small(), {} },
    { "moe, routing multinomial", small(), { routing = "multinomial" } },
    { "moe, deepgemm", small(), { backend = "deepgemm", routing = "zipf" } },
    { "moe, deepgemm_copy", small(), { backend = "deepgemm_copy", routing = "zipf" } },
    { "a dense layer first", small { dense_layers = 1 }, {} },
    { "no layers", small { layers = 0 }, {} },
  }
  for _, case in ipairs(cases) do
    local worst, where = gradient_error(case[2], case[3], 4)
    t.ok(worst < 1e-5, ("%s: gradients agree with differences (%.1e, %s)"):format(case[1], worst, where))
  end
end

do -- backends and routing change no loss
  for _, routing in ipairs { "model", "multinomial", "zipf" } do
    local losses = {}
    for _, backend in ipairs { "rapidgemm", "deepgemm", "deepgemm_copy" } do
      local model = build(presets.config("tiny", { layers = 2, sequence = 40, update_frequency = 2 }),
        { backend = backend, routing = routing })
      local text, list = fixed_text(40, 8), {}
      for i = 1, 3 do list[i] = ("%.17g"):format(model:update(text)) end
      losses[#losses + 1] = table.concat(list, " ")
    end
    t.is(losses[1], losses[2], "both backends give the same losses, routing " .. routing)
    t.is(losses[1], losses[3], "padding with copies too")
  end
end

do -- gradient accumulation: two micro-batches of one sequence are one of two
  local once = build(small { layers = 1, update_frequency = 2, micro_batch = 1 }, { precision = "fp64" })
  local split = build(small { layers = 1, update_frequency = 1, micro_batch = 2 }, { precision = "fp64" })
  once.config.aux_coefficient, split.config.aux_coefficient = 0, 0
  local text = fixed_text(6, 8)
  local a, b = once:update(text), split:update(text)
  t.ok(math.abs(a - b) < 1e-12, "accumulated micro-batches give the loss of one large one")
end

do -- load of the experts
  local model = build(small { update_frequency = 2 }, { routing = "multinomial" })
  model:update(fixed_text(6, 8))
  local fullest, empty, layers = 0, 0, 0
  for _, entry in ipairs(model.routing.layers) do -- the last micro-batch's draw stays in place
    local rows = { 0, 0, 0, 0 }
    for _, expert in ipairs(entry.current:totable()) do rows[expert + 1] = rows[expert + 1] + 1 end
    fullest, layers = fullest + math.max(table.unpack(rows)) / 6, layers + 1 -- 12 tokens, two of four experts each
    for _, count in ipairs(rows) do empty = empty + (count == 0 and 1 or 0) end
  end
  local found_fullest, found_empty = model:expert_load()
  t.ok(math.abs(found_fullest - fullest / layers) < 1e-12 and found_empty == empty / layers,
    "expert_load is what the draw says")
  t.is(build(small { layers = 0 }):expert_load(), nil, "and nothing without experts")
end

do -- learning
  local config = { layers = 1, sequence = 32, micro_batch = 4, update_frequency = 2, learning_rate = 5e-3,
    weight_decay = 0 }
  local function train(overrides, updates)
    local merged = {}
    for key, value in pairs(config) do merged[key] = value end
    for key, value in pairs(overrides) do merged[key] = value end
    local model, text, loss = build(presets.config("tiny", merged), {}), fixed_text(32, 8), nil
    for _ = 1, updates do loss = model:update(text) end
    return loss
  end
  local loss = train({}, 150)
  t.ok(loss < 0.1, ("tiny memorises 8 sequences (loss %.4f)"):format(loss))
  local bigram = train({ layers = 0 }, 150)
  t.ok(loss < 0.5 * bigram, ("a layer beats embedding and head alone (%.4f against %.4f)"):format(loss, bigram))
end

-- A GPU that is never launched on.
local function gpu() return { name = "cuda:0", arch = 90 } end

do -- float types
  local precision = require "tilelab.model.precision"
  local types = precision.types("bf16", "cuda")
  t.is(types[precision.class "qkv"], "bf16", "bf16: activations")
  t.is(types[precision.class "expert_dz"], "bf16", "bf16: rows of experts")
  for _, name in ipairs { "lse", "rstd", "probs", "weights", "dweights", "loss", "norm_squared" } do
    t.is(types[precision.class(name)], "fp32", "bf16: " .. name .. " stays in fp32")
  end
  types = precision.types("fp32", "cuda")
  t.is(types[precision.class "qkv"] .. types[precision.class "expert_x"], "fp32bf16", "fp32 on a GPU: experts in bf16")
  types = precision.types("fp32", "cpu")
  t.is(types[precision.class "qkv"] .. types[precision.class "expert_x"], "fp32fp32", "fp32 on the CPU")
  local none, message = precision.types("bf16", "cpu")
  t.ok(none == nil and message == "the CPU trains in fp32", "bf16 on the CPU is refused")
  none, message = precision.types("fp64", "cuda")
  t.ok(none == nil and message == "a GPU trains in bf16 or fp32", "fp64 on a GPU too")
  t.error(function() precision.class "qvk" end, "'qvk' has no class", "a buffer without a class is named")
end

-- What a step plans on a GPU: the arguments of every plan. options as step.bytes has them.
local function planned(options)
  local memory, backends = require "tilelab.model.memory", require "tilelab.model.backends"
  local counter, seen = memory.counter, {}
  memory.counter = function(Builder) -- luacheck: ignore 122
    local Counter = counter(Builder)
    function Counter:plan(_, operation, arguments)
      arguments.op, arguments.variant = operation, backends.variant(self.backend, operation, self.device.name)
      seen[#seen + 1] = arguments
      return {}
    end
    return Counter
  end
  options.device, options.seed = gpu(), 1
  assert(step.bytes(options))
  memory.counter = counter -- luacheck: ignore 122
  return seen
end

do -- what is planned on a GPU, and of which types
  local seen = planned { config = presets.config("tiny", { layers = 2, dense_layers = 1 }), backend = "deepgemm",
    precision = "bf16", routing = "zipf" }
  local specs, wrong, variants, grouped = {}, {}, {}, {}
  for _, operation in ipairs(lab.operations()) do specs[operation.name] = operation end
  for _, plan_of in ipairs(seen) do
    variants[plan_of.op] = plan_of.variant
    for _, arg in ipairs(specs[plan_of.op].args) do
      local tensor = plan_of[arg.name]
      if not tensor and not arg.optional then wrong[#wrong + 1] = plan_of.op .. "." .. arg.name end
    end
    if plan_of.op == "gemm" then
      local d = plan_of.layout == "tn" and "fp32" or nil -- weight gradients
      if plan_of.a.dtype ~= "bf16" or plan_of.b.dtype ~= "bf16" or d and plan_of.d.dtype ~= d then
        wrong[#wrong + 1] = "gemm"
      end
    elseif plan_of.op:find "grouped" then
      grouped[#grouped + 1] = plan_of
    end
  end
  t.is(table.concat(wrong, " "), "", "bf16: every argument is there, every GEMM takes bf16")
  for _, plan_of in ipairs(grouped) do
    local weights = plan_of.op == "k_grouped_gemm"
    t.is(plan_of.a.dtype .. plan_of.b.dtype .. plan_of.d.dtype, "bf16bf16" .. (weights and "fp32" or "bf16"),
      plan_of.op)
    t.ok(not weights or plan_of.counts_host and plan_of.beta == 1, "counts on the host, and sums that are added")
  end
  t.is(("%s %s %s"):format(variants.gemm, variants.k_grouped_gemm, variants.adamw),
    "cublaslt_dense sm90_padded smxx_vec16", "their variants")
end

do -- on a GPU, outputs lie on other arguments only where the operation allows it
  local memory = require "tilelab.model.memory"
  local Counted = getmetatable(setmetatable({}, memory.counter {}):allocate("any", "fp32", { 1 }))
  local view = Counted.view
  function Counted:view(first, shape) -- luacheck: ignore 122
    local part = view(self, first, shape)
    part.root, part.first = self.root or self, (self.first or 0) + first
    return part
  end
  local function overlap(a, b)
    local first_a, first_b = a.first or 0, b.first or 0
    return (a.root or a) == (b.root or b) and first_a < first_b + b.numel and first_b < first_a + a.numel
  end
  local function shared_of(spec, plan_of, found)
    for _, out in ipairs(spec.args) do
      for _, other in ipairs(spec.args) do
        local a, b = plan_of[out.name], plan_of[other.name]
        if out.role ~= "in" and out ~= other and a and b and overlap(a, b) then
          local whole = a.numel == b.numel and a.dtype == b.dtype
          found[("%s %s/%s%s"):format(spec.name, out.name, other.name, whole and "" or " in part")] = true
        end
      end
    end
  end
  local specs, found, list = {}, {}, {}
  for _, operation in ipairs(lab.operations()) do specs[operation.name] = operation end
  for _, backend in ipairs { "rapidgemm", "deepgemm", "deepgemm_copy" } do
    for _, name in ipairs { "bf16", "fp32" } do
      local choice = { attention = "cudnn_sdpa", attention_backward = "cudnn_ordered", converts = name == "fp32" }
      for _, plan_of in ipairs(planned { config = presets.config("tiny", { layers = 2, dense_layers = 1 }),
        backend = backend, precision = name, attention = choice }) do
        shared_of(specs[plan_of.op], plan_of, found)
      end
    end
  end
  Counted.view = view
  for pair in pairs(found) do list[#list + 1] = pair end
  table.sort(list)
  t.is(table.concat(list, ", "), "cross_entropy_backward dlogits/logits, rmsnorm_backward dx/dsum",
    "what lies on another argument of its launch may do so")
end

do -- attention of cuDNN beside fp32 activations
  local choice = { attention = "cudnn_sdpa", attention_backward = "cudnn_ordered", converts = true }
  local config, converted, types = presets.config("tiny", { layers = 2 }), {}, {}
  local function plans(name)
    return planned { config = config, backend = "rapidgemm", precision = name, attention = choice }
  end
  for _, plan_of in ipairs(plans "fp32") do
    if plan_of.op == "convert" then
      converted[#converted + 1] = plan_of.x.dtype .. ">" .. plan_of.y.dtype
    elseif plan_of.op:find "^attention" then
      for _, name in ipairs { "qkv", "o", "dout", "dqkv" } do
        local tensor = plan_of[name]
        if tensor then types[#types + 1] = tensor.dtype .. #tensor.shape end
      end
      types[#types + 1] = plan_of.lse.dtype
    elseif plan_of.op == "rope" then
      types[#types + 1] = plan_of.qkv.dtype
    end
  end
  local layer_in, layer_out = "fp32>bf16 bf16>fp32", "fp32>bf16 bf16>fp32"
  t.is(table.concat(converted, " "), table.concat({ layer_in, layer_in, layer_out, layer_out }, " "),
    "qkv and dout go in as bf16, o and dqkv come out as fp32")
  t.is(table.concat(types, " "), ("fp32 bf164 bf164 fp32 "):rep(2)
    .. ("bf164 bf164 bf164 bf164 fp32 fp32 "):rep(2):sub(1, -2), "and only they")
  choice.converts = false
  for _, plan_of in ipairs(plans "bf16") do
    if plan_of.op == "convert" then types = "converted" end
  end
  t.ok(types ~= "converted", "nothing is converted in bf16")
end

do -- what the machine refuses
  local plan = lab.plan
  for code, said in pairs { illegal = "moe fprop: no library", memory = "moe fprop, workspace: no library" } do
    function lab.plan(args) -- luacheck: ignore
      if args.op == "m_grouped_gemm" then return nil, "no library", code end
      return plan(args)
    end
    local ok, model, message = pcall(step.build, { device = device, backend = "rapidgemm", seed = 1,
      config = presets.config("tiny", { layers = 1, sequence = 16 }) })
    t.ok(ok and model == nil, code .. ": no model, and no defect")
    t.is(message, said, "but what was refused, and where")
  end
  lab.plan = plan -- luacheck: ignore
end

do -- memory
  local memory = require "tilelab.model.memory"
  local config = presets.config("tiny", { layers = 2 })
  local model = build(config, {})
  local held = model.parameters.flat.value.bytes
  local bytes = step.bytes { device = device, config = config, backend = "rapidgemm", seed = 3 }
  t.is(bytes.parameters, held, "parameters are counted as they are allocated")
  t.is(bytes.states, 2 * held, "the states of AdamW too")
  t.is(bytes.copies, nil, "the CPU in fp32 has no working copies")
  local on_gpu = step.bytes { device = gpu(), config = presets.config("30b-a3b", { layers = 2, micro_batch = 4 }),
    backend = "rapidgemm", seed = 3, precision = "bf16" }
  t.ok(on_gpu.total > 70e9 and on_gpu.total < 85e9, "30b-a3b, two layers: " .. memory.text(on_gpu))
  local sum = 0
  for _, part in ipairs(memory.parts) do sum = sum + on_gpu[part] end
  t.is(sum, on_gpu.total, "the parts add up")
end

do -- whose attention
  local attention, precision = require "tilelab.model.attention", require "tilelab.model.precision"
  local config = presets.config("30b-a3b", { micro_batch = 4 })
  local choice = attention.choose { device = device, config = config, types = precision.types("fp32", "cpu") }
  t.is(attention.name(choice), "cpu_plain", "the CPU has its own attention")
  local none, message = attention.choose { device = device, config = config,
    types = precision.types("fp32", "cpu"), library = "cudnn" }
  t.ok(none == nil and message == "cuDNN needs a GPU", "cuDNN on the CPU is refused")
  choice = attention.choose { device = gpu(), config = config,
    types = precision.types("bf16", "cuda"), library = "plain" }
  t.is(attention.name(choice), "smxx_plain", "a GPU's own, where it is asked for")
  t.like(choice.reason, "asked for", "which is why")
  local tensor = lab.tensor
  lab.tensor = function() return nil, "12 GiB do not fit", "memory" end -- luacheck: ignore 122
  none, message = attention.choose { device = gpu(), config = config, types = precision.types("bf16", "cuda") }
  lab.tensor = tensor -- luacheck: ignore 122
  t.ok(none == nil and message == "12 GiB do not fit", "a full GPU is no reason for a slower attention")
  choice = { attention = "cudnn_sdpa", attention_backward = "cudnn_ordered" }
  t.is(attention.name(choice), "cudnn_sdpa, cudnn_ordered", "cuDNN's are two")
  local ordered = attention.workspace(choice, "attention_backward", config)
  choice.attention_backward = "cudnn_sdpa"
  t.ok(math.abs(ordered / 3424.1e6 - 1) < 1e-3
    and math.abs(attention.workspace(choice, "attention_backward", config) / 404.2e6 - 1) < 1e-3,
    "workspace is what cuDNN 9.19 asks for")
end

do -- which devices it runs on
  local backends = require "tilelab.model.backends"
  t.ok(backends.supported("cpu", backends.names()), "the CPU has every operation")
  local complete, missing = backends.supported("abacus:0", { "rapidgemm" })
  t.ok(not complete and missing:find("gemm, m_grouped_gemm, .*adamw"), "a device without kernels lacks them all")
end

do -- text
  local text = assert(texts.load(nil, device, 256, 64))
  t.like(text.sha256, "^%x+$", "the text's hash is known")
  local path = t.write(os.tmpname(), "ABCDE")
  text = assert(texts.load(path, device, 65536, 1))
  t.is(table.concat(text.tokens:totable(), " "), "16706 17220", "two bytes a token, the first one high")
  t.is(text.name, path:match "[^/]+$", "a text is known by the name of its file, wherever that lies")
  local none, message = texts.load(path, device, 256, 64)
  t.is(none, nil, "a short text is refused")
  t.like(message, "holds 5 tokens; one sequence needs 65", "with both numbers")
  os.remove(path)
  none, message = texts.load(path, device, 256, 64)
  t.ok(none == nil and message:find(path, 1, true), "a missing text is named")
  none, message = texts.load("/dev/zero", device, 256, 64)
  t.ok(none == nil and message == "text /dev/zero: not a regular file", "so is one that never ends")
end

t.done()
