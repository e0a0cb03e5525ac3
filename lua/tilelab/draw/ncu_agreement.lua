-- ncu_agreement.tsv: the same launches under tilelab and under Nsight Compute's command line.
--
--   kernel   which launch
--   metric   NVIDIA's name
--   kind     count, occupancy, cycle_ratio (a share of active cycles), rate (per second, or a share of
--            elapsed cycles: the clock and each tool's start and end decide it, so it is reported and
--            held to nothing)
--   tilelab  what tilelab read
--   ncu      what ncu read
--   ratio    tilelab over ncu; 1 where both are 0, "-" where only ncu read 0

local draw = require "tilelab.draw"

local KINDS = { "count", "occupancy", "cycle_ratio", "rate" }

local CLOCK = "gpc__cycles_elapsed.avg.per_second" -- of the counted run

local agreement = {
  schema = {
    { "kernel", "text" }, { "metric", "text" }, { "kind", "text", KINDS }, { "tilelab", "number" },
    { "ncu", "number" }, { "ratio", "number?" },
  },
}

function agreement.draw(data, options)
  local series, values, kernels, num_kernels = {}, {}, {}, 0
  local lo, hi = math.huge, -math.huge
  for _, row in ipairs(data.rows) do
    if row.metric == CLOCK then
      local clock = data:number(row, "tilelab") * 1e-6
      lo, hi = math.min(lo, clock), math.max(hi, clock)
    end
  end
  for slot, kind in ipairs(KINDS) do
    local points = {}
    for _, row in ipairs(data.rows) do
      if row.kind == kind and row.ratio ~= "-" then
        points[#points + 1] = { x = row.metric, y = data:number(row, "ratio") }
        values[#values + 1] = points[#points].y
      end
      if not kernels[row.kernel] then kernels[row.kernel], num_kernels = true, num_kernels + 1 end
    end
    if #points > 0 then
      series[#series + 1] = { name = (kind:gsub("_", " ")), points = points, slot = slot }
    end
  end
  return draw.figures(data, options, { {
    name = "ncu_agreement", kind = "dots", preset = "acm-full", xlabel = "Metric",
    ylabel = "tilelab over ncu", series = series, references = { { y = 1, label = "equal" } },
    regions = { { from = 0.98, to = 1.02, label = "within 2 %" } },
    yrange = draw.ratio_range(values, 0.04),
    caption = { what = "Counters of the same launches read by tilelab, over those read by ncu",
      n = ("%d readings of %d kernels"):format(#data.rows, num_kernels),
      statistic = "ratio of one counter of one kernel",
      clock = lo <= hi and draw.clock_range(lo, hi, "GPC") or nil,
      note = "Rates are shown, not held to anything: clocks are not locked, and the two tools begin and "
        .. "end their counts at other moments" },
  } })
end

return agreement
