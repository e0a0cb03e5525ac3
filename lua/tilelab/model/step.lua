-- The training step: every buffer is allocated and every launch planned once, when the model is
-- built; an update only walks the lists. So a step neither allocates nor plans, and its host cost
-- does not depend on the backend.
--
-- One update = `update_frequency` micro-batches, gradients accumulated in place, then the global
-- gradient norm and AdamW. The loss is the mean cross-entropy over the update's tokens.

local lab = require "tilelab"
local Layer = require "tilelab.model.layer"
local backends = require "tilelab.model.backends"
local parameters = require "tilelab.model.parameters"
local routing = require "tilelab.model.routing"

local Builder = {}
Builder.__index = Builder

local function out_of_memory(what, message)
  error({ memory = ("%s: %s"):format(what, message) }, 0)
end

function Builder:tensor(shape, dtype)
  local tensor, message = lab.tensor { device = self.device, dtype = dtype or self.precision, shape = shape, fill = 0 }
  if not tensor then out_of_memory("activations", message) end
  return tensor
end

-- A tensor of the forward pass that the backward pass reads.
function Builder:save(shape, dtype) return self:tensor(shape, dtype) end

-- A temporary of the backward pass; layers share it by name.
function Builder:scratch(name, shape)
  local key = name .. " " .. table.concat(shape, "x")
  self.scratches[key] = self.scratches[key] or self:tensor(shape)
  return self.scratches[key]
end

function Builder:plan(phase, operation, arguments)
  arguments.op = operation
  arguments.variant = backends.variant(self.backend, operation, self.device.name)
  local plan, message = lab.plan(arguments)
  if not plan then error(("%s: %s"):format(phase, message)) end
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

local function grouping(saved)
  return { group_offsets = saved.group_offsets, row_experts = saved.row_experts }
end

function Builder:grouped(phase, operation, saved, arguments)
  self:forward(phase, operation, with(arguments, grouping(saved)))
end

function Builder:grouped_weight_gradient(phase, saved, arguments)
  self:weight_gradient(phase, "k_grouped_gemm", with(arguments, grouping(saved)),
    self.backend.accumulates and 1 or 0)
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
  local value, gradient = b.parameters.value, b.parameters.gradient
  local embedded = b:save { b.t, b.d }
  b:forward("embedding fprop", "embedding", { ids = b.ids, table = value.embedding, y = embedded })
  local branch, residual, saved = embedded, nil, {}
  for layer = 1, config.layers do
    branch, residual, saved[layer] = Layer.forward(b, layer, branch, residual)
  end
  local norm = Layer.norm_forward(b, "head fprop", value.final_norm, branch, residual)
  local logits, dh = b:save { b.t, config.vocabulary }, b:scratch("dh", { b.t, b.d })
  local scale = 1 / (b.t * config.update_frequency)
  b:forward("head fprop", "gemm", { a = norm.y, b = value.head, d = logits, layout = "nt" })
  local lse, losses = b:save { b.t }, b:save { b.t }
  b:forward("head fprop", "cross_entropy", { logits = logits, targets = b.targets, lse = lse,
    losses = losses, loss_sum = b.loss, scale = scale })
  b:backward("head bprop", "cross_entropy_backward", { logits = logits, lse = lse,
    targets = b.targets, dlogits = logits, scale = scale })
  b:weight_gradient("head bprop", "gemm", { a = logits, b = norm.y, d = gradient.head, layout = "tn" })
  b:backward("head bprop", "gemm", { a = logits, b = value.head, d = dh, layout = "nn" })
  Layer.norm_backward(b, "head bprop", norm, value.final_norm, gradient.final_norm, dh, true)
  for layer = config.layers, 1, -1 do Layer.backward(b, layer, saved[layer]) end
  b:backward("embedding bprop", "embedding_backward", { ids = b.ids, dy = b.stream_gradient,
    dtable = gradient.embedding })
end

local function build_optimiser(b, config)
  local flat, list = b.parameters.flat, {}
  append(list, "optimiser", b:plan("optimiser", "squared_norm", { x = flat.gradient, sum = b.norm_squared }))
  for _, region in ipairs(b.parameters.regions) do
    local function part(tensor) return tensor:view(region.first, { region.count }) end
    append(list, "optimiser", b:plan("optimiser", "adamw", {
      param = part(flat.value), grad = part(flat.gradient), m = part(flat.m), v = part(flat.v),
      step = b.step, norm_squared = b.norm_squared, lr = config.learning_rate, beta1 = config.beta1,
      beta2 = config.beta2, eps = config.adam_eps, max_norm = config.max_norm,
      weight_decay = region.decay and config.weight_decay or 0 }))
  end
  return list
end

local Model = {}
Model.__index = Model

-- Builds a model. options: device (opened), config (presets.config), backend (its name), seed,
-- routing ("model", "multinomial" or "zipf"), precision ("fp32", or "fp64" for gradient checks on
-- the CPU). Returns the model, or nil and a message when the device runs out of memory.
local function build(options)
  local config, device = options.config, options.device
  local b = setmetatable({ config = config, device = device, backend = backends.get(options.backend),
    precision = options.precision or "fp32", first = {}, later = {}, zeroed = {}, scratches = {},
    d = config.d_model, t = config.micro_batch * config.sequence }, Builder)
  b.rows = layout_rows(config, b.t, b.backend.align)
  local message
  b.parameters, message = parameters.build(config, device, options.seed, b.precision)
  if not b.parameters then return nil, message end
  local ok, failure = xpcall(function()
    b.routing = routing.new(options.routing or "model", config, b.t, options.seed)
    b.ids, b.targets = b:tensor({ b.t }, "i32"), b:tensor({ b.t }, "i32")
    b.loss, b.aux, b.norm_squared, b.step = b:tensor { 1 }, b:tensor { 1 }, b:tensor { 1 }, b:tensor({ 1 }, "i32")
    b.stream_gradient = b:tensor { b.t, b.d }
    build_ends(b, config)
    b.optimiser = build_optimiser(b, config)
  end, function(e) return type(e) == "table" and e or debug.traceback(e, 2) end)
  if not ok then
    if type(failure) == "table" then return nil, failure.memory end
    error(failure, 0)
  end
  b.seed, b.count = options.seed, 0
  return setmetatable(b, Model)
end

-- Launches of one phase that follow each other share a range.
local function run_in_ranges(list)
  local i = 1
  while i <= #list do
    local phase = list[i].phase
    local _ <close> = lab.nvtx(phase)
    repeat
      list[i].plan:launch()
      i = i + 1
    until i > #list or list[i].phase ~= phase
  end
end

local function run(list)
  if lab.nvtx_phases() then return run_in_ranges(list) end
  for i = 1, #list do list[i].plan:launch() end
end

-- One update on sequences drawn from `text`; returns the mean cross-entropy. Updates are numbered
-- from 1 over the model's life and see the same tokens in every model of that seed.
function Model:update(text)
  local c = self.config
  self.loss:fill(0)
  self.norm_squared:fill(0)
  self.aux:fill(0)
  self.parameters.accumulated:fill(0)
  for _, gradient in ipairs(self.zeroed) do gradient:fill(0) end
  for micro = 0, c.update_frequency - 1 do
    for i = 0, c.micro_batch - 1 do
      local index = (self.count * c.update_frequency + micro) * c.micro_batch + i
      text:sequence(self.ids:view(i * c.sequence, { c.sequence }),
        self.targets:view(i * c.sequence, { c.sequence }), c.sequence, self.seed, index)
    end
    if self.routing then self.routing:load(micro) end
    run(micro == 0 and self.first or self.later)
  end
  self.count = self.count + 1
  self.step:fill(self.count)
  run(self.optimiser)
  return self.loss:totable()[1]
end

-- Tokens of one update.
function Model:tokens() return self.t * self.config.update_frequency end

return { build = build }
