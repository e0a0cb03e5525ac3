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

-- Counts how many different values of `column` each family has: { family = count }.
local function variety(data, column)
  local seen, count = {}, {}
  for _, row in ipairs(data.rows) do
    local family = family_of(row.case)
    local key = family .. "\t" .. row[column]
    if not seen[key] then seen[key], count[family] = true, (count[family] or 0) + 1 end
  end
  return count
end

-- One row of the figure for a family, or for each counter where it has several; a dot a case.
function selftest.draw(data, options)
  local points, values, cases, metrics = {}, {}, variety(data, "case"), variety(data, "metric")
  for i, row in ipairs(data.rows) do
    values[i] = data:number(row, "ratio")
    local family = family_of(row.case)
    local name = cases[family] > 1 and family or row.case
    points[i] = { x = metrics[family] > 1 and ("%s: %s"):format(name, row.metric) or name, y = values[i] }
  end
  return draw.figures(data, options, { {
    name = "profiler_selftest", kind = "dots", preset = "acm-full", xlabel = "Case and counter",
    ylabel = "Measured over expected", series = { { name = "one launch", points = points } },
    references = { { y = 1, label = "expected" } }, yrange = draw.ratio_range(values, 0.02),
    regions = { { from = 0.99, to = 1.01, label = "within 1 %" } },
    caption = { what = "Counters of kernels with known answers, over what they must read",
      n = #points, statistic = "ratio of one counter in one case",
      clock = draw.clock(data) or "not recorded (none of these counters depends on it)" },
  } })
end

return selftest
