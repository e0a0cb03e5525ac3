-- The training step: every buffer is allocated and every launch planned once, when the model is
-- built; an update only walks the lists. So a step neither allocates nor plans, and its host cost
-- does not depend on the backend.
--
-- One update = `update_frequency` micro-batches, gradients accumulated in place, then the global
-- gradient norm and AdamW. The loss is the mean cross-entropy over the update's tokens. The host waits
-- for the device when it reads the loss, and for what Builder:counts_on_host reads; nowhere else. On a
-- GPU a step without the latter is replayed from graphs, from the second update on.

local lab = require "tilelab"
local Layer = require "tilelab.model.layer"
local attention = require "tilelab.model.attention"
local backends = require "tilelab.model.backends"
local checkpoint = require "tilelab.model.checkpoint"
local gemm_choices = require "tilelab.model.gemm_choices"
local launches = require "tilelab.model.launches"
local memory = require "tilelab.model.memory"
local parameters = require "tilelab.model.parameters"
local precision = require "tilelab.model.precision"
local routing = require "tilelab.model.routing"

local GROUP_ALIGNMENT = 128 -- rows, of padded grouped GEMMs

local Builder = {}
Builder.__index = Builder

-- Ends the building of a model: what the machine refused, and where.
local function refuse(where, message) error({ refused = ("%s: %s"):format(where, message) }, 0) end

function Builder:allocate(what, dtype, shape)
  local tensor, message = lab.tensor { device = self.device, dtype = dtype, shape = shape, fill = 0 }
  if not tensor then refuse(what, message) end
  return tensor
end

-- A tensor of the type that precision.lua gives the buffer of that name.
function Builder:tensor(name, shape) return self:allocate(name, self.types[precision.class(name)], shape) end

-- A tensor of indices.
function Builder:index(shape) return self:allocate("indices", "i32", shape) end

-- A tensor of the forward pass that the backward pass reads.
function Builder:save(name, shape) return self:tensor(name, shape) end

-- A temporary of the backward pass; layers share it by name.
function Builder:scratch(name, shape)
  local key = name .. " " .. table.concat(shape, "x")
  self.scratches[key] = self.scratches[key] or self:tensor(name, shape)
  return self.scratches[key]
end

function Builder:plan(phase, operation, arguments)
  arguments.op = operation
  arguments.workspaces = self.workspaces
  arguments.variant = self.attention[operation] or backends.variant(self.backend, operation, self.device.name)
  local plan, message, code = lab.plan(arguments)
  if not plan then refuse(code == "memory" and phase .. ", workspace" or phase, message) end
  self.arguments[plan] = arguments
  if operation == "gemm" and plan:algorithm() then
    self.gemms[#self.gemms + 1] = { plan = plan, key = gemm_choices.key(arguments) }
  end
  return plan
end

local function append(list, phase, plan) list[#list + 1] = { phase = phase, plan = plan } end

function Builder:forward(phase, operation, arguments)
  local plan = self:plan(phase, operation, arguments)
  append(self.first, phase, plan)
  append(self.later, phase, plan)
end

Builder.backward = Builder.forward

local function with(arguments, extra)
  local result = {}
  for key, value in pairs(arguments) do result[key] = value end
  for key, value in pairs(extra) do result[key] = value end
  return result
end

-- A gradient that accumulates over the micro-batches: the first one overwrites. `beta_first` 1 is
-- for kernels that always add; the step zeroes their output before.
function Builder:weight_gradient(phase, operation, arguments, beta_first)
  append(self.first, phase, self:plan(phase, operation, with(arguments, { beta = beta_first or 0 })))
  append(self.later, phase, self:plan(phase, operation, with(arguments, { beta = 1 })))
  if beta_first == 1 then self.zeroed[#self.zeroed + 1] = arguments.d end
end

-- What grouped GEMMs ask for beside permute's index: padded groups of their own where the backend
-- copies, and counts on the host. Into `saved`: gemm_offsets, gemm_experts and counts_host.
function Builder:groups_known(saved)
  saved.gemm_offsets, saved.gemm_experts = saved.group_offsets, saved.row_experts
  if self.backend.copies then
    saved.gemm_offsets, saved.gemm_experts = self:index { saved.group_offsets.numel }, self:index { self.padded_rows }
    self:forward("padding", "pad_index", { group_offsets = saved.group_offsets,
      padded_offsets = saved.gemm_offsets, row_experts = saved.gemm_experts, align = GROUP_ALIGNMENT })
  end
  saved.counts_host = self:counts_on_host(saved.gemm_offsets)
end

-- `rows` itself, or where the backend copies, its copy with padded groups, in a scratch of that name.
function Builder:padded(saved, name, rows)
  if not self.backend.copies then return rows end
  local copy = self:scratch(name, { self.padded_rows, rows.shape[2] })
  self:forward("padding", "pad_rows", { x = rows, group_offsets = saved.group_offsets,
    padded_offsets = saved.gemm_offsets, y = copy })
  return copy
end

function Builder:grouped(phase, operation, saved, arguments)
  local d, copies = arguments.d, self.backend.copies
  local out = copies and self:scratch("padded_d", { self.padded_rows, d.shape[2] }) or d
  self:forward(phase, operation, with(arguments, { a = self:padded(saved, "padded_a", arguments.a), d = out,
    group_offsets = saved.gemm_offsets, row_experts = saved.gemm_experts }))
  if copies then
    self:forward("padding", "unpad_rows", { x = out, group_offsets = saved.group_offsets,
      padded_offsets = saved.gemm_offsets, y = d })
  end
end

function Builder:grouped_weight_gradient(phase, saved, arguments)
  self:weight_gradient(phase, "k_grouped_gemm", with(arguments, {
    a = self:padded(saved, "padded_a", arguments.a), b = self:padded(saved, "padded_b", arguments.b),
    group_offsets = saved.gemm_offsets, row_experts = saved.gemm_experts, counts_host = saved.counts_host }),
    self.backend.accumulates and 1 or 0)
end

-- Where the backend's k-grouped GEMM wants them: the rows of each group on the host, pads included, as
-- a tensor that each micro-batch fills anew. The copy waits for everything launched before it: this
-- is the host synchronisation of the padded backends.
function Builder:counts_on_host(offsets)
  if not self.backend.host_counts[backends.kind_of(self.device.name)] then return nil end
  local counts = self:host_index { offsets.numel - 1 }
  local function read()
    local values, list = offsets:totable(), {}
    for i = 1, #values - 1 do list[i] = values[i + 1] - values[i] end
    counts:assign(list)
  end
  append(self.first, "host counts", { launch = read })
  append(self.later, "host counts", { launch = read })
  return counts
end

function Builder:host_index(shape) -- luacheck: ignore 212
  return lab.check(lab.tensor { dtype = "i32", shape = shape, fill = 0 })
end

-- The layer's forced experts [t, top_k], nil under routing "model".
function Builder:forced_experts(layer)
  return self.routing and self.routing:tensor(self, layer)
end

-- Rows of the expert layout: exactly the slots without padding, else the most that padding every
-- non-empty group can make of them.
local function layout_rows(config, tokens, align)
  local slots = tokens * config.top_k
  local groups = math.min(config.experts, slots)
  return (slots + groups * (align - 1)) // align * align
end

local function build_ends(b, config)
  local read, gradient = b.parameters.working, b.parameters.gradient
  local embedded = b:save("embedded", { b.t, b.d })
  b:forward("embedding fprop", "embedding", { ids = b.ids, table = read.embedding, y = embedded })
  local branch, residual, saved = embedded, nil, {}
  for layer = 1, config.layers do
    branch, residual, saved[layer] = Layer.forward(b, layer, branch, residual)
  end
  local norm = Layer.norm_forward(b, "head fprop", read.final_norm, branch, residual)
  local logits, dh = b:save("logits", { b.t, config.vocabulary }), b:scratch("dh", { b.t, b.d })
  local scale = 1 / (b.t * config.update_frequency)
  b:forward("head fprop", "gemm", { a = norm.y, b = read.head, d = logits, layout = "nt" })
  local lse, losses = b:save("token_lse", { b.t }), b:save("losses", { b.t })
  b:forward("head fprop", "cross_entropy", { logits = logits, targets = b.targets, lse = lse,
    losses = losses, loss_sum = b.loss, scale = scale })
  b:backward("head bprop", "cross_entropy_backward", { logits = logits, lse = lse,
    targets = b.targets, dlogits = logits, scale = scale })
  b:weight_gradient("head bprop", "gemm", { a = logits, b = norm.y, d = gradient.head, layout = "tn" })
  b:backward("head bprop", "gemm", { a = logits, b = read.head, d = dh, layout = "nn" })
  Layer.norm_backward(b, "head bprop", norm, read.final_norm, gradient.final_norm, dh, true)
  for layer = config.layers, 1, -1 do Layer.backward(b, layer, saved[layer]) end
  b:backward("embedding bprop", "embedding_backward", { ids = b.ids, dy = b.stream_gradient,
    dtable = gradient.embedding })
end

-- The launches of AdamW, one a region, at that learning rate.
local function adamw(b, config, settings)
  local flat, list = b.parameters.flat, {}
  for _, region in ipairs(b.parameters.regions) do
    local function part(tensor) return tensor:view(region.first, { region.count }) end
    local copy = region.working and flat.working:view(region.working, { region.count })
    if copy or not settings.copies_only then
      append(list, "optimiser", b:plan("optimiser", "adamw", {
        param = part(flat.value), grad = part(flat.gradient), m = part(flat.m), v = part(flat.v),
        step = b.step, norm_squared = b.norm_squared, param_bf16 = copy, lr = settings.lr, beta1 = config.beta1,
        beta2 = config.beta2, eps = config.adam_eps, max_norm = settings.max_norm,
        weight_decay = region.decay and config.weight_decay or 0 }))
    end
  end
  return list
end

local function build_optimiser(b, config)
  local list = {}
  append(list, "optimiser", b:plan("optimiser", "squared_norm",
    { x = b.parameters.flat.gradient, sum = b.norm_squared }))
  return table.move(adamw(b, config, { lr = config.learning_rate, max_norm = config.max_norm }), 1,
    #b.parameters.regions, 2, list)
end

local Model = {}
Model.__index = Model

-- What a model must have in common with one whose checkpoint it reads.
local function facts_of(options, choice)
  local facts = { backend = options.backend, precision = options.precision or "fp32", seed = options.seed,
    routing = options.routing or "model", attention = attention.name(choice) }
  for name, value in pairs(options.config) do facts["layout_" .. name] = value end
  return facts
end

-- A builder with its sizes. options as for `build`; `class` is Builder or what derives from it.
local function builder(class, options)
  local config = options.config
  local kind = backends.kind_of(options.device.name)
  local types, message = precision.types(options.precision or "fp32", kind)
  if not types then return nil, message end
  local choice = options.attention
  if not choice then choice, message = attention.choose { device = options.device, config = config, types = types } end
  if not choice then return nil, message end
  local b = setmetatable({ config = config, device = options.device, backend = backends.get(options.backend),
    attention = choice, types = types, first = {}, later = {}, zeroed = {}, scratches = {}, workspaces = {},
    arguments = {}, gemms = {}, loads = {}, d = config.d_model, t = config.micro_batch * config.sequence }, class)
  b.facts = facts_of(options, choice)
  b.rows = layout_rows(config, b.t, b.backend.align)
  b.padded_rows = layout_rows(config, b.t, GROUP_ALIGNMENT)
  return b
end

-- Allocates every tensor and plans every launch.
local function build_all(b, options)
  local config = options.config
  b.parameters = parameters.build(config, options.seed, b.types,
    function(what, dtype, shape) return b:allocate("parameters, " .. what, dtype, shape) end)
  b.routing = routing.new(options.routing or "model", config, b.t, options.seed)
  b.ids, b.targets, b.step = b:index { b.t }, b:index { b.t }, b:index { 1 }
  b.loss, b.aux, b.norm_squared = b:tensor("loss", { 1 }), b:tensor("aux", { 1 }), b:tensor("norm_squared", { 1 })
  b.stream_gradient = b:tensor("stream_gradient", { b.t, b.d })
  build_ends(b, config)
  b.optimiser = build_optimiser(b, config)
  b.copying = adamw(b, config, { lr = 0, max_norm = 0, copies_only = true })
end

-- Writes the working copies of the parameters, as an update does, which changes nothing else while
-- the moments are zero: AdamW at learning rate 0.
local function write_copies(model)
  model.step:fill(1)
  launches.run(model.copying)
end

-- Builds a model. options: device (opened), config (presets.config), backend (its name), seed,
-- routing ("model", "multinomial" or "zipf"), precision ("fp32", "bf16" on a GPU, or "fp64" for
-- gradient checks on the CPU), attention (attention.choose; default: its own), graphs (true; false
-- launches one by one). Returns the model, or nil and a message when the device runs out of memory, lacks a
-- library that a kernel needs, or does not train in that precision.
local function build(options)
  local b, message = builder(Builder, options)
  if not b then return nil, message end
  local ok, failure = xpcall(function()
    build_all(b, options)
    write_copies(b)
  end, function(e) return type(e) == "table" and e or debug.traceback(e, 2) end)
  if not ok then
    if type(failure) == "table" then return nil, failure.refused end
    error(failure, 0)
  end
  b.seed, b.count = options.seed, 0
  b.may_capture = options.graphs ~= false and b.device.arch > 0
    and not b.backend.host_counts[backends.kind_of(b.device.name)]
  return setmetatable(b, Model)
end

-- What a model with these options will take: part (memory.parts) -> bytes, and `total`; or nil and a
-- message. Keeps no memory of the device.
local function bytes_of(options)
  local b, message = builder(memory.counter(Builder), options)
  if not b then return nil, message end
  build_all(b, options)
  local total = 0
  for _, bytes in pairs(b.bytes) do total = total + bytes end
  b.bytes.total = total
  return b.bytes
end

-- Zeroes what an update adds to.
local function begin_update(self)
  self.step:fill(self.count + 1) -- a copy from the host, which waits: nothing is under way yet
  self.loss:fill(0)
  self.norm_squared:fill(0)
  self.aux:fill(0)
  self.parameters.accumulated:fill(0)
  for _, gradient in ipairs(self.zeroed) do gradient:fill(0) end
end

-- Tokens, and experts where they are forced, of micro-batch `micro` (from 0) of the next update.
local function load_micro_batch(self, text, micro)
  local c = self.config
  for i = 0, c.micro_batch - 1 do
    local index = (self.count * c.update_frequency + micro) * c.micro_batch + i
    text:sequence(self.ids:view(i * c.sequence, { c.sequence }),
      self.targets:view(i * c.sequence, { c.sequence }), c.sequence, self.seed, index)
  end
  if self.routing then self.routing:load(micro) end
end

-- Gives every dense GEMM its algorithm out of `choices` (gemm_choices.lua). Those that it lacks are
-- timed on what the first micro-batch leaves in their operands, and added; training begins as if
-- nothing had been. Returns how many were timed.
function Model:choose_gemms(choices, text)
  local missing = choices:apply(self.gemms)
  if #missing == 0 then return 0 end
  begin_update(self)
  load_micro_batch(self, text, 0)
  launches.run(self.first)
  for _, gemm in ipairs(missing) do choices:tune(gemm) end
  choices:apply(self.gemms)
  return #missing
end

-- Captures the step where that can be, once its kernels have run; `self.note` says why it is not.
local function capture(self)
  self.may_capture = false
  self.graphs, self.note = launches.capture(self.device,
    { first = self.first, later = self.later, optimiser = self.optimiser })
end

-- One of the model's lists, by name. Ranges around phases want launches one by one.
local function run(self, name)
  if self.graphs and not lab.nvtx_phases() then return self.graphs[name]:launch() end
  launches.run(self[name])
end

-- One update on sequences drawn from `text`; returns the mean cross-entropy. Updates are numbered
-- from 1 over the model's life and see the same tokens in every model of that seed.
function Model:update(text)
  if self.may_capture and self.warm then capture(self) end
  begin_update(self)
  for micro = 0, self.config.update_frequency - 1 do
    load_micro_batch(self, text, micro)
    run(self, micro == 0 and "first" or "later")
  end
  self.count = self.count + 1
  run(self, "optimiser")
  self.warm = true
  return self.loss:totable()[1]
end

-- How the last micro-batch was spread over the experts: rows of the fullest over the mean, and experts
-- without any, both as means over the layers; nil where no layer has experts. Reads from the device.
function Model:expert_load()
  if #self.loads == 0 then return nil end
  local slots, fullest, empty = self.t * self.config.top_k, 0, 0
  for _, load in ipairs(self.loads) do
    local rows = load:totable()
    fullest = fullest + math.max(table.unpack(rows)) * #rows / slots
    for _, count in ipairs(rows) do empty = empty + (count == 0 and 1 or 0) end
  end
  return fullest / #self.loads, empty / #self.loads
end

-- What the updates so far have left, as a checkpoint in `folder`. facts: what else must be the same where
-- it is read, such as the text's hash; choices: those of choose_gemms.
function Model:save(folder, facts, choices)
  local flat = self.parameters.flat
  checkpoint.write(folder, with(self.facts, facts), self.count, { value = flat.value, m = flat.m, v = flat.v }, choices)
end

-- Goes on where a model that was saved had got to: its later updates give the same bits. True and the
-- choices of its GEMMs, which are taken; or nil and a message: another model's, damaged, or none.
function Model:load(folder, facts)
  local flat = self.parameters.flat
  local opened, message = checkpoint.open(folder, with(self.facts, facts))
  if not opened then return nil, message end
  for _, tensor in ipairs { flat.m, flat.v, flat.gradient } do tensor:fill(0) end
  local read
  read, message = opened:fill("value", flat.value)
  if read then
    write_copies(self)
    for _, name in ipairs { "m", "v" } do
      if read then read, message = opened:fill(name, flat[name]) end
    end
  end
  if not read then return nil, message end
  if opened.choices then opened.choices:apply(self.gemms) end
  self.count = opened.update
  return true, opened.choices
end

-- Tokens of one update.
function Model:tokens() return self.t * self.config.update_frequency end

return { build = build, bytes = bytes_of }
