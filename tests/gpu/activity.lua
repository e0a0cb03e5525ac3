-- Kernel records on a GPU: names, shapes, resources, durations, none lost, occupancy beside them.
local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local device = lab.device "cuda"

local function copy_plan(words)
  local src = lab.tensor { device = device, dtype = "fp32", shape = { words }, fill = 1 }
  local dst = lab.tensor { device = device, dtype = "fp32", shape = { words }, fill = 0 }
  return lab.plan { op = "probe_copy", variant = "smxx_vec16", src = src, dst = dst }
end

local plan = copy_plan(1 << 28)
plan:launch()
device:synchronize()
local records, reason = lab.kernel_records(function()
  plan:launch()
  plan:launch()
end)
if not records then
  t.skip(reason)
  t.done()
  return
end
t.is(#records, 2, "two launches are two records")
local record = records[1]
t.like(record.name, "copy", "the name is short")
t.ok(not record.name:find "^_Z", "and not mangled")
t.ok(record.grid[1] >= 1 and record.block[1] >= 32 and record.registers > 0, "grid, block, registers")
t.is(record.cluster[1], 1, "no cluster")
t.ok(record.occupancy.percent > 0 and record.occupancy.limiter ~= "", "theoretical occupancy")

-- Against events, for a kernel that takes half a millisecond.
local start, stop, by_events = device:event(), device:event(), {}
for i = 1, 9 do
  start:record()
  plan:launch()
  stop:record()
  by_events[i] = start:elapsed_us(stop)
end
local by_records = {}
for i = 1, 9 do by_records[i] = lab.kernel_records(function() plan:launch() end)[1].duration_us end
local alone, call = lab.stats(by_records).median, lab.stats(by_events).median
t.ok(alone > 0.9 * call - 10 and alone < 1.1 * call,
  ("the kernel alone takes %.1f us, %.1f between events"):format(alone, call))

-- No record is lost, whichever region it is.
local cheap, counts = copy_plan(1 << 12), {}
for i = 1, 50 do
  local found = lab.kernel_records(function() for _ = 1, i do cheap:launch() end end)
  counts[#found == i] = (counts[#found == i] or 0) + 1
end
t.is(counts[true], 50, "fifty regions, each with all its kernels")
local many = lab.kernel_records(function() for _ = 1, 20000 do cheap:launch() end end)
t.is(#many, 20000, "twenty thousand kernels in one region")
local ordered = true
for i = 2, #many do ordered = ordered and (many[i].start_ns or 0) >= (many[i - 1].start_ns or 0) end
t.ok(ordered, "in the order of launches")

-- Launch shapes that limit occupancy in different ways.
local stay = lab.tensor { device = device, dtype = "i32", shape = { 132 } }
for _, case in ipairs {
  { threads = 1024, shared_bytes = 0, registers = "few", limiter = "threads" },
  { threads = 64, shared_bytes = 100000, registers = "few", limiter = "shared memory" },
  { threads = 32, shared_bytes = 0, registers = "few", limiter = "blocks" },
  { threads = 256, shared_bytes = 0, registers = "many", limiter = "registers" },
} do
  local probe = lab.plan { op = "probe_occupancy", variant = "smxx_stay", dst = stay, registers = case.registers,
    threads = case.threads, shared_bytes = case.shared_bytes, cycles = 1000 }
  local found = lab.kernel_records(function() probe:launch() end)[1]
  t.is(found.block[1], case.threads, "threads of a block")
  t.ok(found.static_shared_bytes + found.dynamic_shared_bytes >= case.shared_bytes, "shared memory")
  t.like(found.occupancy.limiter, case.limiter, "limited by " .. case.limiter)
end

-- Memsets and copies among the kernels, where they are asked for.
do
  local tensor = lab.tensor { device = device, dtype = "fp32", shape = { 4096 }, fill = 1 }
  local function mixed()
    tensor:fill(0)
    cheap:launch()
    tensor:totable()
  end
  local all = lab.activity_records(mixed)
  t.is(#all, 3, "a memset, a kernel and a copy")
  t.is(("%s %d %s %s"):format(all[1].kind, all[1].bytes or 0, all[2].kind, all[3].name),
    "memset 16384 kernel copy to the host", "in the order of launches, with their bytes")
  t.ok(all[1].start_ns < all[2].start_ns and all[2].start_ns < all[3].start_ns, "on one clock")
  t.is(#lab.kernel_records(mixed), 1, "kernels alone otherwise")
end

-- Together with counters, whose own kernels are not ours.
if lab.counters(device) then
  local both = lab.kernel_records(function()
    lab.profile { groups = { "PAPER" }, flush = false, warmup = false, run = function() plan:launch() end }
  end)
  t.is(#both, 1, "CUPTI's own kernels are left out")
  if #both ~= 1 then
    for _, item in ipairs(both) do io.stdout:write("# ", item.name, " ", item.symbol, "\n") end
  end
  lab.profile_close()
else
  t.skip "counters are refused"
end

t.error(function() lab.kernel_records(function() lab.kernel_records(function() end) end) end,
  "recorded already", "regions do not nest")
t.is(#lab.kernel_records(function() end), 0, "an empty region; and the error before left nothing on")

t.done()
