-- depth_scaling_depth3.tsv: as depth_scaling.tsv, at one depth more than the main study has
-- (lua/tilelab/depth/sides.lua). Its figure holds the time there against the line through the main study's
-- depths, whose record lies beside it.

local core = require "tilelab_core"
local draw = require "tilelab.draw"
local main = require "tilelab.draw.depth_scaling"
local recorded = require "tilelab.recorded"
local sides = require "tilelab.depth.sides"

local depth3 = { schema = main.schema }

-- The record of the main study beside this one, or nil.
local function main_of(data)
  local path = (data.path:match "^(.*/)" or "") .. "depth_scaling.tsv"
  return core.stat(path) and recorded.read(path) or nil
end

function depth3.draw(data, options)
  local study = main_of(data)
  if not study then return {} end
  local list, context = sides.linearity(study, data)
  if #list == 0 then return {} end
  local lines, series, notes = sides.lines(study, list), {}, {}
  for slot, row in ipairs(list) do
    local made = lines[row.backend]
    series[#series + 1] = { name = row.backend .. ", line", style = "line", slot = slot, points = made.line }
    series[#series + 1] = { name = row.backend .. ", measured", style = "points", slot = slot, points = made.measured }
    notes[slot] = ("%s at %d layers: %+.2f %% off the line"):format(row.backend, row.layers, row.percent)
  end
  return draw.figures(data, options, { {
    name = "depth_scaling_linearity", kind = "lines", xlabel = "Model depth (layers)", ylabel = "Time per token (µs)",
    series = series, zero = true,
    caption = { what = "Whether the time per token is linear in depth: the line through the depths of the main study, "
      .. "and one depth more", statistic = "inverse of the mean throughput of the fastest updates",
      n = ("%d updates in each of %d run%s at the greatest depth"):format(context.n, #context.repetitions,
        #context.repetitions == 1 and "" or "s"), note = table.concat(notes, ". ") },
  } })
end

return depth3
