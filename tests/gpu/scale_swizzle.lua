-- Every kernel of scale_swizzle and scale_unswizzle on the GPU against the CPU, bit for bit: shapes,
-- group sizes, many groups, odd addresses, garbage past the last end, more than 2^31 bytes, and ends
-- that are refused.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local on_gpu = dofile("tests/lua/gpu.lua")
local device, on_host, same = on_gpu.device, on_gpu.on_host, on_gpu.same
local cpu = lab.device "cpu"

local TAIL = 48 -- bytes of blocked past the extents

local function up(value, multiple) return (value + multiple - 1) // multiple * multiple end
local function tensor(where, dtype, ...)
  return lab.check(lab.tensor { device = where, dtype = dtype, shape = { ... } })
end

local function ends_of(sizes)
  local ends, sum = {}, 0
  for g, size in ipairs(sizes) do
    sum = sum + size
    ends[g] = sum
  end
  return ends, sum
end

-- The most that blocked can need, as the operation asks for it.
local function blocked_bytes(grouping, rows, columns, groups)
  if grouping == "m_groups" then return (rows + math.min(groups, rows) * 127) // 128 * 128 * up(columns, 4) end
  if grouping == "k_groups" then return (columns + math.min(groups, columns) * 3) // 4 * 4 * up(rows, 128) end
  return (grouping == "dense" and 1 or groups) * up(rows, 128) * up(columns, 4)
end

-- Both operations of a case on one device; scales as it is, or a copy on the GPU, `skew` bytes past an
-- aligned address. -> a launcher of a variant, with its outputs
local function problem(where, case, skew)
  local self = { ends = case.ends and lab.tensor_from(where, "i32", case.ends) }
  local numel = case.scales.numel
  self.scales = tensor(where, "u8", numel + skew):view(skew, case.scales.shape):copy(case.scales)
  function self.launch(op, variant, scales, blocked, tunables)
    local plan, reason = lab.plan { op = op, variant = variant, grouping = case.grouping, scales = scales,
      group_ends = self.ends, blocked = blocked, tunables = tunables }
    if plan then plan:launch() end
    return plan, reason
  end
  return self
end

local VARIANTS, BACK = {}, {}
for op, list in pairs { scale_swizzle = VARIANTS, scale_unswizzle = BACK } do
  for _, kernel in ipairs(lab.kernels(op)) do
    if kernel.arch ~= "cpu" then list[#list + 1] = kernel end
  end
end

-- Settings of the tunables to try: the defaults, and each other choice alone.
local function settings(kernel, all)
  local list = { {} }
  for _, tunable in ipairs(all and kernel.tunables or {}) do
    for _, choice in ipairs(tunable.choices) do
      if choice ~= tunable.default then list[#list + 1] = { [tunable.name] = choice } end
    end
  end
  return list
end

-- Whether some kernel refuses the case by design: a step of the study, or rows that TMA does not take.
local function may_refuse(message)
  return message:find("use smxx_registers", 1, true) or message:find("shared memory", 1, true)
    or message:find("must be aligned", 1, true) or message:find("16-byte aligned", 1, true)
end

local function check_swizzle(name, want, gpu, all)
  for _, kernel in ipairs(VARIANTS) do
    for _, tunables in ipairs(settings(kernel, all)) do
      local blocked, text = tensor(device, "u8", want.numel), name .. ", " .. kernel.variant
      for key, value in pairs(tunables) do text = ("%s, %s %d"):format(text, key, value) end
      local ok, plan, reason = pcall(gpu.launch, "scale_swizzle", kernel.variant, gpu.scales, blocked, tunables)
      if not ok then reason = tostring(plan) end
      if ok and plan then
        t.ok(same(on_host(blocked), want), text)
      elseif not may_refuse(reason) then
        t.ok(false, text .. ": " .. reason)
      end
    end
  end
end

local function check(name, case, all)
  case.columns, case.rows = case.scales.shape[case.scales.rank], case.scales.shape[case.scales.rank - 1]
  local groups = case.ends and #case.ends or case.scales.shape[1]
  local bytes = blocked_bytes(case.grouping, case.rows, case.columns, groups) + TAIL
  local want, host = tensor(cpu, "u8", bytes), problem(cpu, case, 0)
  host.launch("scale_swizzle", "cpu_plain", host.scales, want)
  local back = tensor(cpu, "u8", table.unpack(case.scales.shape))
  host.launch("scale_unswizzle", "cpu_plain", back, want)
  for _, skew in ipairs { 0, 5 } do
    local gpu, text = problem(device, case, skew), name .. (skew > 0 and ", skewed" or "")
    check_swizzle(text, want, gpu, all and skew == 0)
    for _, kernel in ipairs(BACK) do
      local blocked, scales = tensor(device, "u8", bytes):copy(want), gpu.scales:poison()
      gpu.launch("scale_unswizzle", kernel.variant, scales, blocked)
      t.ok(same(on_host(scales), back), text .. ", back, " .. kernel.variant)
    end
  end
end

local function bits(...) return tensor(cpu, "u8", ...):bits { seed = 5 } end

-- --- shapes and groups -------------------------------------------------------------------------

local SHAPES = { { 63, 1023 }, { 300, 9 }, { 133, 512 }, { 128, 1 }, { 1, 1 }, { 257, 96 }, { 130, 272 } }
for _, shape in ipairs(SHAPES) do
  local rows, columns = shape[1], shape[2]
  local name = ("%d by %d"):format(rows, columns)
  check(name .. ", dense", { grouping = "dense", scales = bits(rows, columns) })
  check(name .. ", 3 slices", { grouping = "per_group_3d", scales = bits(3, rows, columns) })
  for grouping, total in pairs { m_groups = rows, k_groups = columns } do
    check(name .. ", " .. grouping, { grouping = grouping, scales = bits(rows, columns),
      ends = { 0, total // 3, total // 3, total // 2, total, total } })
    check(name .. ", " .. grouping .. ", one group and a tail", { grouping = grouping, scales = bits(rows, columns),
      ends = { total // 2 } })
  end
end

local function every_size(count, step, bound)
  local sizes = {}
  for g = 1, count do sizes[g] = g * step % bound end
  return sizes
end

local SIZES = {
  { "odd sizes", { 1, 31, 33, 44, 127, 129 } },
  { "all empty", { 0, 0, 0 } },
  { "empty at the ends and between", { 0, 5, 0, 0, 260, 1, 0 } },
  { "ones", { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } },
  { "whole vectors", { 16, 64, 128, 0, 512, 16 } },
  { "long groups", { 1000, 37, 900, 0, 64, 1103 } },
  { "32 groups", every_size(32, 37, 61) },
  { "33 groups", every_size(33, 37, 61) },
  { "4096 groups", every_size(4096, 7, 5) },
}
-- Of thousands of groups the outputs are large, and comparing them takes most of the time.
local MANY = 1000
for _, item in ipairs(SIZES) do
  local name, ends, sum = item[1], ends_of(item[2])
  local many = #item[2] > MANY
  for _, spare in ipairs(many and { 7 } or { 0, 7 }) do
    for _, columns in ipairs { sum + spare, up(sum + spare, 16) } do
      if columns > 0 then
        check(("k_groups, %s, %d columns"):format(name, columns),
          { grouping = "k_groups", scales = bits(133, columns), ends = ends }, #item[2] == 32 or #item[2] == 6)
      end
    end
    for _, columns in ipairs(many and { 9, 16 } or { 9, 48, 224 }) do
      if sum + spare > 0 then
        check(("m_groups, %s, %d rows of %d"):format(name, sum + spare, columns),
          { grouping = "m_groups", scales = bits(sum + spare, columns), ends = ends }, #item[2] == 6)
      end
    end
  end
end
for mask = 0, 15 do
  local sizes = {}
  for g = 0, 3 do sizes[g + 1] = (mask >> g & 1) * (20 + 37 * g) end
  local ends = ends_of(sizes)
  check("empty groups " .. mask, { grouping = "k_groups", scales = bits(5, 320), ends = ends })
  check("empty groups " .. mask, { grouping = "m_groups", scales = bits(320, 16), ends = ends })
end

-- --- more than 2^31 bytes ----------------------------------------------------------------------

-- Filled with a piece of prime length over and over, so that equal bytes are nowhere a power of two
-- apart.
local function fill_large(scales)
  local flat, piece, at = scales:view(0, { scales.numel }), 16777213, 0
  local source = tensor(device, "u8", piece):bits { seed = 9 }
  while at < flat.numel do
    local count = math.min(piece, flat.numel - at)
    flat:view(at, { count }):copy(source:view(0, { count }))
    at = at + count
  end
  return scales
end

-- Row tile `tile` alone on the CPU is row tile `tile` of every group of the whole.
local function check_row_tile(name, scales, blocked, ends, tile)
  local rows, columns = scales.shape[1], scales.shape[2]
  local first = tile * 128
  local part = on_host(scales:rows(first + 1, math.min(first + 128, rows)))
  local want = tensor(cpu, "u8", blocked_bytes("k_groups", 128, columns, #ends))
  lab.check(lab.plan { op = "scale_swizzle", variant = "cpu_plain", grouping = "k_groups", scales = part,
    group_ends = lab.tensor_from("cpu", "i32", ends), blocked = want }):launch()
  local base, here, begin, good = 0, 0, 0, true
  for _, stop in ipairs(ends) do
    local extent = 128 * up(stop - begin, 4)
    if extent > 0 then
      good = good and same(on_host(blocked:view(base + tile * extent, { extent })), want:view(here, { extent }))
    end
    base, here, begin = base + extent * (up(rows, 128) // 128), here + extent, stop
  end
  t.ok(good, ("%s, row tile %d"):format(name, tile))
end

local function check_large()
  local rows, columns = 131000, 17008
  local scales, reason = lab.tensor { device = device, dtype = "u8", shape = { rows, columns } }
  if not scales then return t.skip("more than 2^31 bytes: " .. reason) end
  fill_large(scales)
  for grouping, ends in pairs { k_groups = { 3, 3, 8190, 16999, 17001 }, dense = { columns } } do
    local blocked = tensor(device, "u8", blocked_bytes(grouping, rows, columns, #ends))
    for _, kernel in ipairs(VARIANTS) do
      local plan = lab.plan { op = "scale_swizzle", variant = kernel.variant, grouping = grouping, scales = scales,
        group_ends = grouping == "k_groups" and lab.tensor_from(device, "i32", ends) or nil, blocked = blocked }
      if plan then
        local name = ("%d bytes, %s, %s"):format(scales.numel, grouping, kernel.variant)
        blocked:poison()
        plan:launch()
        for _, tile in ipairs { 0, 513, 986, 1023 } do check_row_tile(name, scales, blocked, ends, tile) end
      end
    end
  end
  local ends = lab.tensor_from(device, "i32", { 3, 3, 8190, 16999, 17001 })
  local blocked = tensor(device, "u8", blocked_bytes("k_groups", rows, columns, 5))
  local back = tensor(device, "u8", rows, columns)
  local args = { grouping = "k_groups", scales = scales, group_ends = ends, blocked = blocked }
  args.op, args.variant = "scale_swizzle", "smxx_registers"
  lab.check(lab.plan(args)):launch()
  args.op, args.variant, args.scales = "scale_unswizzle", "smxx_plain", back
  lab.check(lab.plan(args)):launch()
  for _, row in ipairs { 1, 126300, rows } do
    local got, want = on_host(back:rows(row, row)), on_host(scales:rows(row, row))
    t.ok(same(got:view(0, { 17001 }), want:view(0, { 17001 })), ("back, row %d"):format(row))
  end
end
check_large()

-- --- how memory is read and written -----------------------------------------------------------

-- Sectors and conflicts of one launch, by counters; nothing is asked for ahead.
local function counted(grouping, variant, rows, columns, ends)
  local plan = lab.check(lab.plan { op = "scale_swizzle", variant = variant, grouping = grouping,
    scales = tensor(device, "u8", rows, columns):bits { seed = 3 },
    group_ends = ends and lab.tensor_from(device, "i32", ends) or nil,
    blocked = tensor(device, "u8", blocked_bytes(grouping, rows, columns, ends and #ends or 1)),
    tunables = variant == "smxx_registers" and { prefetch_bytes = 32 } or nil })
  return lab.metrics.by_label(lab.check(lab.profile { device = device, quiet = true,
    metrics = { "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
      "shared_conflicts", "shared_wavefronts" }, run = function() plan:launch() end }))
end

local function check_memory()
  local rows, columns = 2048, 1024
  local sectors = rows * columns // 32
  for _, case in ipairs {
    { "dense", "smxx_registers" }, { "dense", "sm90_bulk", 512 },
    { "m_groups", "smxx_registers", ends = { 256, 256, 1024, rows } },
    { "m_groups", "sm90_bulk", 512, ends = { 256, 256, 1024, rows } },
    { "m_groups", "smxx_windows", ends = { 256, 256, 1024, rows } },
    { "k_groups", "smxx_registers", ends = { 128, 384, 384, columns } },
    { "k_groups", "smxx_smem", ends = { 128, 384, 384, columns } },
    { "k_groups", "sm90_tma", ends = { 128, 384, 384, columns } },
  } do
    local grouping, variant, width = case[1], case[2], case[3] or columns
    local wanted = sectors * width // columns
    local got, name = counted(grouping, variant, rows, width, case.ends), ("%s, %s"):format(variant, grouping)
    local loaded = got["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
    local stored = got["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"]
    t.ok(stored == wanted, ("%s: %d sectors are stored, %d needed"):format(name, stored, wanted))
    -- Ends of groups are loaded as well, smxx_smem's words that follow a row's piece, and the rows that follow a
    -- window of smxx_windows.
    local most = variant:find "^sm90" and wanted // 8 or variant == "smxx_smem" and wanted * 11 // 8
      or variant == "smxx_windows" and wanted * 7 // 4
      or grouping == "dense" and wanted or wanted * 17 // 16
    t.ok(loaded <= most, ("%s: %d sectors are loaded, at most %d expected"):format(name, loaded, most))
    t.ok(got.shared_conflicts <= got.shared_wavefronts // 100,
      ("%s: %d conflicts in %d wavefronts"):format(name, got.shared_conflicts, got.shared_wavefronts))
  end
  lab.profile_close()
end
if lab.counters(device) then check_memory() else t.skip "counters are refused" end

-- --- ends that are refused ---------------------------------------------------------------------

local function refused(fn, words, name)
  local ok, message = pcall(fn)
  message = ok and "no error was raised" or tostring(message)
  t.ok(message:find(words, 1, true), name .. (message:find(words, 1, true) and "" or ": " .. message))
end

local function check_bad(op, kernel, grouping)
  local scales, blocked = bits(320, 320), tensor(device, "u8", 320 * 1200)
  local ends, who = tensor(device, "i32", 4), op .. "/" .. kernel.variant
  local gpu = tensor(device, "u8", 320, 320):copy(scales)
  local plan = lab.plan { op = op, variant = kernel.variant, grouping = grouping, scales = gpu, group_ends = ends,
    blocked = blocked }
  if not plan then return end
  local out = op == "scale_swizzle" and blocked or gpu
  for _, case in ipairs {
    { { -1, 100, 230, 300 }, "group_ends[0] is -1; the first group starts at 0" },
    { { 100, 99, 230, 300 }, "group_ends[1] is 99, below group_ends[0] = 100; ends must not decrease" },
    { { 100, 100, 230, 321 }, "group_ends[3] is 321, beyond the 320 that the groups share" },
    { { 100, 2147483647, 230, 300 }, "group_ends[2] is 230, below group_ends[1] = 2147483647" },
    { { 100, 2147483647, 2147483647, 2147483647 }, "group_ends[3] is 2147483647, beyond the 320" },
  } do
    ends:copy(lab.tensor_from("cpu", "i32", case[1]))
    out:poison()
    local poison = on_host(out)
    plan:launch()
    refused(function() device:synchronize() end, who .. ": " .. case[2], ("%s, %s"):format(who, grouping))
    t.ok(same(on_host(out), poison), "nothing is written")
  end
  ends:copy(lab.tensor_from("cpu", "i32", { 100, 100, 230, 300 }))
  plan:launch()
  device:synchronize()
end

for _, grouping in ipairs { "k_groups", "m_groups" } do
  for _, kernel in ipairs(VARIANTS) do check_bad("scale_swizzle", kernel, grouping) end
  for _, kernel in ipairs(BACK) do check_bad("scale_unswizzle", kernel, grouping) end
end

-- Many groups take another way: faults anywhere among them.
local many, blocked = tensor(device, "i32", 1000), tensor(device, "u8", 128 * 8000)
local gpu = tensor(device, "u8", 128, 4096):copy(bits(128, 4096))
for _, at in ipairs { 1, 31, 32, 255, 256, 999 } do
  local ends = {}
  for g = 0, 999 do ends[g + 1] = 2 * g end
  ends[at + 1] = 2 * at - 3
  many:copy(lab.tensor_from("cpu", "i32", ends))
  blocked:poison()
  lab.check(lab.plan { op = "scale_swizzle", variant = "smxx_registers", grouping = "k_groups", scales = gpu,
    group_ends = many, blocked = blocked }):launch()
  refused(function() device:synchronize() end, ("group_ends[%d] is %d, "):format(at, 2 * at - 3), "end " .. at)
end

t.done()
