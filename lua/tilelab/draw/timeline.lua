-- timeline.tsv: what the whole GPU did over a region, by lab.timeline.
--
--   metric    label of the catalogue: sm_busy, tensor_busy, dram_read_busy, ...
--   unit      of the value; those in % are drawn
--   time_us   when the interval began, from the first one on
--   value     mean over the interval; "-" where there is none

local core = require "tilelab_core"
local draw = require "tilelab.draw"
local rows = require "tilelab.rows"

local MAX_POINTS = 1000 -- of a series: more cannot be told apart at a column's width

-- What experiments/timeline.lua launches.
local REGION = "a dense product, the same product in 32 ragged groups, and a copy, from left to right"

local timeline = {
  schema = { { "metric", "text" }, { "unit", "text" }, { "time_us", "number" }, { "value", "number?" } },
}

local NAMES = { sm_busy = "multiprocessors", tensor_busy = "tensor cores", dram_read_busy = "memory reads",
  dram_write_busy = "memory writes" }

-- The rows of a result of lab.timeline, in the columns above.
function timeline.rows(result)
  local list = {}
  for _, series in ipairs(result.series) do
    for _, point in ipairs(series.points) do
      list[#list + 1] = { metric = series.name, unit = series.unit or "-", time_us = point.x,
        value = point.y == point.y and point.y or "-" }
    end
  end
  return list
end

-- Means over as many neighbours as needed to be few enough.
local function thinned(points)
  local stride = math.max(1, math.ceil(#points / MAX_POINTS))
  if stride == 1 then return points end
  local result = {}
  for first = 1, #points, stride do
    local last, sum, n = math.min(first + stride - 1, #points), 0, 0
    for i = first, last do
      if points[i].y == points[i].y then sum, n = sum + points[i].y, n + 1 end
    end
    result[#result + 1] = { x = points[first].x, y = sum / n }
  end
  return result, stride
end

function timeline.draw(data, options)
  local series, by_metric, last_us, merged, highest = {}, {}, 0, 1, 0
  for _, row in ipairs(data.rows) do
    if NAMES[row.metric] then
      if not by_metric[row.metric] then
        by_metric[row.metric] = { name = NAMES[row.metric], points = {} }
        series[#series + 1] = by_metric[row.metric]
      end
      local points, time_us = by_metric[row.metric].points, data:number(row, "time_us")
      last_us = math.max(last_us, time_us)
      points[#points + 1] = { x = time_us * 1e-3, y = tonumber(row.value) or 0 / 0 }
      highest = math.max(highest, rows.number(row.value) or 0)
    end
  end
  if #series == 0 then
    error(core.error_new("refused", data.path .. ": none of the metrics that are drawn", "format"), 0)
  end
  local count = #series[1].points
  for _, item in ipairs(series) do
    local stride
    item.points, stride = thinned(item.points)
    merged = math.max(merged, stride or 1)
  end
  return draw.figures(data, options, { {
    name = "timeline", kind = "trace", xlabel = "Time (ms)", ylabel = "Busy (% of peak)", series = series,
    yrange = highest <= 100 and { 0, 100 } or nil,
    caption = { what = "Activity of the whole GPU over " .. REGION,
      n = ("%d intervals of %.3g us"):format(count, count > 1 and last_us / (count - 1) or 0),
      clock = draw.clock(data) or "not recorded (shares of the peak at any clock)",
      statistic = merged > 1 and ("mean of %d intervals"):format(merged) or "mean of the interval" },
  } })
end

return timeline
