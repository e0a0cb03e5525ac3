-- A series over time on a GPU: tells work from idleness, and its times are plausible.
local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local device = lab.device "cuda"

local words = 1 << 28
local src = lab.tensor { device = device, dtype = "fp32", shape = { words }, fill = 1 }
local dst = lab.tensor { device = device, dtype = "fp32", shape = { words }, fill = 0 }
local plan = lab.plan { op = "probe_copy", variant = "smxx_vec16", src = src, dst = dst }
plan:launch()
device:synchronize()

local interval_us = 20
local line, reason = lab.timeline { interval_us = interval_us, run = function()
  for _ = 1, 10 do plan:launch() end
  device:synchronize()
  lab.sleep(0.005)
end }
if not line then
  t.skip(reason)
  t.done()
  return
end

local function of(label) return line.values[lab.metrics.find(label).name] end
t.ok(#line.time_us > 200, ("%d samples of some 10 ms"):format(#line.time_us))
t.is(line.time_us[1], 0, "time begins with the first")
local steps = {}
for i = 2, #line.time_us do steps[#steps + 1] = line.time_us[i] - line.time_us[i - 1] end
local step = lab.stats(steps).median
t.ok(math.abs(step - interval_us) < 0.1 * interval_us, ("an interval is %.2f us"):format(step))

local function count(values, low, high)
  local n = 0
  for _, value in ipairs(values) do
    if value >= low and value <= high then n = n + 1 end
  end
  return n
end
t.ok(count(of "dram_read_busy", 25, 110) > 50, "memory is busy while the copies run")
t.ok(count(of "sm_busy", 90, 101) > 50, "and the multiprocessors")
t.ok(count(of "sm_busy", 0, 1) > 100, "idle while the host sleeps")
t.is(count(of "tensor_busy", 0.5, 200), 0, "the tensor cores never")
t.is(#line.series, #lab.metrics.group "TIMELINE".metrics, "a series for each metric")

t.error(function() lab.timeline { interval_us = 5, max_samples = 10, run = function()
  for _ = 1, 10 do plan:launch() end
end } end, "raise max_samples", "more samples than asked for: an error")
t.error(function() lab.timeline { run = function() error "mine" end } end, "mine", "an error passes")
t.ok(lab.profile { groups = { "PAPER" }, run = function() plan:launch() end }, "counters work afterwards")
lab.profile_close()

t.done()
