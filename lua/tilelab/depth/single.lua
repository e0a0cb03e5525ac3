-- A study of one depth: throughput and time per token of each backend, by the study's own statistic, without
-- what only a slope between depths gives.

local align = require("tilelab.text_table").align
local analysis = require "tilelab.depth.analysis"
local samples = require "tilelab.depth.samples"

local single = {}

-- Tokens/s of the fastest `keep` updates: mean, least and greatest, over all repetitions.
local function envelope(runs, keep)
  local sum, lo, hi, count = 0, math.huge, -math.huge, 0
  for _, throughput in ipairs(runs) do
    for position in pairs(analysis.envelope(throughput, keep)) do
      local value = throughput[position]
      sum, count, lo, hi = sum + value, count + 1, math.min(lo, value), math.max(hi, value)
    end
  end
  return sum / count, lo, hi
end

-- rows and options as for analysis.run. Returns a list of {backend, layers, T, lo, hi (of the kept updates), t
-- (us a token), t_median} and the context of samples.collect; or nil and a message.
function single.run(rows, options)
  local info, message = samples.collect(rows, options)
  if not info then return nil, message end
  info.keep = analysis.keep(options.top or analysis.defaults.top, info.n)
  if info.keep < 1 then return nil, ("the top fraction keeps none of %d updates"):format(info.n) end
  local list, depth = {}, info.layers[1]
  for _, backend in ipairs(info.backends) do
    local runs, medians = info.throughput[backend][depth], 0
    for _, throughput in ipairs(runs) do
      local sorted = table.move(throughput, 1, #throughput, 1, {})
      table.sort(sorted)
      medians = medians + (sorted[(#sorted + 1) // 2] + sorted[#sorted // 2 + 1]) / 2 / #runs
    end
    local mean, lo, hi = envelope(runs, info.keep)
    list[#list + 1] = { backend = backend, layers = depth, T = mean, lo = lo, hi = hi, t = 1e6 / mean,
      t_median = 1e6 / medians }
  end
  return list, info
end

-- The text of such a study.
function single.text(list, info)
  local cells = { { "backend", "layers", "T, tokens/s", "least, greatest", "t, us/token", "t of the median" } }
  for i, row in ipairs(list) do
    cells[i + 1] = { row.backend, tostring(row.layers), ("%.0f"):format(row.T), ("%.0f, %.0f"):format(row.lo, row.hi),
      ("%.4f"):format(row.t), ("%.4f"):format(row.t_median) }
  end
  return ("Each run: updates %d to %d (%d kept after %d of warm-up). T: mean over the fastest %d of them.\n\n%s\n")
    :format(info.warmup + 1, info.last_update, info.n, info.warmup, info.keep, align(cells, {}))
end

return single
