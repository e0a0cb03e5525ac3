-- Model FLOP utilisation: FLOPs that the model's equations need for a token, over the time that it takes and
-- what the GPU could do at most.
--
--   forward, a layer   2 d (h + 2 h_kv) c     queries, keys and values; h heads of c, h_kv of keys
--                    + 4 h c (s + 1) / 2      both products of attention with the (s + 1) / 2 keys that a token
--                                             sees on average in a sequence of s
--                    + 2 h c d                its output
--                    + 2 d e                  router, e experts
--                    + 6 d f k                k routed experts of width f: up, gate and down
--                    + 6 d f_s                the shared expert
--   head               2 d v                  vocabulary v; the embedding is looked up
--   backward           twice the forward pass, attention's too: what is computed again does not count
--   MFU of depth L     3 (L layer + head) T_L / peak; of a layer 3 layer / (dt peak)
--
-- peak: dense bf16 by the data sheet, at the boost clock; a GPU at its power limit is below that clock.

local analysis = require "tilelab.depth.analysis"

local utilisation = {}

-- TFLOP/s of dense bf16, by what a device's model contains.
local PEAKS = { { "H200", 989.5 }, { "H100 80GB HBM3", 989.5 } }

-- The peak of a device by its model, or nil where it has none here.
function utilisation.peak_tflops(device_model)
  for _, peak in ipairs(PEAKS) do
    if device_model:find(peak[1], 1, true) then return peak[2] end
  end
end

-- FLOPs of the forward pass for a token, of a layer and of the head. config: of presets.config.
function utilisation.forward(config)
  local d, width = config.d_model, config.heads * config.head_dim
  local layer = 2 * d * (config.heads + 2 * config.kv_heads) * config.head_dim
    + 4 * width * (config.sequence + 1) / 2 + 2 * width * d + 2 * d * config.experts
    + 6 * d * config.expert_ffn * config.top_k + 6 * d * config.shared_ffn
  return layer, 2 * d * config.vocabulary
end

-- FLOPs of training for a token, at a depth.
function utilisation.training(config, layers)
  local layer, head = utilisation.forward(config)
  return 3 * (layers * layer + head)
end

-- Rows of summary.tsv: mfu_L for each depth and mfu_layer, in percent, by backend. result, info: of
-- analysis.run. Empty for a device without a peak.
function utilisation.rows(result, info, config, device_model)
  local peak, list = utilisation.peak_tflops(device_model), {}
  if not peak then return list end
  local layer = utilisation.forward(config)
  for _, backend in ipairs(info.backends) do
    local function add(figure, of, flops)
      local row = analysis.find(result, of, backend)
      local scale = 100 * flops / (peak * 1e12)
      list[#list + 1] = { figure = figure, backend = backend, value = row.value and scale * row.value,
        lo = row.lo and scale * row.lo, hi = row.hi and scale * row.hi, unit = "%" }
    end
    for _, depth in ipairs(info.layers) do add("mfu_" .. depth, "T_" .. depth, utilisation.training(config, depth)) end
    add("mfu_layer", "R", 3 * layer)
  end
  return list
end

local FORMULA = [[
MFU = 3 (L layer + head) T_L / peak, of a layer 3 layer / (dt peak); FLOPs of the forward pass for a token:
layer = 2 d (h + 2 h_kv) c + 2 h c (s + 1) + 2 h c d + 2 d e + 6 d f k + 6 d f_s = %.4g, head = 2 d v = %.4g;
backward twice that, nothing computed again; peak = %g TFLOP/s, dense bf16 by the data sheet]]

-- The section of a study's text; nil where there is no peak.
function utilisation.text(rows, info, config, device_model)
  if #rows == 0 then return nil end
  local lines, by_figure, order = {}, {}, {}
  for _, row in ipairs(rows) do
    if not by_figure[row.figure] then
      by_figure[row.figure] = {}
      order[#order + 1] = row.figure
    end
    by_figure[row.figure][row.backend] = row.value and ("%.1f %%"):format(row.value) or "undefined"
  end
  for i, figure in ipairs(order) do
    local parts = {}
    for b, backend in ipairs(info.backends) do parts[b] = ("%s %s"):format(backend, by_figure[figure][backend]) end
    local depth = figure:match "^mfu_(%d+)$"
    local what = depth and ("at %s layer%s"):format(depth, depth == "1" and "" or "s") or "of a layer"
    lines[i] = ("%-12s %s"):format(what, table.concat(parts, ", "))
  end
  local layer, head = utilisation.forward(config)
  return "Model FLOP utilisation\n\n" .. table.concat(lines, "\n") .. "\n\n"
    .. FORMULA:format(layer, head, utilisation.peak_tflops(device_model)) .. "\n"
end

return utilisation
