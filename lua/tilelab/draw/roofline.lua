-- roofline.tsv: measured ceilings, and kernels under them at each memory level.
--
--   kind      bandwidth (a sloped roof), peak (a flat one), point (a kernel)
--   point     name of the kernel, or of what the ceiling was measured with: copy, cublaslt, counter
--   level     dram or l2; compute for peaks
--   ai        FLOP by counter, those of padding too, per byte that crossed this level by counter; "-" for
--             ceilings
--   gflops    10^9 FLOP/s of the descriptor's FLOPs; "-" for bandwidths
--   gbps      10^9 bytes/s at this level; "-" for peaks
--   ceiling_gflops   of a point: min(fastest kernel, copy's bandwidth at its level x ai), for FLOP by
--             counter; "-" for ceilings
--   time_us time_us_lo time_us_hi   kernel time alone, median with its 95 % interval; "-" where the
--             number comes from a counter
--   sm_clock_mhz     during the measurement; the counter's peak is at this clock
--   source    where the number comes from: timing, counter
--
-- The figure counts the descriptor's FLOPs on both axes (x is gflops over gbps), so that a point at a
-- sloped roof moves bytes at its rate. With ai along x, a kernel that computes padding would seem to
-- lie far below a roof that it reaches.

local core = require "tilelab_core"
local draw = require "tilelab.draw"

local MAX_KERNELS = 8

local roofline = {
  schema = {
    { "kind", "text", { "bandwidth", "peak", "point" } }, { "point", "text" },
    { "level", "text", { "dram", "l2", "compute" } }, { "ai", "number?" }, { "gflops", "number?" },
    { "gbps", "number?" }, { "ceiling_gflops", "number?" }, { "time_us", "number?" },
    { "time_us_lo", "number?" }, { "time_us_hi", "number?" }, { "sm_clock_mhz", "number?" },
    { "source", "text" },
  },
}

local LEVELS = { { "dram", "DRAM" }, { "l2", "L2" } }

-- Roofs: of each level the highest bandwidth. Peaks: the two highest. Last, all peaks as text.
local function ceilings(data)
  local roofs, peaks, notes = {}, {}, {}
  for _, level in ipairs(LEVELS) do
    local best
    for _, row in ipairs(data.rows) do
      if row.kind == "bandwidth" and row.level == level[1] then
        local slope = data:number(row, "gbps") * 1e-3
        if not best or slope > best.slope then
          best = { slope = slope, label = ("%s %s, %.3g TB/s"):format(level[2], row.point, slope) }
        end
      end
    end
    roofs[#roofs + 1] = best
  end
  for _, row in ipairs(data.rows) do
    if row.kind == "peak" then
      local y = data:number(row, "gflops") * 1e-3
      local clock = tonumber(row.sm_clock_mhz)
      peaks[#peaks + 1] = { y = y, label = row.point }
      notes[#notes + 1] = ("%s: %.0f TFLOP/s%s"):format(row.point, y,
        clock and (" at %.2f GHz"):format(clock * 1e-3) or "")
    end
  end
  table.sort(peaks, function(a, b) return a.y > b.y end)
  if #roofs == 0 or #peaks == 0 then
    error(core.error_new("refused", ("%s: a roofline needs rows of kind bandwidth and peak"):format(
      data.path), "format"), 0)
  end
  return roofs, { peaks[1], peaks[2] }, table.concat(notes, "; ")
end

-- A series a kernel: its DRAM point, and its L2 point small, at the same height.
local function kernels(data)
  local list, by_name = {}, {}
  for _, row in ipairs(data.rows) do
    if row.kind == "point" then
      local series = by_name[row.point]
      if not series then
        series = { name = row.point, points = {} }
        by_name[row.point], list[#list + 1] = series, series
      end
      local y, time = data:number(row, "gflops") * 1e-3, tonumber(row.time_us)
      local lo, hi = tonumber(row.time_us_lo), tonumber(row.time_us_hi)
      series.points[#series.points + 1] = { x = y * 1e3 / data:number(row, "gbps"), y = y,
        lo = time and hi and y * time / hi, hi = time and lo and y * time / lo,
        mark = row.level == "l2" }
    end
  end
  return list
end

-- Up to eight kernels a figure: roofline, roofline_2, ...
function roofline.draw(data, options)
  local roofs, peaks, peaks_text = ceilings(data)
  local list, specs = kernels(data), {}
  for first = 1, #list, MAX_KERNELS do
    specs[#specs + 1] = {
      name = first == 1 and "roofline" or "roofline_" .. (first // MAX_KERNELS + 1),
      kind = "roofline", preset = "acm-full", xlabel = "Arithmetic intensity (FLOP/B)",
      ylabel = "Performance (TFLOP/s)",
      series = table.move(list, first, math.min(first + MAX_KERNELS - 1, #list), 1, {}),
      roofs = roofs, peaks = peaks, marked = "L2 traffic",
      caption = { what = "Roofline: the FLOPs that the equation needs, per second and per byte that DRAM moved or "
        .. "L2 sent by counter, under measured ceilings",
        n = data.provenance.rounds and data.provenance.rounds .. " rounds",
        statistic = "median", note = "Peaks: " .. peaks_text },
    }
  end
  return draw.figures(data, options, specs)
end

return roofline
