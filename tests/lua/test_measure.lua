-- lab.measure: rounds, order, batches, ratios; with functions whose cost is known.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"

-- Busy for about `us` microseconds.
local function busy(us)
  return function()
    local stop = lab.time_us() + us
    while lab.time_us() < stop do end
  end
end

local calls = {}
local function counted(name, fn)
  return function()
    calls[#calls + 1] = name
    fn()
  end
end

local result = lab.measure {
  contenders = {
    { name = "short", run = counted("short", busy(300)) },
    { name = "long", run = counted("long", busy(1200)) },
  },
  rounds = 8, warmup = 1, seed = 7,
}
t.is(#result, 2, "contenders in their order")
t.is(result[1].name, "short", "names")
t.is(#result[1].samples_us, 8, "one sample a round")
t.is(result.by_name.long, result[2], "by name")
t.ok(result[1].batch >= 2 and result[2].batch == 1, "short calls are batched to a millisecond")
t.ok(result[1].stats.min >= 299 and result[1].stats.min < 600, "a sample is the time of one call")
local ratio = result:ratio("long", "short")
t.is(ratio.n, 8, "a ratio for each round")
local by_round = {}
for round = 1, 8 do by_round[round] = result[2].samples_us[round] / result[1].samples_us[round] end
t.ok(ratio.median == lab.stats(by_round).median and ratio.median > 1, "the median of the rounds' ratios")
t.ok(ratio.lo <= ratio.median and ratio.median <= ratio.hi and ratio.coverage >= 0.95, "with its interval")
local back = result:ratio("short", "long").ratios
t.ok(math.abs(back[3] * ratio.ratios[3] - 1) < 1e-9, "round by round, either way round")

-- The last 8 rounds: each holds one batch of both, and the order changes.
local rounds, i = {}, #calls
while #rounds < 8 do
  local seen, order = {}, ""
  while i > 0 and not (seen.short == result[1].batch and seen.long == 1) do
    seen[calls[i]] = (seen[calls[i]] or 0) + 1
    order = calls[i]:sub(1, 1) .. order
    i = i - 1
  end
  rounds[#rounds + 1] = order
end
local orders = {}
for _, order in ipairs(rounds) do orders[order:sub(1, 1)] = true end
t.ok(orders.s and orders.l, "the order is shuffled")

local args = { op = "gemm", variant = "cpu_plain", a = lab.tensor { shape = { 64, 64 }, fill = 1 },
  b = lab.tensor { shape = { 64, 64 }, fill = 1 }, d = lab.tensor { shape = { 64, 64 } } }
local plan = lab.plan(args)
local planned = lab.measure { contenders = { { name = "plan", plan = plan } }, rounds = 1, warmup = 0 }
t.ok(planned[1].stats.median > 0 and planned[1].stats.n == 1, "a plan, one round, no warm-up")
t.is(planned:ratio("plan", "plan").median, 1.0, "a ratio with itself")

local one = { { name = "x", run = busy(1) } }
t.error(function() lab.measure { contenders = one, rounds = 0 } end, "test_measure.lua:%d+: rounds .* from 1 on, not 0",
  "no rounds")
t.error(function() lab.measure { contenders = one, rounds = 2.5 } end, "rounds", "half a round")
t.error(function() lab.measure { contenders = one, warmup = -1 } end, "warmup", "a negative warm-up")
t.error(function() lab.measure { contenders = {} } end, "needs a list of contenders", "no contenders")
t.error(function() lab.measure { contenders = { { name = "x" } } } end, "either a plan or a function", "nothing to run")
t.error(function() lab.measure { contenders = { { run = busy(1) } } } end, "needs a name", "no name")
t.error(function() lab.measure { contenders = { one[1], one[1] } } end, "two contenders are called 'x'", "twice")
t.error(function() lab.measure { contenders = one, round = 3 } end, "did you mean 'rounds'", "unknown field")
t.error(function() result:ratio("long", "shrt") end, "no contender 'shrt'; there are: short, long", "unknown name")
t.error(function()
  lab.measure { contenders = { { name = "x", run = function() error("inside") end } }, rounds = 1 }
end, "inside", "an error in a contender comes through")
t.done()
