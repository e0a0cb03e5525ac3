-- scale_swizzle_causes.tsv: what limits the scale-swizzle kernels, a row a setting. One thing is varied within a
-- series, and the rest is held.
--
--   series        variants (the fastest setting of each kernel, all counters), occupancy (shared memory that a
--                 block holds and leaves alone, with the least L1; held_shared_kib=1 is none, and all L1), in_flight
--                 (stages of sm90_tma: the same warps, more bytes asked for), warps (the same bytes, more warps),
--                 load_bytes (8 or 16 at occupancies held alike), row_bytes (of a row side by side in one load),
--                 prefetch (bytes that L2 may fetch beyond), ahead (of m_groups: whether loads wait for the group
--                 ends, L2 was asked for the rows before, or loads need no ends), stores (where two groups meet in a
--                 piece of a row: for one after the other, or for both)
--   grouping rows cols groups variant   as in scale_swizzle.tsv
--   setting       the tunables that are not the plan's own choice
--   time_us time_us_lo time_us_hi copy_us copy_ratio logical_gbps dram_gbps   as there, L2 flushed by a memset
--   in_flight_kib    that a multiprocessor has asked for when all its blocks wait, by the launch's shape
--   occupancy_theoretical_pct limiter registers   by the launch; occupancy_achieved_pct by counter
--   instructions     of warps, by counter
--   issue_active_pct   cycles in which a scheduler issued; alu_pct of the integer pipe, l1_pct of the data stage of
--                 L1 and shared memory: of their peaks while a multiprocessor had work
--   load_efficiency_pct store_efficiency_pct   bytes that were asked for, of the sectors moved for them
--   sectors_per_request_ld sectors_per_request_st bank_conflict_pct   as there
--   stall_<reason>_pct   of all warps that did not issue; other is the rest
-- Only the series `variants` has sectors, conflicts and stalls, which take several passes.

local counters = require "tilelab.scale_swizzle.counters"
local draw = require "tilelab.draw"
local metrics = require "tilelab.metrics"
local rows = require "tilelab.rows"
local swizzle = require "tilelab.draw.scale_swizzle"

local where = rows.where

local causes = {
  schema = {
    { "series", "text", { "variants", "occupancy", "in_flight", "warps", "load_bytes", "row_bytes", "prefetch",
      "ahead", "stores" } },
    { "grouping", "text", { "dense", "m_groups", "k_groups", "per_group_3d" } }, { "rows", "integer" },
    { "cols", "integer" }, { "groups", "integer" }, { "variant", "text" }, { "setting", "text?" },
    { "time_us", "number" }, { "time_us_lo", "number" }, { "time_us_hi", "number" }, { "copy_us", "number" },
    { "copy_ratio", "number" }, { "logical_gbps", "number" }, { "dram_gbps", "number?" },
    { "in_flight_kib", "number?" }, { "occupancy_theoretical_pct", "number?" },
    { "occupancy_achieved_pct", "number?" }, { "limiter", "text?" }, { "registers", "integer?" },
    { "instructions", "number?" }, { "issue_active_pct", "number?" }, { "alu_pct", "number?" },
    { "l1_pct", "number?" }, { "load_efficiency_pct", "number?" }, { "store_efficiency_pct", "number?" },
    { "sectors_per_request_ld", "number?" }, { "sectors_per_request_st", "number?" },
    { "bank_conflict_pct", "number?" },
  },
}
for _, reason in ipairs(counters.STALLS) do
  causes.schema[#causes.schema + 1] = { "stall_" .. reason .. "_pct", "number?" }
end
causes.schema[#causes.schema + 1] = { "stall_other_pct", "number?" }

-- A tunable of a row's setting, or nil.
function causes.tunable(row, name) return tonumber(row.setting:match("%f[%w_]" .. name .. "=(%d+)")) end

-- Rows of the series `occupancy` of a kernel whose blocks hold shared memory, the least of it first: all have the
-- least L1.
function causes.held(data, cols, variant)
  local list = {}
  for _, row in ipairs(where(data.rows, { series = "occupancy", cols = cols, variant = variant })) do
    if causes.tunable(row, "held_shared_kib") > 1 then list[#list + 1] = row end
  end
  table.sort(list, function(a, b)
    return causes.tunable(a, "held_shared_kib") < causes.tunable(b, "held_shared_kib")
  end)
  return list
end

local function caption(data, what, list, statistic, note)
  local p = list[1]
  return p and { what = ("%s: K groups, scales of %s rows by %s columns, %s groups, L2 cold"):format(what, p.rows,
    p.cols, p.groups), n = data.provenance.rounds and data.provenance.rounds .. " rounds", statistic = statistic,
    note = note } or nil
end

-- --- figures ----------------------------------------------------------------------------------

-- Widths of the shapes that a series was measured at, "4096" and "512".
local function widths(data, series)
  local list, seen = {}, {}
  for _, row in ipairs(where(data.rows, { series = series, grouping = "k_groups" })) do
    if not seen[row.cols] then seen[row.cols], list[#list + 1] = true, row.cols end
  end
  return list
end

local function point(data, row, x)
  local bytes = data:number(row, "logical_gbps") * data:number(row, "time_us")
  return { x = x, y = data:number(row, "logical_gbps"), lo = bytes / data:number(row, "time_us_hi"),
    hi = bytes / data:number(row, "time_us_lo") }
end

-- Points of the rows along x(row), sorted; rows without an x are left out.
local function along(data, list, x)
  local points = {}
  for _, row in ipairs(list) do
    local value = x(row)
    if value then points[#points + 1] = point(data, row, value) end
  end
  table.sort(points, function(a, b) return a.x < b.x end)
  return points
end

local function achieved(row) return rows.number(row.occupancy_achieved_pct) end

-- Each kernel with less and less occupancy.
local function held(data, cols)
  local list, series = where(data.rows, { series = "occupancy", cols = cols }), {}
  for _, variant in ipairs(swizzle.VARIANTS) do
    local points = along(data, causes.held(data, cols, variant[1]), achieved)
    if #points > 0 then series[#series + 1] = { name = variant[2], slot = variant[3], points = points } end
  end
  return { name = "scale_swizzle_held_" .. cols, kind = "lines", logy = true, series = series,
    xlabel = "Achieved occupancy (%)", ylabel = "Input and output (GB/s)",
    caption = caption(data, "Each kernel with its occupancy alone varied, by shared memory that blocks hold and leave "
      .. "alone, with the least L1", list, "median; occupancy of one launch") }
end

-- Throughput against bytes in flight, at occupancies that are held.
local function in_flight(data, cols)
  local series = {}
  local function add(name, slot, list)
    local points = along(data, list, function(row) return rows.number(row.in_flight_kib) end)
    if #points > 0 then series[#series + 1] = { name = name, slot = slot, points = points } end
  end
  local staged = where(data.rows, { series = "in_flight", cols = cols })
  for slot, blocks in ipairs { 2, 4 } do
    local list = {}
    for _, row in ipairs(staged) do
      if causes.tunable(row, "blocks_per_multiprocessor") == blocks then list[#list + 1] = row end
    end
    add(("TMA loads, %d blocks of 4 warps"):format(blocks), slot + 1, list)
  end
  add("register transpose, fewer blocks, least L1", 1, causes.held(data, cols, "smxx_registers"))
  return { name = "scale_swizzle_in_flight_" .. cols, kind = "lines", logx = true, zero = true, series = series,
    xlabel = "Asked for by a multiprocessor (KiB)", ylabel = "Input and output (GB/s)",
    caption = caption(data, "Throughput against bytes in flight, with the warps held", staged, "median",
      "Bytes asked for by the launch's shape; of register transpose occupancy falls with them") }
end

-- Stalls of the variants at the two widths.
local function stalls(data)
  local list, series, order, legend = {}, {}, {}, {}
  for _, cols in ipairs { "4096", "512" } do
    for _, variant in ipairs(swizzle.VARIANTS) do
      for _, row in ipairs(where(data.rows, { series = "variants", grouping = "k_groups", rows = "8192", cols = cols,
        groups = "8", variant = variant[1] })) do
        if rows.number(row.stall_other_pct) then
          list[#list + 1] = { row = row, name = ("%s, %s"):format(variant[4], cols) }
        end
      end
    end
  end
  local columns = table.move(counters.STALLS, 1, #counters.STALLS, 1, {})
  columns[#columns + 1] = "other"
  for i, reason in ipairs(columns) do
    local points = {}
    for k, each in ipairs(list) do
      points[k] = { x = each.name, y = data:number(each.row, "stall_" .. reason .. "_pct") }
    end
    if #points > 0 then series[#series + 1] = { name = reason, points = points } end
    if reason ~= "other" then
      order[i] = reason
      legend[i] = reason .. ": " .. metrics.find("stall_" .. reason).text:match "^Warps (.*), at each issued"
    end
  end
  return { name = "scale_swizzle_stalls", kind = "stack", preset = "acm-full", xlabel = "Kernel, columns of scales",
    ylabel = "Stalled warps (%)", series = series, order = order,
    caption = list[1] and { what = "Why warps did not issue, as shares of all stalls: K groups, scales of 8192 rows, 8 "
      .. "groups", n = "1 launch", statistic = "reading of one launch", note = table.concat(legend, "; ") } or nil }
end

function causes.draw(data, options)
  local specs = {}
  for _, cols in ipairs(widths(data, "occupancy")) do specs[#specs + 1] = held(data, cols) end
  for _, cols in ipairs(widths(data, "in_flight")) do specs[#specs + 1] = in_flight(data, cols) end
  specs[#specs + 1] = stalls(data)
  return draw.figures(data, options, specs)
end

return causes
