-- Parameters of a model: one flat tensor each for values, gradients and the two AdamW
-- moments, with named views, so that the optimiser is one launch per weight-decay region.
--
-- Order of the flat layout: matrices whose gradients GEMMs write, then the embedding, then the
-- norms. The last two accumulate without a beta and are zeroed at the start of an update; only the
-- norms are free of weight decay.

local lab = require "tilelab"

local ALIGN = 64 -- elements, 256 bytes: what vector loads and TMA ask for

-- {name, shape, fan_in} in layout order; `kind` "matrix", "embedding" or "norm".
local function list(config)
  local d, matrices, norms = config.d_model, {}, {}
  local function matrix(name, fan_in, ...) matrices[#matrices + 1] = { name, { ... }, fan_in, "matrix" } end
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
      matrix(at .. "expert13", d, config.experts, 2 * config.expert_ffn, d)
      matrix(at .. "expert2", config.expert_ffn, config.experts, d, config.expert_ffn)
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

-- Builds the parameters on `device`. Returns {value, gradient = name -> view; flat =
-- {value, gradient, m, v}; regions = {{first, count, decay}}, accumulated = view of the gradients
-- that must be zeroed, count}, or nil and a message when memory runs out.
local function build(config, device, seed, precision)
  local specs, offset, offsets = list(config), 0, {}
  local first_accumulated, first_norm
  for i, spec in ipairs(specs) do
    if spec[4] == "embedding" then first_accumulated = offset end
    if spec[4] == "norm" and not first_norm then first_norm = offset end
    offsets[i] = offset
    offset = (offset + product(spec[2]) + ALIGN - 1) // ALIGN * ALIGN
  end
  local flat = {}
  for _, role in ipairs { "value", "gradient", "m", "v" } do
    local tensor, message = lab.tensor { device = device, dtype = precision, shape = { offset }, fill = 0 }
    if not tensor then return nil, ("parameters of %s: %s"):format(config.name, message) end
    flat[role] = tensor
  end
  local result = { value = {}, gradient = {}, flat = flat, count = 0,
    accumulated = flat.gradient:view(first_accumulated, { offset - first_accumulated }),
    regions = { { first = 0, count = first_norm, decay = true },
      { first = first_norm, count = offset - first_norm, decay = false } } }
  for i, spec in ipairs(specs) do
    result.value[spec[1]] = flat.value:view(offsets[i], spec[2])
    result.gradient[spec[1]] = flat.gradient:view(offsets[i], spec[2])
    result.count = result.count + product(spec[2])
    initialise(result.value[spec[1]], spec, config, seed)
  end
  return result
end

return { build = build }
