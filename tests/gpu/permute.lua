-- permute_index, permute and permute_backward on the GPU against the CPU: indices bit for bit.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local against = dofile("tests/lua/against_cpu.lua")
local routes = dofile("tests/lua/routes.lua")
local host, normal = against.host, against.normal

local function check_index(name, route, align)
  local spec = { op = "permute_index", variant = "smxx_sort", inputs = { experts = route.experts },
    params = { align = align }, outputs = routes.index_outputs(route) }
  local gpu, reference, steady = against.both(spec)
  local same = true
  for output, tensor in pairs(gpu) do same = same and against.same(tensor, reference[output]) end
  t.ok(same and steady, ("permute_index: %s, align %d"):format(name, align))
end

for _, case in ipairs(routes.cases()) do
  for _, align in ipairs { 1, 128 } do
    check_index(case.name, routes.route(case, align), align)
    check_index(case.name .. ", rows to spare", routes.route(case, align, 1500), align)
  end
end
check_index("align 3", routes.route(routes.cases()[1], 3), 3)

-- --- rows ----------------------------------------------------------------------------------------

local function check_rows(case, d, dtype, row_dtype, align)
  local route = routes.route(case, align, 5)
  local name = ("%s, d %d, %s%s, align %d"):format(case.name, d, dtype,
    row_dtype ~= dtype and " to " .. row_dtype or "", align)
  local tokens, used, rows = route.tokens, route.used, route.rows
  local y = host(row_dtype, rows, d)
  local gpu, reference, steady = against.both { op = "permute", outputs = { y = y }, inputs = {
    x = normal(dtype, 1, tokens, d), row_slots = route.row_slots, slot_rows = route.slot_rows,
    group_offsets = route.group_offsets } }
  local good, text = true, ""
  if used > 0 and row_dtype == dtype then
    good = lab.compare(gpu.y:rows(1, used), reference.y:rows(1, used), { absolute = 0 }).pass
  elseif used > 0 then
    good, text = against.near(gpu.y:rows(1, used), reference.y:rows(1, used))
  end
  t.ok(good and steady, ("permute: %s%s"):format(name, text))
  t.ok(against.untouched(gpu.y, y, used), ("permute: %s, the rest as it was"):format(name))

  for _, beta in ipairs { 0, 1, 0.5 } do
    local dx = beta == 0 and host(dtype, tokens, d) or normal(dtype, 3, tokens, d)
    gpu, reference, steady = against.both { op = "permute_backward", outputs = { dx = dx }, params = { beta = beta },
      inputs = { dy = normal(row_dtype, 2, rows, d), slot_rows = route.slot_rows } }
    -- top_k + 1 additions of terms below 8.
    good, text = against.near(gpu.dx, reference.dx, (route.top_k + 1) ^ 2 * 8 * 2 ^ -24)
    t.ok(good and steady, ("permute_backward: %s, beta %g%s"):format(name, beta, text))
  end
end

routes.sweep(check_rows)
local few = routes.cases()[1]

-- --- what it refuses -------------------------------------------------------------------------------

local device = against.device
local function gpu(dtype, ...) return lab.check(lab.tensor { device = device, dtype = dtype, shape = { ... } }) end
local function index(experts, num_experts, rows, align)
  local outputs = { group_offsets = gpu("i32", num_experts + 1), row_slots = gpu("i32", rows),
    slot_rows = gpu("i32", table.unpack(experts.shape)), row_experts = gpu("i32", rows) }
  local args = { op = "permute_index", variant = "smxx_sort", align = align,
    experts = gpu("i32", table.unpack(experts.shape)):copy(experts) }
  for name, tensor in pairs(outputs) do args[name] = tensor end
  return lab.check(lab.plan(args)), outputs
end

-- The fault is told by the next call that waits or, at the latest, by the next launch.
local function refused(plan, outputs, words, name)
  local ok, message = pcall(function()
    plan:launch()
    device:synchronize()
    plan:launch()
  end)
  t.ok(not ok and tostring(message):find(words, 1, true) ~= nil, ("%s: %s"):format(name, tostring(message)))
  local untouched = true
  for _, tensor in pairs(outputs) do
    untouched = untouched and against.same(tensor, gpu("i32", table.unpack(tensor.shape)))
  end
  t.ok(untouched, name .. ": nothing is written")
end

local route = routes.route(few, 1)
for _, bad in ipairs { -1, few.num_experts, 1 << 30 } do
  local experts = route.experts:clone()
  experts:set(bad, 3, 2)
  experts:set(-7, 30, 1)
  local plan, outputs = index(experts, few.num_experts, route.rows, 1)
  refused(plan, outputs, ("experts[%d] is %d, but must be at least 0 and below %d; that launch wrote nothing"):format(
    2 * few.top_k + 1, bad, few.num_experts), "an expert out of range")
end
local plan, outputs = index(route.experts, few.num_experts, route.rows - 1, 1)
refused(plan, outputs, ("the groups take %d rows at align 1, but row_slots has %d; make it larger"):format(route.rows,
  route.rows - 1), "too few rows")
plan = index(route.experts, few.num_experts, route.rows, 1)
plan:launch()
device:synchronize()
t.ok(true, "the next launch is as ever")

local legal, reason = lab.legal { op = "permute", variant = against.variant, x = gpu("bf16", 2, 12),
  y = gpu("bf16", 4, 12), row_slots = gpu("i32", 4), slot_rows = gpu("i32", 2, 2), group_offsets = gpu("i32", 3) }
t.ok(not legal and reason:find("d is 12", 1, true), "rows of 24 bytes")
local mixed = { op = "permute", variant = against.variant, x = gpu("bf16", 2, 16), y = gpu("fp32", 4, 16),
  row_slots = gpu("i32", 4), slot_rows = gpu("i32", 2, 2), group_offsets = gpu("i32", 3) }
t.error(function() lab.plan(mixed) end, "y is fp32 but x is bf16", "rows wider than tokens")
t.done()
