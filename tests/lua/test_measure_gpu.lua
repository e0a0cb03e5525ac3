-- lab.measure on a GPU that is made up: its time, clock and state are what the test says.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"

-- A device whose calls take `us` of its own time; `clocks` and `slowdowns` are read sample by sample
-- and round by round, the last value again and again.
local function new_gpu(settings)
  local gpu = { name = "cuda:0", arch = 90, now = 0, log = {}, samples = 0, rounds = 0 }
  local function note(word) gpu.log[#gpu.log + 1] = word end
  local function at(list, i) return list[math.min(i, #list)] end
  function gpu.event()
    local event = {}
    function event.record()
      note "event"
      event.time = gpu.now
    end
    function event.elapsed_us(start, stop) return stop.time - start.time end
    return event
  end
  function gpu.flush_l2()
    note "flush"
    gpu.now = gpu.now + 1000
  end
  function gpu.flush_l2_clean() note "clean" end
  function gpu.clock_mark(_, i) note("mark" .. i) end
  function gpu.clock_mhz()
    gpu.samples = gpu.samples + 1
    return at(settings.clocks or { 1900 }, gpu.samples)
  end
  function gpu.synchronize() note "wait" end
  function gpu.state()
    gpu.rounds = gpu.rounds + 1
    if settings.blind then return nil, "NVML is missing", "unsupported" end
    local slow = at(settings.slowdowns or { false }, gpu.rounds)
    return { power_w = 400 + gpu.rounds, temperature_c = 50, throttle = { slow and "hw_slowdown" or "power_cap" },
      slowdown = slow }
  end
  function gpu.run()
    note "call"
    gpu.now = gpu.now + (settings.us and at(settings.us, gpu.samples + 1) or 50)
  end
  return gpu
end

local function measure(gpu, settings)
  settings.contenders = { { name = "x", run = gpu.run, device = gpu } }
  return lab.measure(settings)
end

-- --- cold and hot ------------------------------------------------------------------------------

local gpu = new_gpu {}
local cold = measure(gpu, { rounds = 3, warmup = 0 })
t.is(table.concat(gpu.log, " ", 1, 7), "flush mark1 event call event mark2 flush",
  "cold is the default: a flush before each sample, marks outside of the events")
t.is(table.concat(gpu.log, " ", 7, 15), "flush mark1 event call event mark2 wait call wait",
  "then the time of a call, which waits")
t.is(cold[1].mode, "cold", "mode")
t.is(cold[1].batch, 1, "one call a sample")
t.is(cold[1].stats.median, 50.0, "neither flush nor marks are timed")
t.is(#cold[1].call_us, 3, "a time per call for each round")
t.ok(cold[1].call_stats.median < 1e5 and cold[1].call_us ~= cold[1].samples_us, "by the host's clock")
t.is(cold[1].sm_clock_mhz[3], 1900, "the clock of each sample")
t.is(cold[1].clock_stats.max, 1900.0, "and its statistics")
t.is(cold[1].state.power_w, 403, "the state after the last round")
t.is(table.concat(cold[1].state.throttle, " "), "power_cap", "with the reasons seen")
t.is(cold.stopped, "rounds", "stopped by the count")
t.is(cold.discarded, 0, "a power cap discards nothing")

gpu = new_gpu {}
local hot = measure(gpu, { rounds = 2, mode = "hot", minimum_us = 400 })
t.is(hot[1].mode, "hot", "hot on request")
t.ok(hot[1].batch >= 8, "calls are batched")
t.is(hot[1].stats.median, 50.0, "a sample is the time of one call")
t.ok(not table.concat(gpu.log, " "):find "flush", "and nothing is flushed")

gpu = new_gpu {}
measure(gpu, { rounds = 1, flush = "clean" })
t.is(gpu.log[1], "clean", "the clean flush on request")

gpu = new_gpu { blind = true }
t.is(measure(gpu, { rounds = 2 })[1].state, nil, "without NVML there is no state, and nothing else is missing")

-- --- throttling --------------------------------------------------------------------------------

-- Three warm-up samples come first.
gpu = new_gpu { clocks = { 9, 9, 9, 1900, 1000, 1900, 1424, 1426, 1900 } }
local throttled = measure(gpu, { rounds = 5 })
t.is(throttled.discarded, 2, "samples below 75 % of the highest clock are counted")
t.is(#throttled[1].samples_us, 5, "and replaced")
t.is(throttled.rounds, 5, "rounds that were kept")
t.is(throttled[1].clock_stats.min, 1426.0, "what is kept is above the limit")

gpu = new_gpu { clocks = { 9, 9, 9, 1000, 1900 } }
t.is(measure(gpu, { rounds = 3 }).discarded, 1, "also when the highest clock comes later")

gpu = new_gpu { slowdowns = { true, false } }
local slow = measure(gpu, { rounds = 2 })
t.is(slow.discarded, 1, "a round in which the chip protected itself")
t.is(table.concat(slow[1].state.throttle, " "), "hw_slowdown power_cap", "every reason seen is kept")

gpu = new_gpu { slowdowns = { false, true } }
local capped = measure(gpu, { rounds = 4, max_discarded = 2 })
t.is(capped.stopped, "throttled", "discarding stops at the cap")
t.is(capped.rounds, 1, "with what remains")
t.is(capped.discarded, 2, "and the count")

gpu = new_gpu { slowdowns = { true } }
local ok, refused = pcall(measure, gpu, { rounds = 4, max_discarded = 2 })
t.ok(not ok, "none remain: an error")
t.like(tostring(refused), "all 2 rounds were throttled", "that says so")
t.is(require("tilelab_core").error_kind(refused), "refused", "and is no defect")

-- --- when to stop ------------------------------------------------------------------------------

local steady = measure(new_gpu {}, { rounds = 6, interval = 0.01 })
t.is(steady.stopped, "interval", "a narrow interval stops at the smallest count")
t.is(steady.rounds, 6, "of rounds")

local noise = {}
for i = 1, 100 do noise[i] = i % 2 == 0 and 50 or 100 end
local noisy = measure(new_gpu { us = noise }, { rounds = 6, interval = 0.01, max_rounds = 20 })
t.is(noisy.stopped, "rounds", "a wide one never does")
t.is(noisy.rounds, 20, "and max_rounds ends it")

local late = new_gpu {}
local run = late.run
late.run = function()
  run()
  lab.sleep(0.002)
end
local timed = measure(late, { rounds = 1000, timeout_s = 0.02 })
t.is(timed.stopped, "timeout", "the timeout stops a long one")
t.ok(timed.rounds >= 1 and timed.rounds < 100, "after a few rounds")

-- --- on the CPU ----------------------------------------------------------------------------------

local one = { { name = "x", run = function() end } }
local cpu = lab.measure { contenders = one, rounds = 7, minimum_us = 50, interval = 0.5, timeout_s = 5 }
t.is(cpu[1].mode, "hot", "the CPU is measured hot")
t.is(cpu[1].call_us[1], cpu[1].samples_us[1], "where a call's time is the sample")
t.is(cpu[1].sm_clock_mhz, nil, "without an SM clock")
t.error(function() lab.measure { contenders = one, mode = "cold" } end,
  "test_measure_gpu.lua:%d+: contender 'x' runs on the CPU", "cold on the CPU")
t.error(function() lab.measure { contenders = one, mode = "warm" } end, "\"cold\" or \"hot\", not warm", "another mode")
t.error(function() lab.measure { contenders = one, interval = 0 } end, "interval .* above 0", "an empty interval")
t.error(function() lab.measure { contenders = one, rounds = 5, max_rounds = 4 } end, "max_rounds .* from 5 on",
  "fewer rounds at most than at least")
t.error(function() lab.measure { contenders = one, throttle_below = 2 } end,
  "throttle_below", "a limit above the clock")

-- --- results are right, before and after -----------------------------------------------------------

local calls, right = {}, { true, true }
local function contender()
  return { { name = "x", run = function() end,
    prepare = function() calls[#calls + 1] = "prepare" end,
    check = function()
      calls[#calls + 1] = "check"
      return table.remove(right, 1), "row 3 differs"
    end } }
end
lab.measure { contenders = contender(), rounds = 2, minimum_us = 10 }
t.is(table.concat(calls, " "), "prepare check check", "outputs are prepared, then checked before and after")
right = { false }
t.error(function() lab.measure { contenders = contender(), rounds = 2, minimum_us = 10 } end,
  "contender 'x' gives wrong results before it was timed: row 3 differs", "wrong results are not timed")
right = { true, false }
t.error(function() lab.measure { contenders = contender(), rounds = 2, minimum_us = 10 } end,
  "after it was timed", "nor kept")
t.done()
