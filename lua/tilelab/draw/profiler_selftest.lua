-- profiler_selftest.tsv: counters on kernels with known answers, a row a counter of a case.
--
--   case      what ran; a number at the end is its parameter: shared_conflict_8, stride_16
--   metric    short label or NVIDIA's name of the counter
--   expected  what it must read, computed from the launch alone
--   measured  what it read
--   ratio     measured over expected; 1 where both are 0

local draw = require "tilelab.draw"

local selftest = {
  schema = {
    { "case", "text" }, { "metric", "text" }, { "expected", "number" }, { "measured", "number" },
    { "ratio", "number" },
  },
}

-- One row of the figure for a counter and the cases that differ in their parameter only.
function selftest.draw(data, options)
  local points, values = {}, {}
  for i, row in ipairs(data.rows) do
    values[i] = data:number(row, "ratio")
    local family = row.case:gsub("[_=]?%d+$", "")
    points[i] = { x = ("%s: %s"):format(family, row.metric), y = values[i] }
  end
  return draw.figures(data, options, { {
    name = "profiler_selftest", kind = "dots", preset = "acm-full", xlabel = "Case and counter",
    ylabel = "Measured over expected", series = { { name = "one launch", points = points } },
    references = { { y = 1, label = "expected" } }, yrange = draw.ratio_range(values, 0.02),
    regions = { { from = 0.99, to = 1.01, label = "within 1 %" } },
    caption = { what = "Counters of kernels with known answers, over what they must read",
      n = #points, statistic = "counter of one case" },
  } })
end

return selftest
