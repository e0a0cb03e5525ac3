-- gemm_ladder.tsv: from a plain grouped GEMM to the final one, a row a step of a problem.
--
--   op            fwd_w13 fwd_w2 (Y = X W^T), dgrad_w2 dgrad_w13 (dX = dY W)
--   experts rows distribution   groups, rows of all groups, how they are spread over the groups
--   step name     from 1, each with one technique more than the step before; 0 is one dense product of the same
--                 FLOPs and transposes
--   variant       kernel; stages turns multicast tail band stack are its tunables
--   time_us time_us_lo time_us_hi   median with its 95 % interval
--   rounds        that were kept
--   tflops        over time_us
--   share_of_dense   median over the rounds of the dense product's time over this one's
--   gain gain_lo gain_hi   time of the step before over this one's, by rounds; without an interval where the two
--                 were not timed in the same rounds
--   tensor_pct dram_gbps dram_pct   by counter, over time_us and at sm_clock_mhz, in percent of the peak
--   l2_hit_pct    sectors found in L2, of those looked up, by counter, L2 empty at the start
--   occupancy_pct    warps on a multiprocessor, of 64, by counter
--   stall_<reason>_pct   of all warps that did not issue; other is the rest
--   sm_clock_mhz  during the timed calls; power_w at the end of the rounds

local draw = require "tilelab.draw"
local figures = require "tilelab.grouped_gemm.figures"
local metrics = require "tilelab.metrics"
local rows = require "tilelab.rows"

local ladder = {
  TUNABLES = { "stages", "turns", "multicast", "tail", "band", "stack" },
  STALLS = { "long_scoreboard", "gmma", "barrier", "wait", "short_scoreboard", "mio_throttle", "math_pipe_throttle" },
  schema = {
    { "op", "text", { "fwd_w13", "fwd_w2", "dgrad_w2", "dgrad_w13" } }, { "experts", "integer" },
    { "rows", "integer" }, { "distribution", "text" }, { "step", "integer" }, { "name", "text" },
    { "variant", "text" }, { "stages", "integer?" }, { "turns", "integer?" }, { "multicast", "integer?" },
    { "tail", "integer?" }, { "band", "integer?" }, { "stack", "integer?" }, { "time_us", "number" },
    { "time_us_lo", "number" }, { "time_us_hi", "number" }, { "rounds", "integer" }, { "tflops", "number" },
    { "share_of_dense", "number?" },
    { "gain", "number?" }, { "gain_lo", "number?" }, { "gain_hi", "number?" }, { "tensor_pct", "number?" },
    { "dram_gbps", "number?" }, { "dram_pct", "number?" }, { "l2_hit_pct", "number?" },
    { "occupancy_pct", "number?" },
  },
}
for _, reason in ipairs(ladder.STALLS) do
  ladder.schema[#ladder.schema + 1] = { "stall_" .. reason .. "_pct", "number?" }
end
for _, column in ipairs { "stall_other_pct", "sm_clock_mhz", "power_w" } do
  ladder.schema[#ladder.schema + 1] = { column, "number?" }
end

-- Rows of the steps, and of the dense product.
local function parts(data)
  local steps, dense = {}, {}
  for _, row in ipairs(data.rows) do table.insert(row.step == "0" and dense or steps, row) end
  return steps, dense
end

-- Bars of throughput, a series a number of experts; the dense product as a line, which has a height for each of them:
-- it is the same product, but the clock is that of the rounds.
local function climb(data, steps, dense)
  local series, lines = {}, {}
  for _, experts in ipairs(figures.values_of(steps, "experts")) do
    local points = {}
    for i, row in ipairs(rows.where(steps, { experts = experts })) do
      points[i] = figures.throughput(data, row)
      points[i].x, points[i].gain = row.name, rows.number(row.gain)
    end
    series[#series + 1] = { name = experts .. " experts", points = points }
  end
  for i, row in ipairs(dense) do
    lines[i] = { y = data:number(row, "tflops"), label = ("dense product, %s experts' rounds"):format(row.experts) }
  end
  return { name = "gemm_ladder", kind = "steps", ylabel = "Useful TFLOP/s", series = series,
    references = lines,
    caption = figures.caption(data, steps, "Throughput with one technique more from bar to bar", "median",
      "Gains are medians of the rounds' ratios where two steps were timed together. The dense product is cuBLASLt's "
      .. "of all rows with the weights of one expert") }
end

local QUANTITIES = { { "tensor_pct", "tensor cores" }, { "dram_pct", "DRAM bandwidth" },
  { "l2_hit_pct", "L2 hit rate" }, { "occupancy_pct", "occupancy" } }

-- A series a column of percentages; those without any number are left out.
local function percentages(list, columns)
  local series = {}
  for _, column in ipairs(columns) do
    local points = {}
    for _, row in ipairs(list) do
      local value = rows.number(row[column[1]])
      points[#points + 1] = value and { x = row.name, y = value }
    end
    if #points > 0 then series[#series + 1] = { name = column[2], points = points } end
  end
  return series
end

local function counters(data, list, experts)
  return { name = "gemm_ladder_counters_" .. experts, kind = "bars", preset = "acm-full", xlabel = "Step",
    ylabel = "Percent", yrange = { 0, 100 }, series = percentages(list, QUANTITIES),
    caption = figures.reading(data, list, "FLOPs of wgmma and bytes of device memory of their peaks, sectors found in "
      .. "L2 of those looked up, and warps of the 64 that a multiprocessor holds") }
end

local function stalls(data, list, experts)
  local columns, order, legend = {}, {}, {}
  for i, reason in ipairs(ladder.STALLS) do
    columns[i], order[i] = { "stall_" .. reason .. "_pct", reason }, reason
    legend[i] = reason .. ": " .. metrics.find("stall_" .. reason).text:match "^Warps (.*), at each issued"
  end
  columns[#columns + 1] = { "stall_other_pct", "other" }
  return { name = "gemm_ladder_stalls_" .. experts, kind = "stack", preset = "acm-full", xlabel = "Step",
    ylabel = "Stalled warps (%)", series = percentages(list, columns), order = order,
    caption = figures.reading(data, list, "Why warps did not issue, as shares of all stalls",
      table.concat(legend, "; ")) }
end

function ladder.draw(data, options)
  local steps, dense = parts(data)
  local specs = { climb(data, steps, dense) }
  for _, experts in ipairs(figures.values_of(steps, "experts")) do
    local list = rows.where(steps, { experts = experts })
    specs[#specs + 1] = counters(data, list, experts)
    specs[#specs + 1] = stalls(data, list, experts)
  end
  return draw.figures(data, options, specs)
end

return ladder
