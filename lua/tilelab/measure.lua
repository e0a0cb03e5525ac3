-- Times contenders side by side.
--
-- Every round measures each contender once, in a freshly shuffled order, so that drift of the
-- clocks, the temperature and the neighbours falls on all of them alike; contenders are then
-- compared within their round. One sample is a batch of calls between two events of the device,
-- long enough to be measured; the batch is found during the warm-up and is the same in all rounds.

local core = require "tilelab_core"
local fields = require "tilelab.fields"

local measure = {}
local Result = {}
Result.__index = Result

local ORDER_SEQUENCE = 0x6d656173 -- the shuffle's stream, apart from those that fill tensors

local function call_plan(plan) plan:launch() end

local function read_contender(contender, position, spec)
  fields.check(("contender %d of lab.measure"):format(position), contender,
    { "name", "plan", "run", "device" }, 4)
  local name, plan, run = contender.name, contender.plan, contender.run
  if type(name) ~= "string" then
    error(("contender %d of lab.measure needs a name"):format(position), 4)
  end
  if (plan == nil) == (run == nil) then
    error(("contender '%s' needs either a plan or a function `run`"):format(name), 4)
  end
  local device = plan and plan.device or contender.device or spec.device or "cpu"
  if type(device) == "string" then device = assert(core.device(device)) end
  return { name = name, call = plan and call_plan or run, target = plan, device = device, batch = 1,
    start = assert(device:event()), stop = assert(device:event()), samples_us = {} }
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

-- Microseconds that one batch takes, from event to event.
local function time_batch(contender)
  local call, target = contender.call, contender.target
  contender.start:record()
  for _ = 1, contender.batch do call(target) end
  contender.stop:record()
  return contender.start:elapsed_us(contender.stop)
end

-- Grows the batch until it takes `minimum_us`; returns the time of the last batch.
local function time_long_enough(contender, minimum_us)
  local time_us = time_batch(contender)
  while time_us < minimum_us do
    local factor = math.min(10, math.max(1.5, 1.2 * minimum_us / math.max(time_us, 1e-3)))
    contender.batch = math.ceil(contender.batch * factor)
    time_us = time_batch(contender)
  end
  return time_us
end

-- lab.measure{contenders = {{name =, plan = plan} or {name =, run = function[, device =]}, ...},
--   rounds = 10, warmup = 2, seed = 0, minimum_us = 1000, device = for functions ("cpu")}
--   -> list of {name, samples_us (by round, of one call), stats, batch}, with by_name, rounds, seed
--      and result:ratio(a, b)
-- Inputs should have passed lab.compare before: this function only times. Raises for no rounds, no
-- contenders and names that are there twice.
function measure.measure(spec)
  fields.check("lab.measure", spec,
    { "contenders", "rounds", "warmup", "seed", "minimum_us", "device" }, 2)
  local rounds, warmup, seed = spec.rounds or 10, spec.warmup or 2, spec.seed or 0
  local minimum_us = spec.minimum_us or 1000
  fields.check_integer("rounds of lab.measure", rounds, 1, 2)
  fields.check_integer("warmup of lab.measure", warmup, 0, 2)
  local contenders = read_contenders(spec)
  for _ = 1, warmup + 1 do -- at least once, to find the batch
    for _, contender in ipairs(contenders) do time_long_enough(contender, minimum_us) end
  end
  local random, order = core.random(seed, ORDER_SEQUENCE), {}
  for i = 1, #contenders do order[i] = i end
  for round = 1, rounds do
    for _, position in ipairs(random:shuffle(order)) do
      local contender = contenders[position]
      contender.samples_us[round] = time_batch(contender) / contender.batch
    end
  end
  local result = setmetatable({ by_name = {}, rounds = rounds, seed = seed }, Result)
  for i, contender in ipairs(contenders) do
    result[i] = { name = contender.name, samples_us = contender.samples_us, batch = contender.batch,
      stats = core.stats(contender.samples_us) }
    result.by_name[contender.name] = result[i]
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
