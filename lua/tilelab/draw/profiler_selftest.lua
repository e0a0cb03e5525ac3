-- profiler_selftest.tsv: counters on kernels with known answers, a row a counter of a case.
--
--   case      what ran; cases that differ in their numbers only ("loads, stride 8 words") are a family
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

local function family_of(case) return (case:gsub("%d+", "n")) end

-- Families of several cases, by name.
local function families(data)
  local first, several = {}, {}
  for _, row in ipairs(data.rows) do
    local family = family_of(row.case)
    first[family] = first[family] or row.case
    several[family] = several[family] or first[family] ~= row.case
  end
  return several
end

-- One row of the figure for a counter of a family, a dot a case.
function selftest.draw(data, options)
  local points, values, several = {}, {}, families(data)
  for i, row in ipairs(data.rows) do
    values[i] = data:number(row, "ratio")
    local family = family_of(row.case)
    points[i] = { x = ("%s: %s"):format(several[family] and family or row.case, row.metric),
      y = values[i] }
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
