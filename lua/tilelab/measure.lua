-- Times contenders side by side.
--
-- Every round measures each contender once, in a freshly shuffled order, so that drift of the
-- clocks, the temperature and the neighbours falls on all of them alike; contenders are then
-- compared within their round. A round in which the chip was throttled is discarded as a whole, so
-- that rounds stay comparable. What a sample is, tilelab/measure/sample.lua says.

local core = require "tilelab_core"
local fields = require "tilelab.fields"
local profile = require "tilelab.profile"
local sample = require "tilelab.measure.sample"

local measure = {}
local Result = {}
Result.__index = Result

local ORDER_SEQUENCE = 0x6d656173 -- the shuffle's stream, apart from those that fill tensors
local PAUSE_S, LONGEST_PAUSE_S = 0.05, 0.5 -- to cool down after a throttled round

local SETTINGS = { "contenders", "rounds", "warmup", "seed", "minimum_us", "device", "mode", "flush",
  "interval", "max_rounds", "timeout_s", "throttle_below", "max_discarded" }
local CONTENDER = { "name", "plan", "run", "device", "prepare", "check" }

local function call_plan(plan) plan:launch() end

-- Cold on a GPU and hot on the CPU, unless the caller says which.
local function mode_of(spec, name, gpu)
  if spec.mode == "cold" and not gpu then
    error(("contender '%s' runs on the CPU, whose caches cannot be flushed; use mode \"hot\""):format(name), 5)
  end
  return spec.mode or (gpu and "cold" or "hot")
end

local function read_contender(contender, position, spec)
  fields.check(("contender %d of lab.measure"):format(position), contender, CONTENDER, 4)
  local name, plan, run = contender.name, contender.plan, contender.run
  if type(name) ~= "string" then
    error(("contender %d of lab.measure needs a name"):format(position), 4)
  end
  if (plan == nil) == (run == nil) then
    error(("contender '%s' needs either a plan or a function `run`"):format(name), 4)
  end
  local device = plan and plan.device or contender.device or spec.device or "cpu"
  if type(device) == "string" then device = assert(core.device(device)) end
  local gpu = device.arch > 0
  return { name = name, call = plan and call_plan or run, target = plan, device = device, gpu = gpu,
    mode = mode_of(spec, name, gpu), flush = spec.flush or "dirty", batch = 1,
    prepare = contender.prepare, check = contender.check,
    start = assert(device:event()), stop = assert(device:event()) }
end

local function read_contenders(spec)
  local contenders, named = {}, {}
  if type(spec.contenders) ~= "table" or #spec.contenders == 0 then
    error("lab.measure needs a list of contenders", 3)
  end
  for i, contender in ipairs(spec.contenders) do
    contenders[i] = read_contender(contender, i, spec)
    local name = contenders[i].name
    if named[name] then error(("two contenders are called '%s'"):format(name), 3) end
    named[name] = true
  end
  return contenders
end

local function check_number(spec, name, low, high)
  local value = spec[name]
  if value ~= nil and not (type(value) == "number" and value > low and value <= high) then
    error(("%s of lab.measure must be a number above %g, up to %g, not %s"):format(name, low, high,
      tostring(value)), 4)
  end
end

local function check_choice(spec, name, first, second)
  local value = spec[name]
  if value ~= nil and value ~= first and value ~= second then
    error(("%s of lab.measure must be \"%s\" or \"%s\", not %s"):format(name, first, second,
      tostring(value)), 4)
  end
end

-- The settings with their defaults.
local function read_settings(spec)
  fields.check("lab.measure", spec, SETTINGS, 3)
  local rounds = spec.rounds or 10
  local settings = { rounds = rounds, warmup = spec.warmup or 2, seed = spec.seed or 0,
    minimum_us = spec.minimum_us or 1000, interval = spec.interval,
    max_rounds = spec.max_rounds or math.max(1000, rounds), timeout_s = spec.timeout_s,
    throttle_below = spec.throttle_below or 0.75, max_discarded = spec.max_discarded or rounds }
  fields.check_integer("rounds of lab.measure", rounds, 1, 3)
  fields.check_integer("warmup of lab.measure", settings.warmup, 0, 3)
  fields.check_integer("max_rounds of lab.measure", settings.max_rounds, rounds, 3)
  fields.check_integer("max_discarded of lab.measure", settings.max_discarded, 1, 3)
  check_number(spec, "interval", 0, 1)
  check_number(spec, "timeout_s", 0, math.huge)
  check_number(spec, "throttle_below", 0, 1)
  check_choice(spec, "mode", "cold", "hot")
  check_choice(spec, "flush", "dirty", "clean")
  return settings
end

-- Calls prepare or check of every contender that has it; a check that returns false stops the
-- measurement, because the time of a wrong result means nothing.
local function verify(contenders, which, when)
  for _, contender in ipairs(contenders) do
    if contender[which] then
      local pass, reason = contender[which]()
      if which == "check" and not pass then
        error(("contender '%s' gives wrong results %s%s"):format(contender.name, when,
          reason and ": " .. tostring(reason) or ""), 4)
      end
    end
  end
end

-- What the GPUs say after a round: their latest state, and every reason seen so far.
local function observe(contenders, states)
  local slowdown, seen = false, {}
  for _, contender in ipairs(contenders) do
    local name = contender.device.name
    if contender.gpu and not seen[name] then
      seen[name] = true
      local state = contender.device:state()
      if state then
        local reasons = states[name] and states[name].throttle or {}
        for _, reason in ipairs(state.throttle) do reasons[reason] = true end
        state.throttle = reasons
        states[name] = state
        slowdown = slowdown or state.slowdown
      end
    end
  end
  return slowdown
end

-- Rounds without a throttled sample: the chip did not protect itself, and every clock is near the
-- highest that was seen with this contender, in whichever round. Contenders differ: at its power limit a
-- GPU runs a copy a third faster than a product.
local function sift(rounds, contenders, below)
  local highest, kept = {}, {}
  for _, round in ipairs(rounds) do
    for i = 1, #contenders do highest[i] = math.max(highest[i] or 0, round[i].clock_mhz or 0) end
  end
  for _, round in ipairs(rounds) do
    local slow = round.slowdown
    for i = 1, #contenders do
      local clock = round[i].clock_mhz
      slow = slow or clock and clock < below * highest[i]
    end
    if not slow then kept[#kept + 1] = round end
  end
  return kept, #rounds - #kept
end

local function column(rounds, position, name)
  local values = {}
  for i, round in ipairs(rounds) do values[i] = round[position][name] end
  return values
end

-- Whether the interval of every median is narrow enough: half its width over the median.
local function settled(kept, contenders, target)
  for i = 1, #contenders do
    local stats = core.stats(column(kept, i, "time_us"))
    if not (stats.median_hi - stats.median_lo <= 2 * target * stats.median) then return false end
  end
  return true
end

local function stop_reason(settings, kept, discarded, contenders, start_us)
  if discarded >= settings.max_discarded then return "throttled" end
  if #kept >= settings.rounds then
    if not settings.interval then return "rounds" end
    if settled(kept, contenders, settings.interval) then return "interval" end
    if #kept >= settings.max_rounds then return "rounds" end
  end
  if settings.timeout_s and #kept + discarded > 0
    and core.time_us() - start_us > 1e6 * settings.timeout_s then
    return "timeout"
  end
end

-- Measures rounds until there is a reason to stop.
local function run(contenders, settings)
  local random, order = core.random(settings.seed, ORDER_SEQUENCE), {}
  local rounds, states, start_us, pause_s = {}, {}, core.time_us(), PAUSE_S
  for i = 1, #contenders do order[i] = i end
  local kept, stopped
  local discarded = 0
  repeat
    local round, before = {}, discarded
    for _, position in ipairs(random:shuffle(order)) do
      round[position] = sample.take(contenders[position])
    end
    round.slowdown = observe(contenders, states)
    rounds[#rounds + 1] = round
    kept, discarded = sift(rounds, contenders, settings.throttle_below)
    stopped = stop_reason(settings, kept, discarded, contenders, start_us)
    if discarded > before and not stopped then
      core.sleep(pause_s)
      pause_s = math.min(LONGEST_PAUSE_S, 1.5 * pause_s)
    end
  until stopped
  if #kept == 0 then
    error(core.error_new("refused", ("all %d rounds were throttled: the SM clock was below %g %% of "
      .. "the contender's highest, or the GPU slowed down to protect itself; see nvidia-smi -q -d "
      .. "PERFORMANCE"):format(discarded, 100 * settings.throttle_below), "device"), 0)
  end
  return kept, discarded, stopped, states
end

-- A state whose reasons are a sorted list again.
local function with_sorted_reasons(state)
  if not state then return nil end
  state.throttle = fields.names(state.throttle)
  return state
end

-- lab.measure{contenders = {{name =, plan = plan} or {name =, run = function[, device =]}, ...},
--   rounds = 10, warmup = 2, seed = 0, device = for functions ("cpu"),
--   mode = "cold" | "hot" (cold on a GPU, hot on the CPU), flush = "dirty" | "clean" (cold),
--   minimum_us = 1000 (of a batch, hot),
--   interval = nil: go on after `rounds` until half the width of each median's interval, relative to
--     the median, is at most this, max_rounds = 1000,
--   timeout_s = nil: no further round after so many seconds,
--   throttle_below = 0.75: of the contender's highest SM clock; max_discarded = rounds}
--   -> list of {name, device, mode, batch, samples_us (by round, of one call), stats,
--        call_us, call_stats (host clock around one call and the wait for it),
--        sm_clock_mhz, clock_stats (of a GPU),
--        state (of a GPU with NVML: {power_w, temperature_c, ...} after the last round, throttle =
--        every reason seen)},
--      with by_name, rounds (that were kept), discarded (because throttled), seed, stopped = "rounds"
--      | "interval" | "timeout" | "throttled", and result:ratio(a, b)
-- A contender's `prepare` is called before the warm-up, to poison its outputs; its `check` after the
-- warm-up and after the last round: it returns whether the results are right, and why not.
-- Raises for no rounds, no contenders, names that are there twice, wrong results, and an error value
-- of kind "refused" when every round was throttled.
function measure.measure(spec)
  local settings = read_settings(spec)
  profile.close() -- an open profiling session may slow launches down
  local contenders = read_contenders(spec)
  verify(contenders, "prepare")
  for _ = 1, settings.warmup + 1 do -- at least once, to find the batch
    for _, contender in ipairs(contenders) do sample.warm_up(contender, settings.minimum_us) end
  end
  verify(contenders, "check", "before it was timed")
  local kept, discarded, stopped, states = run(contenders, settings)
  verify(contenders, "check", "after it was timed")
  local result = setmetatable({ by_name = {}, rounds = #kept, discarded = discarded,
    seed = settings.seed, stopped = stopped }, Result)
  for _, state in pairs(states) do with_sorted_reasons(state) end
  for i, contender in ipairs(contenders) do
    local item = { name = contender.name, device = contender.device, mode = contender.mode,
      batch = contender.batch, samples_us = column(kept, i, "time_us"),
      call_us = column(kept, i, "call_us"), state = states[contender.device.name] }
    item.stats, item.call_stats = core.stats(item.samples_us), core.stats(item.call_us)
    if contender.gpu then
      item.sm_clock_mhz = column(kept, i, "clock_mhz")
      item.clock_stats = core.stats(item.sm_clock_mhz)
    end
    result[i] = item
    result.by_name[item.name] = item
  end
  return result
end

local function find(result, name)
  local contender = result.by_name[name]
  if contender then return contender end
  local names = {}
  for i, item in ipairs(result) do names[i] = item.name end
  error(("no contender '%s'; there are: %s"):format(tostring(name), table.concat(names, ", ")), 3)
end

-- result:ratio(a, b) -> {median, lo, hi, coverage, n, ratios}: time of a over time of b, round by
-- round, so above 1 says that b is faster; [lo, hi] covers the median with probability `coverage`.
function Result:ratio(a, b)
  local over, under, ratios = find(self, a), find(self, b), {}
  for round = 1, self.rounds do
    ratios[round] = over.samples_us[round] / under.samples_us[round]
  end
  local stats = core.stats(ratios)
  return { median = stats.median, lo = stats.median_lo, hi = stats.median_hi,
    coverage = stats.coverage, n = stats.n, ratios = ratios }
end

return measure
