-- The training step on the GPU: losses of ten updates of `tiny` against the CPU in fp32, for each
-- precision, backend and attention; the same bits from run to run, from graphs or not; and what the
-- backends share.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local attention = require "tilelab.model.attention"
local backends = require "tilelab.model.backends"
local precisions = require "tilelab.model.precision"
local presets = require "tilelab.model.presets"
local step = require "tilelab.model.step"
local texts = require "tilelab.model.text"

local UPDATES, TOLERANCE = 10, 2e-2
local cpu, gpu = lab.device "cpu", lab.device "cuda"

-- The losses of a run. `overrides` of the layout, `options` of step.build.
local function losses(device, backend, precision, routing, overrides, options)
  local config = assert(presets.config("tiny", overrides or { layers = 2 }))
  local text = lab.check(texts.load(nil, device, config.vocabulary, config.sequence))
  local settings = { device = device, config = config, backend = backend, seed = 3, routing = routing,
    precision = precision }
  for name, value in pairs(options or {}) do settings[name] = value end
  local model = assert(step.build(settings))
  local list = {}
  for i = 1, UPDATES do list[i] = model:update(text) end
  return list, model
end

local function worst_of(list, reference)
  local worst = 0
  for i, value in ipairs(reference) do
    local off = math.abs(list[i] - value) / value
    if not (off <= worst) then worst = off end
  end
  return worst
end

local function bits(list)
  local text = {}
  for i, value in ipairs(list) do text[i] = ("%.17g"):format(value) end
  return table.concat(text, " ")
end

local complete, missing = backends.supported(gpu.name, backends.names())
t.ok(complete, "every operation of the step has a kernel here" .. (complete and "" or ": no " .. missing))
if not complete then t.done() return end

for _, routing in ipairs { "model", "multinomial" } do
  local reference = losses(cpu, "rapidgemm", "fp32", routing)
  for _, precision in ipairs { "fp32", "bf16" } do
    for _, backend in ipairs(backends.names()) do
      local name = ("%s, %s, routing %s"):format(precision, backend, routing)
      local first = losses(gpu, backend, precision, routing)
      local worst = worst_of(first, reference)
      t.ok(worst <= TOLERANCE, ("%s: losses are the CPU's (%.1e)"):format(name, worst))
      t.is(bits(losses(gpu, backend, precision, routing)), bits(first), name .. ": the same bits again")
    end
  end
end

do -- whose attention
  local reference = losses(cpu, "rapidgemm", "fp32", "model")
  local config = assert(presets.config("tiny", { layers = 2 }))
  local function choose(precision, library, deterministic)
    return attention.choose { device = gpu, config = config, types = precisions.types(precision, "cuda"),
      library = library, deterministic = deterministic }
  end
  for _, precision in ipairs { "bf16", "fp32" } do
    local own = choose(precision)
    if own.reason then
      t.skip(("%s: attention of cuDNN: %s"):format(precision, own.reason), 2)
    else
      t.is(attention.name(own), "cudnn_sdpa, cudnn_ordered", precision .. ": cuDNN's attention, deterministic")
      t.is(own.converts, precision == "fp32", precision .. ": converted where activations are of another type")
    end
    for _, choice in ipairs { choose(precision, "plain"), choose(precision, nil, false) } do
      local worst = worst_of(losses(gpu, "rapidgemm", precision, "model", nil, { attention = choice }), reference)
      t.ok(worst <= TOLERANCE, ("%s, attention %s: losses are the CPU's (%.1e)"):format(precision,
        attention.name(choice), worst))
    end
  end
end

do -- graphs
  for _, precision in ipairs { "bf16", "fp32" } do
    local replayed, model = losses(gpu, "rapidgemm", precision, "multinomial")
    t.ok(model.graphs, precision .. ": an update is replayed from graphs " .. (model.note or ""))
    local launched, plain = losses(gpu, "rapidgemm", precision, "multinomial", nil, { graphs = false })
    t.ok(not plain.graphs and bits(replayed) == bits(launched), precision .. ": with the bits of launches one by one")
  end
  local _, model = losses(gpu, "deepgemm", "bf16", "model")
  t.ok(not model.graphs, "counts on the host leave no graph")
end

do -- workspaces
  local _, model = losses(gpu, "rapidgemm", "bf16", "model")
  local gemms, kinds = 0, 0
  for _, entry in ipairs(model.first) do gemms = gemms + (entry.plan.op == "gemm" and 1 or 0) end
  for _ in pairs(model.workspaces) do kinds = kinds + 1 end
  t.ok(kinds <= 6 and gemms > 10, ("%d GEMMs and the rest share %d workspaces"):format(gemms, kinds))
end

do -- memory is what was said before
  local wide = { layers = 2, d_model = 1536, ffn = 4608, heads = 12, kv_heads = 2, head_dim = 128, experts = 32,
    expert_ffn = 640, shared_ffn = 640, sequence = 2048, micro_batch = 2 }
  for _, precision in ipairs { "bf16", "fp32" } do
    local settings = { device = gpu, config = assert(presets.config("tiny", wide)), backend = "rapidgemm", seed = 3,
      precision = precision }
    local expected = assert(step.bytes(settings)).total
    collectgarbage()
    collectgarbage()
    local before = gpu:memory().used_bytes
    local model = assert(step.build(settings))
    local taken = gpu:memory().used_bytes - before
    t.ok(math.abs(taken / expected - 1) < 0.05, ("%s: %.2f GB expected, %.2f taken, for %d parameters"):format(
      precision, expected / 1e9, taken / 1e9, model.parameters.count))
  end
end

do -- layouts that the presets lack
  for name, overrides in pairs {
    ["a dense layer first"] = { layers = 2, dense_layers = 1 },
    ["no layers"] = { layers = 0 },
    ["a token count that is no multiple of anything"] = { layers = 1, sequence = 37, micro_batch = 1 },
    ["every token to every expert"] = { layers = 1, top_k = 8 },
  } do
    local worst = worst_of(losses(gpu, "rapidgemm", "bf16", "model", overrides),
      (losses(cpu, "rapidgemm", "fp32", "model", overrides)))
    t.ok(worst <= TOLERANCE, ("%s: losses are the CPU's (%.1e)"):format(name, worst))
  end
end

do -- working copies are the rounded masters, and the masters are fp32
  local _, model = losses(gpu, "rapidgemm", "bf16", "model")
  for _, name in ipairs { "layer1.expert13", "layer2.qkv", "head" } do
    local master, copy = model.parameters.value[name], model.parameters.working[name]
    local expected = lab.check(lab.tensor { device = gpu, dtype = "bf16", shape = master.shape }):convert(master)
    t.ok(master.dtype == "fp32" and copy.dtype == "bf16"
      and lab.compare(copy, expected).mismatched_bits == 0, name .. ": the copy is the master, rounded")
  end
end
t.done()
