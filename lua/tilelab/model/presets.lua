-- Model layouts. Widths are in elements, `sequence` in tokens; one update is `update_frequency`
-- micro-batches of `micro_batch` sequences.
--
-- "30b-a3b" is the layout of the published depth-scaling study (RapidGEMM README), exactly. "tiny"
-- keeps its proportions (d_model : ffn : expert_ffn = 72 : 216 : 30, six query heads to a key head,
-- a shared expert as wide as a routed one) at a size that a laptop trains.

local fields = require "tilelab.fields"

local presets = {
  ["30b-a3b"] = {
    d_model = 3072, ffn = 9216, heads = 24, kv_heads = 4, head_dim = 128,
    experts = 128, top_k = 8, expert_ffn = 1280, shared_ffn = 1280,
    layers = 20, vocabulary = 65536, sequence = 4096, micro_batch = 1, update_frequency = 4,
    learning_rate = 2e-4,
  },
  tiny = {
    d_model = 192, ffn = 576, heads = 6, kv_heads = 1, head_dim = 32,
    experts = 8, top_k = 2, expert_ffn = 80, shared_ffn = 80,
    layers = 20, vocabulary = 256, sequence = 256, micro_batch = 2, update_frequency = 4,
    learning_rate = 2e-3,
  },
}

-- What a preset leaves out.
local defaults = {
  dense_layers = 0,        -- the first n layers have a dense FFN in place of the MoE block
  rope_theta = 10000, norm_eps = 1e-6, aux_coefficient = 0.01,
  beta1 = 0.9, beta2 = 0.95, adam_eps = 1e-8, weight_decay = 0.1, max_norm = 1.0,
}

-- Names of the presets, sorted.
local function names() return fields.names(presets) end

-- A fresh configuration: the preset, the defaults, then `overrides`. Returns nil and a message for
-- an unknown preset or field, or for widths that do not fit together.
local function config(name, overrides)
  local preset = presets[name]
  if not preset then
    return nil, ("unknown model '%s'; models are %s"):format(name, table.concat(names(), ", "))
  end
  local result = { name = name, full_layers = preset.layers }
  for key, value in pairs(defaults) do result[key] = value end
  for key, value in pairs(preset) do result[key] = value end
  for key, value in pairs(overrides or {}) do
    if result[key] == nil then return nil, ("model configuration has no field '%s'"):format(key) end
    result[key] = value
  end
  if result.heads % result.kv_heads ~= 0 then
    return nil, ("heads = %d is no multiple of kv_heads = %d"):format(result.heads, result.kv_heads)
  end
  if result.top_k > result.experts then
    return nil, ("top_k = %d is more than experts = %d"):format(result.top_k, result.experts)
  end
  if result.dense_layers > result.layers then
    return nil, ("dense_layers = %d is more than layers = %d"):format(result.dense_layers, result.layers)
  end
  return result
end

return { config = config, names = names }
