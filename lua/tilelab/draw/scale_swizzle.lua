-- scale_swizzle.tsv: scales to the blocked layout, a row a setting of a variant on a problem.
--
--   grouping      dense, m_groups, k_groups, per_group_3d (kernels/scale_swizzle/op.h)
--   rows cols     of the scales; of per_group_3d, those of each group
--   groups        1 for dense
--   variant       kernel; host_loop brings the scales to the host, arranges them there and brings them back
--   block_threads
--   tiles_per_block   tiles of 128 by 4 scales that a block transposes at a time; "-" where the groups decide. The
--                 other tunables are the plan's own choice
--   flush         how L2 was emptied: dirty (a memset, whose lines have to leave first), clean (a read; of the
--                 fastest setting of each variant only), none (host_loop)
--   time_us time_us_lo time_us_hi   of the kernel alone, median with its 95 % interval; of host_loop a call, with
--                 the shortest and the longest
--   call_us       host clock around one call and the wait for it, L2 warm
--   copy_us       of the fastest of several copies of as many bytes in the same rounds
--   copy_ratio    median of the rounds' ratios, copy over kernel; of host_loop the ratio of both medians
--   logical_gbps  input and padded output, over time_us
--   dram_gbps     read and written in device memory, by counter, over time_us. What comes from counters is there
--                 for the fastest setting of each variant; counted from clean lines
--   occupancy_theoretical_pct limiter waves   by the launch's shape
--   occupancy_achieved_pct   by counter
--   bank_conflict_pct        wavefronts that loads and stores of shared memory took more, less those for which others
--                            had the banks (what the copy engine writes, what global loads bring), of all of them
--   sectors_per_request_ld sectors_per_request_st   of global loads and stores; 32-byte sectors. Loads by the
--                 copy engine do not show there
--   top_stall     why most warps did not issue
-- The provenance holds null_us_1 and null_us_8: the time of a kernel that does nothing, with 1 and with 8 blocks a
-- multiprocessor.

local draw = require "tilelab.draw"
local figure = require "tilelab.figure"
local record = require "tilelab.record"
local rows = require "tilelab.rows"

local scale_swizzle = {
  schema = {
    { "grouping", "text", { "dense", "m_groups", "k_groups", "per_group_3d" } }, { "rows", "integer" },
    { "cols", "integer" }, { "groups", "integer" },
    { "variant", "text", { "smxx_naive", "smxx_col_parallel", "smxx_vec16", "smxx_smem", "sm90_tma", "sm90_bulk",
      "smxx_registers", "smxx_windows", "host_loop" } },
    { "block_threads", "integer?" }, { "tiles_per_block", "integer?" },
    { "flush", "text", { "dirty", "clean", "none" } }, { "time_us", "number" }, { "time_us_lo", "number" },
    { "time_us_hi", "number" }, { "call_us", "number?" }, { "copy_us", "number" }, { "copy_ratio", "number" },
    { "logical_gbps", "number" }, { "dram_gbps", "number?" }, { "occupancy_theoretical_pct", "number?" },
    { "occupancy_achieved_pct", "number?" }, { "limiter", "text?" }, { "waves", "number?" },
    { "bank_conflict_pct", "number?" }, { "sectors_per_request_ld", "number?" },
    { "sectors_per_request_st", "number?" }, { "top_stall", "text?" },
  },
  -- Variants of K groups in the order of the ladder: name, what sets it apart, slot, and that in one word.
  VARIANTS = {
    { "smxx_naive", "naive", 8, "naive" }, { "smxx_col_parallel", "columns in parallel", 5, "columns" },
    { "smxx_vec16", "16-byte stores", 4, "stores" }, { "smxx_smem", "shared memory", 3, "shared" },
    { "sm90_tma", "TMA loads", 2, "TMA" }, { "smxx_registers", "register transpose", 1, "registers" },
  },
  PUBLISHED = figure.root .. "experiments/published_scale_swizzle.tsv",
}

-- --- selections -------------------------------------------------------------------------------

function scale_swizzle.problem_of(row)
  return ("%s (%s,%s) G=%s"):format(row.grouping, row.rows, row.cols, row.groups)
end

-- The fastest kernels: {key = row} with key of each row from by(row); rows without a key are left out.
function scale_swizzle.fastest(list, by)
  local best = {}
  for _, row in ipairs(list) do
    local key = row.variant ~= "host_loop" and row.flush ~= "clean" and by(row)
    if key and (not best[key] or tonumber(row.time_us) < tonumber(best[key].time_us)) then best[key] = row end
  end
  return best
end

-- Bytes of a row's problem, from its throughput.
function scale_swizzle.bytes(row) return tonumber(row.logical_gbps) * tonumber(row.time_us) * 1e3 end

local function throughput(row)
  local bytes = scale_swizzle.bytes(row)
  return { y = bytes / tonumber(row.time_us) * 1e-3, lo = bytes / tonumber(row.time_us_hi) * 1e-3,
    hi = bytes / tonumber(row.time_us_lo) * 1e-3 }
end

local function caption(data, what, statistic, note)
  return { what = what .. ", L2 cold", n = data.provenance.rounds and data.provenance.rounds .. " rounds",
    statistic = statistic, note = note }
end

-- --- figures ----------------------------------------------------------------------------------

-- A point a variant and shape.
local function occupancy(data)
  local series = {}
  for _, variant in ipairs(scale_swizzle.VARIANTS) do
    local points = {}
    for _, row in pairs(scale_swizzle.fastest(data.rows, function(row)
      return row.variant == variant[1] and row.grouping == "k_groups" and rows.number(row.occupancy_achieved_pct)
        and scale_swizzle.problem_of(row)
    end)) do
      points[#points + 1] = { x = data:number(row, "occupancy_achieved_pct"), y = data:number(row, "logical_gbps") }
    end
    table.sort(points, function(a, b) return a.x < b.x end)
    if #points > 0 then
      series[#series + 1] = { name = variant[2], slot = variant[3], points = points, style = "points" }
    end
  end
  return { name = "scale_swizzle_occupancy", kind = "lines", preset = "acm-column", logy = true, series = series,
    xlabel = "Achieved occupancy (%)", ylabel = "Input and output (GB/s)",
    caption = caption(data, "Throughput against achieved occupancy: K groups, each variant's fastest setting at each "
      .. "shape and number of groups", "median; occupancy of one launch", "Shapes of 2048 to 8192 rows by 512 and 4096 "
      .. "columns of scales") }
end

local LADDER = { rows = "8192", cols = "4096" }

local function ladder(data)
  local series, copies = {}, 0
  for slot, groups in ipairs { "8", "32" } do
    local points = {}
    local best = scale_swizzle.fastest(data.rows, function(row)
      return row.grouping == "k_groups" and row.rows == LADDER.rows and row.cols == LADDER.cols
        and row.groups == groups and row.variant
    end)
    for _, variant in ipairs(scale_swizzle.VARIANTS) do
      local row = best[variant[1]]
      if row then
        points[#points + 1] = throughput(row)
        points[#points].x = variant[2]
        copies = math.max(copies, scale_swizzle.bytes(row) / data:number(row, "copy_us") * 1e-3)
      end
    end
    if #points > 0 then series[#series + 1] = { name = groups .. " groups", slot = slot, points = points } end
  end
  return { name = "scale_swizzle_ladder", kind = "steps", ylabel = "Input and output (GB/s)", series = series,
    references = copies > 0 and { { y = copies, label = "copy of as many bytes" } } or nil,
    caption = caption(data, "From the naive kernel to the best, each at its fastest block size: K groups, scales of "
      .. "8192 rows by 4096 columns", "median") }
end

-- Times of published kernels, the faster of each shape: {x = bytes, y = us}.
local function published()
  local data, best, points = record.read(scale_swizzle.PUBLISHED), {}, {}
  for _, row in ipairs(data.rows) do
    local key, time = row.rows .. " " .. row.cols, data:number(row, "kernel_us")
    if not best[key] or time < best[key].y then
      best[key] = { x = data:number(row, "kernel_gbps") * time * 1e-3, y = time }
    end
  end
  for _, point in pairs(best) do points[#points + 1] = point end
  table.sort(points, function(a, b) return a.x < b.x end)
  return points
end

local function time_against_bytes(data)
  local best = scale_swizzle.fastest(data.rows, function(row)
    return row.grouping == "k_groups" and row.groups == "8" and scale_swizzle.problem_of(row)
  end)
  local kernel, call, copy = {}, {}, {}
  for _, row in pairs(best) do
    local x = scale_swizzle.bytes(row) * 1e-6
    kernel[#kernel + 1] = { x = x, y = data:number(row, "time_us"), lo = data:number(row, "time_us_lo"),
      hi = data:number(row, "time_us_hi") }
    call[#call + 1] = { x = x, y = rows.number(row.call_us) }
    copy[#copy + 1] = { x = x, y = data:number(row, "copy_us") }
  end
  for _, list in ipairs { kernel, call, copy } do table.sort(list, function(a, b) return a.x < b.x end) end
  local floor = tonumber(data.provenance.null_us_1)
  local series = #kernel > 0 and { { name = "best kernel", slot = 1, points = kernel },
    { name = "best kernel, time per call", slot = 6, points = call },
    { name = "copy of as many bytes", slot = 7, points = copy, style = "line" },
    { name = "published, B200: time per call", slot = 2, points = published(), style = "points" } } or {}
  return { name = "scale_swizzle_time", kind = "lines", logx = 10, logy = true, series = series,
    xlabel = "Input and padded output (MB)", ylabel = "Time (µs)",
    references = floor and { { y = floor, label = "kernel that does nothing" } } or nil,
    caption = caption(data, "Time against bytes: K groups, 8 groups, 2048 to 8192 rows by 512 and 4096 columns of "
      .. "scales", "median", "Time per call holds launch and wait, with L2 warm. Published: pytorch/ao, pull request "
      .. "3416, the faster of its two kernels, on a B200") }
end

function scale_swizzle.draw(data, options)
  return draw.figures(data, options, { occupancy(data), ladder(data), time_against_bytes(data) })
end

return scale_swizzle
