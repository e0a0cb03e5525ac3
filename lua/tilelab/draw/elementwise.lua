-- elementwise.tsv: kernels of the training step that memory bounds, each beside a copy of as many bytes in the
-- same rounds; shapes of 30b-a3b, 16 384 tokens unless told. A row a kernel.
--
--   op case precision   what it does (lua/tilelab/elementwise/cases.lua); precision of the tokens' activations,
--                       while rows of the experts are bf16 throughout
--   variant
--   largest_bytes       of the largest tensor
--   logical_bytes       that the equation needs
--   time_us time_us_lo time_us_hi   median with its interval, hot: launches after each other
--   copy_us             median of the copy, which reads half of the bytes and writes half
--   copy_ratio copy_ratio_lo copy_ratio_hi   bandwidth of logical bytes over that of the copy, round by round:
--                       median and its interval. Above 1: more is read than written, which memory does faster
--   logical_gbps
--   rounds              that were kept
--   sm_clock_mhz        during the timed calls

local draw = require "tilelab.draw"

local elementwise = {
  schema = {
    { "op", "text" }, { "case", "text" }, { "precision", "text", { "bf16", "fp32" } }, { "variant", "text" },
    { "largest_bytes", "integer" }, { "logical_bytes", "number" }, { "time_us", "number" }, { "time_us_lo", "number" },
    { "time_us_hi", "number" }, { "copy_us", "number" }, { "copy_ratio", "number" }, { "copy_ratio_lo", "number" },
    { "copy_ratio_hi", "number" }, { "logical_gbps", "number" }, { "rounds", "integer" }, { "sm_clock_mhz", "number?" },
  },
}

local FLOOR = 0.75 -- of tests/targets.tsv, for tensors above 64 MiB

function elementwise.draw(data, options)
  local series, by_name, order, seen = {}, {}, {}, {}
  for s, precision in ipairs { "bf16", "fp32" } do
    series[s] = { name = precision, points = {} }
    by_name[precision] = series[s]
  end
  for _, row in ipairs(data.rows) do
    local name = ("%s, %s"):format(row.op:gsub("_", " "), row.case)
    if not seen[name] then seen[name], order[#order + 1] = true, name end
    local points = by_name[row.precision].points
    points[#points + 1] = { x = name, y = data:number(row, "copy_ratio"), lo = data:number(row, "copy_ratio_lo"),
      hi = data:number(row, "copy_ratio_hi") }
  end
  for s = #series, 1, -1 do
    if #series[s].points == 0 then table.remove(series, s) end
  end
  return draw.figures(data, options, { {
    name = "elementwise", kind = "dots", preset = "acm-full", xlabel = "Kernel", ylabel = "Share of copy bandwidth",
    series = series, order = order, zero = true, references = { { y = 1, label = "copy of as many bytes" },
      { y = FLOOR, label = "target above 64 MiB" } },
    caption = { what = ("Kernels of the training step that memory bounds, at the shapes of 30b-a3b, %s tokens: bytes "
      .. "that the equation needs over time, as a share of a copy's in the same rounds; by precision of activations")
      :format(data.provenance.tokens or "?"), n = ("%s rounds"):format(data.rows[1].rounds), statistic = "median",
      note = "Above 1: more is read than written, which memory does faster. The router and the sort of slots move few "
        .. "bytes: their time is latency" },
  } })
end

return elementwise
