-- Parameters of a model: one flat tensor each for values, gradients and the two AdamW
-- moments, with named views, so that the optimiser is few launches: one for each run of parameters
-- with the same weight decay and working copy.
--
-- Order of the flat layout: matrices whose gradients GEMMs write, then the embedding, then the
-- norms. The last two accumulate without a beta and are zeroed at the start of an update; only the
-- norms are free of weight decay. Working copies (precision.lua) lie in a flat tensor of their own,
-- in the same order.

local lab = require "tilelab"
local precision = require "tilelab.model.precision"

local ALIGN = 64 -- elements, 128 bytes at least: what vector loads and TMA ask for

-- {name, shape, fan_in, kind} in layout order; `kind` is "matrix", "experts", "embedding" or "norm".
local function list(config)
  local d, matrices, norms = config.d_model, {}, {}
  local function matrix(name, fan_in, ...) matrices[#matrices + 1] = { name, { ... }, fan_in, "matrix" } end
  local function experts(name, fan_in, ...) matrices[#matrices + 1] = { name, { ... }, fan_in, "experts" } end
  local function norm(name) norms[#norms + 1] = { name, { d }, nil, "norm" } end
  local inner = config.heads * config.head_dim
  for layer = 1, config.layers do
    local at = ("layer%d."):format(layer)
    norm(at .. "attention_norm")
    matrix(at .. "qkv", d, inner + 2 * config.kv_heads * config.head_dim, d)
    matrix(at .. "out", inner, d, inner)
    norm(at .. "ffn_norm")
    if layer <= config.dense_layers then
      matrix(at .. "dense13", d, 2 * config.ffn, d)
      matrix(at .. "dense2", config.ffn, d, config.ffn)
    else
      matrix(at .. "router", d, config.experts, d)
      experts(at .. "expert13", d, config.experts, 2 * config.expert_ffn, d)
      experts(at .. "expert2", config.expert_ffn, config.experts, d, config.expert_ffn)
      matrix(at .. "shared13", d, 2 * config.shared_ffn, d)
      matrix(at .. "shared2", config.shared_ffn, d, config.shared_ffn)
    end
  end
  norm("final_norm")
  matrix("head", d, config.vocabulary, d)
  local all = table.move(matrices, 1, #matrices, 1, {})
  all[#all + 1] = { "embedding", { config.vocabulary, d }, nil, "embedding" }
  return table.move(norms, 1, #norms, #all + 1, all)
end

local function product(shape)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return n
end

-- A stable stream number for a name, so that layer 1 starts the same at every depth.
local function sequence_of(name) return tonumber(lab.hash(name):sub(1, 8), 16) end

-- Initial values: norms 1; matrices normal with variance 1 / fan_in, those that write into the
-- residual stream scaled down by sqrt(2 * full depth) (GPT-2's rule); embedding normal, std 0.5.
local function initialise(view, spec, config, seed)
  local name, fan_in, kind = spec[1], spec[3], spec[4]
  if kind == "norm" then view:fill(1) return end
  local std = kind == "embedding" and 0.5 or 1 / math.sqrt(fan_in)
  if name:find("out$") or name:find("2$") then std = std / math.sqrt(2 * config.full_layers) end
  view:normal { mean = 0, std = std, seed = seed, sequence = sequence_of(name) }
end

-- Where parameters lie. Returns {specs, offsets, working = offsets of working copies by spec (absent
-- without one), count, working_count, first_accumulated, regions, dtype = type of working copies}.
local function layout(config, types)
  local plan = { specs = list(config), offsets = {}, working = {}, count = 0, working_count = 0, regions = {} }
  local region
  for i, spec in ipairs(plan.specs) do
    local size = (product(spec[2]) + ALIGN - 1) // ALIGN * ALIGN
    local dtype, decay = types[precision.of_parameter[spec[4]]], spec[4] ~= "norm"
    local copied = dtype ~= types.master
    if spec[4] == "embedding" then plan.first_accumulated = plan.count end
    plan.offsets[i] = plan.count
    if not region or region.decay ~= decay or (region.working ~= nil) ~= copied then
      region = { first = plan.count, count = 0, decay = decay, working = copied and plan.working_count or nil }
      plan.regions[#plan.regions + 1] = region
    end
    region.count = region.count + size
    plan.count = plan.count + size
    if copied then
      plan.dtype, plan.working[i] = dtype, plan.working_count
      plan.working_count = plan.working_count + size
    end
  end
  return plan
end

-- Builds the parameters from tensors that `allocate(what, dtype, shape)` gives. types: those of
-- precision.lua. Returns {value, working, gradient = name -> view, where a working view is the value
-- itself for a parameter without a copy; flat = {value, gradient, m, v, working (or nil)}; regions =
-- {{first, count, decay, working = first element of its copies or nil}}; accumulated = view of the
-- gradients that must be zeroed; count}. Working copies hold nothing yet.
local function build(config, seed, types, allocate)
  local plan, flat = layout(config, types), {}
  for _, role in ipairs { "value", "gradient", "m", "v" } do
    flat[role] = allocate(role, types.master, { plan.count })
  end
  if plan.dtype then flat.working = allocate("working", plan.dtype, { plan.working_count }) end
  local first = plan.first_accumulated
  local result = { value = {}, working = {}, gradient = {}, flat = flat, count = 0, regions = plan.regions,
    accumulated = flat.gradient:view(first, { plan.count - first }) }
  for i, spec in ipairs(plan.specs) do
    local name, shape = spec[1], spec[2]
    result.value[name] = flat.value:view(plan.offsets[i], shape)
    result.working[name] = plan.working[i] and flat.working:view(plan.working[i], shape) or result.value[name]
    result.gradient[name] = flat.gradient:view(plan.offsets[i], shape)
    result.count = result.count + product(shape)
    initialise(result.value[name], spec, config, seed)
  end
  return result
end

return { build = build }
