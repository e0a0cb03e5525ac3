-- Counters on a GPU: known counts, life cycle, refusals, and no leak over thousands of calls.
local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local core = require "tilelab_core"
local device = lab.device "cuda"

local chip, reason = lab.counters(device)
if not chip then
  t.skip(reason)
  t.done()
  return
end
t.is(chip, "GH100", "the chip")

local function near(got, want, share, name)
  t.ok(got and math.abs(got - want) <= share * math.abs(want),
    ("%s: %s, expected %s within %g %%"):format(name, tostring(got), tostring(want), 100 * share))
end

local function copy_plan(words)
  local src = lab.tensor { device = device, dtype = "fp32", shape = { words }, fill = 1 }
  local dst = lab.tensor { device = device, dtype = "fp32", shape = { words }, fill = 0 }
  return lab.plan { op = "probe_copy", variant = "smxx_vec16", src = src, dst = dst }
end

-- --- known counts -----------------------------------------------------------------------------

local plan = copy_plan(1 << 29) -- 2 GiB each way
local function copy() plan:launch() end
t.is(lab.profile_passes { groups = { "PAPER" } }, 1, "PAPER takes one pass")
local values = lab.check(lab.profile { groups = { "PAPER" }, run = copy })
local label = lab.metrics.by_label(values)
near(label.dram_read, 2 ^ 31, 0.01, "bytes read by a copy of 2 GiB")
near(label.dram_write, 2 ^ 31, 0.03, "bytes written; some of them are in L2 when it ends")
t.ok(label.achieved_occupancy > 10 and label.achieved_occupancy <= 100, "occupancy is a percentage")
t.is(label.tensor_elapsed, 0, "a copy leaves the tensor cores alone")
local derived = lab.metrics.derive(values)
t.ok(derived.sm_clock_mhz > 300 and derived.sm_clock_mhz < 2500, "the clock is one")
local joined = lab.metrics.logical { plan = plan, values = values }
near(joined.bytes_ratio, 1, 0.02, "measured over logical bytes")

-- The session is not to stay: other launches, another stream.
local stream = device:stream()
near(lab.metrics.by_label(lab.profile { groups = { "PAPER" }, run = function() plan:launch(stream) end })
  .dram_read, 2 ^ 31, 0.01, "bytes read on a stream of one's own")
near(lab.metrics.by_label(lab.profile { groups = { "PAPER" }, run = function()
  copy()
  copy()
end }).dram_read, 2 ^ 32, 0.01, "bytes read by two copies in one region")
-- Nothing ran, so ratios of active cycles may be 0/0, which is an error.
local counted_nothing, empty = pcall(lab.profile, { groups = { "PAPER" }, run = function() end })
t.ok(not counted_nothing or lab.metrics.by_label(empty).dram_read < 2 ^ 20, "an empty region reads nothing")
print("# an empty region: " .. (counted_nothing and "zeros" or tostring(empty)))

do
  local a = lab.tensor { device = device, dtype = "bf16", shape = { 64, 64 }, fill = 1 }
  local b = lab.tensor { device = device, dtype = "bf16", shape = { 256, 64 }, fill = 1 }
  local d = lab.tensor { device = device, dtype = "fp32", shape = { 132, 64, 256 } }
  local mma = lab.plan { op = "probe_mma", variant = "sm90_wgmma", a = a, b = b, d = d, repeats = 100 }
  local counted = lab.check(lab.profile { groups = { "TENSOR" }, run = function() mma:launch() end })
  t.is(lab.metrics.logical { plan = mma, values = counted }.flops_ratio, 1, "FLOPs of wgmma are exact")
  t.is(lab.metrics.by_label(counted).wgmma_bf16_peak, 4096 * device.multiprocessors, "FLOPs a cycle")
end

local conflict = lab.tensor { device = device, dtype = "fp32", shape = { 32 } }
for _, ways in ipairs { 1, 2, 7, 32 } do
  local probe = lab.plan { op = "probe_conflict", variant = "smxx_plain", dst = conflict, ways = ways, loads = 64 }
  local counted = lab.check(lab.profile { groups = { "SMEM" }, quiet = true, run = function() probe:launch() end })
  t.is(lab.metrics.derive(counted).wavefronts_per_load, ways, ("%d-way conflict: wavefronts a load"):format(ways))
end

-- --- each kernel by itself --------------------------------------------------------------------

do
  local small, large = copy_plan(1 << 24), copy_plan(1 << 26)
  local list = lab.check(lab.profile_kernels { metrics = { "dram_read", "achieved_occupancy" }, run = function()
    small:launch()
    large:launch()
    small:launch()
  end })
  t.is(#list, 3, "three kernels")
  t.like(list[1].name, "copy", "the kernel's name")
  near(list[2].values["dram__bytes_read.sum"], 2 ^ 28, 0.03, "bytes of the second")
  t.is(list[1].record.blocks, list[3].record.blocks, "records beside counters")
  local ok, message = pcall(lab.profile_kernels, { metrics = { "dram_read" }, max_kernels = 2,
    run = function() for _ = 1, 4 do small:launch() end end })
  t.ok(not ok and tostring(message):find "max_kernels", "more kernels than asked for: an error")
end

-- --- refusals ---------------------------------------------------------------------------------

t.error(function()
  lab.profile { groups = { "PAPER" }, run = function() lab.profile { groups = { "PAPER" }, run = copy } end }
end, "profiling inside a profiled region", "nested, same metrics")
t.error(function()
  lab.profile { groups = { "PAPER" }, run = function() lab.profile { groups = { "OCC" }, run = copy } end }
end, "profiling inside a profiled region", "nested, other metrics")
t.error(function() lab.profile { metrics = { "dram__bytes_raed.sum" }, run = copy } end,
  "near names: dram__bytes_read", "an unknown metric")
t.error(function() lab.profile { groups = { "SOL" }, max_passes = 2, run = copy } end,
  "take 9 passes and max_passes is 2", "too many passes")
t.error(function() lab.profile { groups = { "PAPER" }, run = function() error "mine" end } end, "mine",
  "an error of the function passes")
near(lab.metrics.by_label(lab.check(lab.profile { groups = { "PAPER" }, run = copy })).dram_read, 2 ^ 31, 0.01,
  "and the next call counts as before")

-- --- cost and leaks ---------------------------------------------------------------------------

local function resident_kib()
  for line in io.lines "/proc/self/status" do
    local kib = line:match "^VmRSS:%s*(%d+)"
    if kib then return tonumber(kib) end
  end
end

local function free_bytes() return device:memory().free_bytes end

local cheap = copy_plan(1 << 20)
local function launch() cheap:launch() end
local function one() lab.check(lab.profile { groups = { "PAPER" }, flush = false, run = launch }) end
local kib, free, times = nil, nil, {}
for i = 1, 2000 do
  local start = lab.time_us()
  one()
  times[i] = lab.time_us() - start
  if i == 100 then
    collectgarbage()
    kib, free = resident_kib(), free_bytes()
  end
end
collectgarbage()
local median_us = lab.stats(times).median
t.ok(median_us < 50e3, ("counters of one launch cost %.2f ms"):format(median_us / 1e3))
local grown = resident_kib() - kib
t.ok(grown < 4096, ("host memory grew by %d KiB over 1900 calls"):format(grown))
t.ok(free - free_bytes() < 1 << 20, ("device memory shrank by %d bytes"):format(free - free_bytes()))

-- Sessions that change with every call, as when a script goes through groups.
kib = nil
for i = 1, 60 do
  lab.check(lab.profile { groups = { i % 2 == 0 and "OCC" or "DRAM" }, flush = false, quiet = true,
    run = function() cheap:launch() end })
  if i == 20 then
    collectgarbage()
    kib, free = resident_kib(), free_bytes()
  end
end
collectgarbage()
grown = resident_kib() - kib
t.ok(grown < 8192, ("host memory grew by %d KiB over 40 sessions"):format(grown))
t.ok(free - free_bytes() < 4 << 20, ("device memory shrank by %d bytes over 40 sessions"):format(free - free_bytes()))
lab.profile_close()
t.is(core.profiling(), false, "nothing runs at the end")

t.done()
