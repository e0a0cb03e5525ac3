-- What the scale-swizzle study says at its end: times beside copies, the columns of the published table, and from
-- the counters and the controlled series, what limits the kernels.
--
--   summary.text(data, causes) -> text of scale_swizzle.tsv and scale_swizzle_causes.tsv (lab.recorded.read)

local limits = require "tilelab.scale_swizzle.limits"
local record = require "tilelab.record"
local rows = require "tilelab.rows"
local swizzle = require "tilelab.draw.scale_swizzle"
local text_table = require "tilelab.text_table"

local summary = {}

local function fixed(format, value) return value and format:format(value) or "-" end

-- Problems in the order of the rows: {name, dirty = rows, clean = rows, host = row}.
local function problems(data)
  local list, by_name = {}, {}
  for _, row in ipairs(data.rows) do
    local name = swizzle.problem_of(row)
    local p = by_name[name]
    if not p then
      p = { name = name, dirty = {}, clean = {}, first = row }
      by_name[name], list[#list + 1] = p, p
    end
    if row.variant == "host_loop" then p.host = row else table.insert(p[row.flush], row) end
  end
  return list
end

local function fastest(list)
  local best
  for _, row in ipairs(list) do
    if not best or tonumber(row.time_us) < tonumber(best.time_us) then best = row end
  end
  return best
end

local function times(data)
  local cells = { { "problem", "fastest kernel", "threads", "tiles", "us", "copy, us", "beyond, us", "copy ratio",
    "clean" } }
  for _, p in ipairs(problems(data)) do
    local best = fastest(p.dirty)
    if best then
      local clean
      for _, row in ipairs(p.clean) do
        if row.variant == best.variant then clean = row end
      end
      local time, copy = data:number(best, "time_us"), data:number(best, "copy_us")
      cells[#cells + 1] = { p.name, best.variant, best.block_threads, best.tiles_per_block, fixed("%.2f", time),
        fixed("%.2f", copy), fixed("%+.2f", time - copy), fixed("%.3f", data:number(best, "copy_ratio")),
        fixed("%.3f", clean and data:number(clean, "copy_ratio")) }
    end
  end
  return "Kernel times alone, L2 cold, beside the fastest copy of as many bytes\n\n"
    .. text_table.align(cells, { [3] = true, [4] = true, [5] = true, [6] = true, [7] = true, [8] = true, [9] = true })
end

-- Published rows by "rows cols": the faster kernel of each shape.
local function published()
  local data, best = record.read(swizzle.PUBLISHED), {}
  for _, row in ipairs(data.rows) do
    local key = row.rows .. " " .. row.cols
    if not best[key] or data:number(row, "kernel_us") < data:number(best[key], "kernel_us") then best[key] = row end
  end
  return best
end

-- The columns of the published table, ours and theirs; nil where no shape has a host loop.
local function compared(data)
  local cells, theirs = { { "rows", "cols", "host loop, us", "call, us", "kernel, us", "GB/s of the call", "speed-up",
    "published: torch, us", "call, us", "GB/s", "speed-up" } }, published()
  for _, p in ipairs(problems(data)) do
    local best, other = fastest(p.dirty), theirs[p.first.rows .. " " .. p.first.cols]
    local call = best and rows.number(best.call_us)
    if p.host and call then
      local host = data:number(p.host, "call_us")
      local line = { best.rows, best.cols, fixed("%.0f", host), fixed("%.2f", call),
        fixed("%.2f", data:number(best, "time_us")), fixed("%.0f", swizzle.bytes(best) / call * 1e-3),
        fixed("%.0f", host / call) }
      for _, column in ipairs { "torch_us", "kernel_us", "kernel_gbps", "speedup_over_torch" } do
        line[#line + 1] = other and other[column] or "-"
      end
      cells[#cells + 1] = line
    end
  end
  local right = {}
  for i = 1, #cells[1] do right[i] = true end
  return #cells > 1 and "The published table's columns, 8 groups along K: this GPU, and as published for a B200; calls "
    .. "with L2 warm\n\n" .. text_table.align(cells, right) or nil
end

-- Counters of each kernel at the two widths.
local function counted(data, causes)
  local columns = { { "copy_ratio", "%.3f", "copy ratio" },
    { "occupancy_theoretical_pct", "%.0f", "occupancy: launch" }, { "occupancy_achieved_pct", "%.0f", "achieved" },
    { "load_efficiency_pct", "%.0f", "bytes used: loads" },
    { "store_efficiency_pct", "%.0f", "stores" }, { "bank_conflict_pct", "%.1f", "conflicts" },
    { "issue_active_pct", "%.0f", "issuing" }, { "alu_pct", "%.0f", "integer pipe" }, { "l1_pct", "%.0f", "L1 pipe" } }
  local head, right = { "problem", "kernel" }, {}
  for i, column in ipairs(columns) do head[2 + i], right[2 + i] = column[3], true end
  head[#head + 1] = "waits most for"
  local cells = { head }
  for _, row in ipairs(limits.shown(causes)) do
    local line = { swizzle.problem_of(row), row.variant }
    for _, column in ipairs(columns) do line[#line + 1] = fixed(column[2], rows.number(row[column[1]])) end
    line[#line + 1] = limits.top_stall(data, row) or "-"
    cells[#cells + 1] = line
  end
  if #cells == 1 then return nil end
  return "Counters of each kernel's fastest setting, percent\n\n" .. text_table.align(cells, right)
end

function summary.text(data, causes)
  local parts = { times(data), compared(data) or false, counted(data, causes) or false,
    table.concat(limits.answers(data, causes), "\n") }
  local kept = {}
  for _, part in ipairs(parts) do
    if part and part ~= "" then kept[#kept + 1] = part end
  end
  return "\n" .. table.concat(kept, "\n\n") .. "\n"
end

return summary
