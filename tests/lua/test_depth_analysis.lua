-- The depth-scaling analysis against hand-computed cases and against data whose truth is known.

package.path = "lua/?.lua;" .. package.path

local t = dofile("tests/lua/tap.lua")
local analysis = require "tilelab.depth.analysis"
local bootstrap = require "tilelab.depth.bootstrap"
local arguments = require "tilelab.depth.arguments"
local tables = require "tilelab.depth.table"

local BASE = {rapidgemm = {449170, 345690}, deepgemm = {442690, 336710}}

local function close(got, want, tolerance, name)
  local near = got and math.abs(got - want) <= tolerance * math.max(1, math.abs(want))
  t.ok(near, name)
  if not near then print(string.format("#   got:  %s\n#   want: %.17g", tostring(got), want)) end
end

-- rows of a study; throughput(backend, layers, repetition, update) -> tokens/s.
local function study(settings, throughput)
  local rows = {}
  for _, backend in ipairs(settings.backends or {"rapidgemm", "deepgemm"}) do
    for _, layers in ipairs(settings.layers or {1, 2}) do
      for repetition = 1, settings.repetitions or 1 do
        for update = 1, settings.updates do
          local tokens = 60000 + update
          rows[#rows + 1] = {backend = backend, layers = layers, repetition = repetition,
            update = update, tokens = tokens,
            time_s = tokens / throughput(backend, layers, repetition, update)}
        end
      end
    end
  end
  return rows
end

local function value(rows, figure, backend)
  local row = analysis.find(rows, figure, backend or "rapidgemm/deepgemm")
  return row and row.value, row
end

local function same(a, b)
  for i, row in ipairs(a) do
    for _, column in ipairs(analysis.columns) do
      if row[column] ~= b[i][column] then return false end
    end
  end
  return #a == #b
end

-- How many updates a fraction keeps.
t.is(analysis.keep(0.10, 80), 8, "the top decile of 80 updates is 8")
t.is(analysis.keep(0.10, 25), 3, "2.5 updates round to 3")
t.is(analysis.keep(0.05, 9), 0, "5 % of 9 updates keeps none")

-- Statistics of a weighted sample by hand: values 10 40 30 20, the second twice, the first absent.
do
  local run = bootstrap.ranked({10, 40, 30, 20})
  local out = bootstrap.statistics(run, {0, 2, 1, 1}, 4, {1, 2, 3, 4}, {})
  t.is(out[1], 40.0, "fastest of the resample")
  t.is(out[3], 110 / 3, "mean of the fastest three, one drawn twice")
  t.is(out[4], 130 / 4, "mean of all")
  t.is(out[5], 35.0, "median of an even count")
  out = bootstrap.statistics(run, {1, 0, 1, 1}, 3, {2}, {})
  t.is(out[1], 25.0, "fastest two")
  t.is(out[2], 20.0, "median of an odd count")
  out = bootstrap.statistics(bootstrap.ranked({7}), {1}, 1, {1}, {})
  t.ok(out[1] == 7 and out[2] == 7, "one update is its own mean and median")
end

-- Against sorting, over random resamples.
do
  local below, agree = bootstrap.generator(3), true
  for _ = 1, 200 do
    local n = below(30)
    local values, counts, drawn = {}, {}, {}
    for i = 1, n do values[i], counts[i] = below(50), 0 end
    for i = 1, n do
      local pick = below(n)
      counts[pick] = counts[pick] + 1
      drawn[i] = values[pick]
    end
    table.sort(drawn, function(a, b) return a > b end)
    local keep, sum = below(n), 0
    for i = 1, keep do sum = sum + drawn[i] end
    local out = bootstrap.statistics(bootstrap.ranked(values), counts, n, {keep}, {})
    local median = (drawn[(n + 1) // 2] + drawn[n // 2 + 1]) / 2
    agree = agree and math.abs(out[1] - sum / keep) < 1e-9 and out[2] == median
  end
  t.ok(agree, "one walk gives what sorting the resample gives")
end

-- The generator: first outputs of splitmix64 from seed 0 (0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4),
-- and even draws.
do
  local below = bootstrap.generator(0)
  t.is(below(1 << 31), (0xe220a839 >> 1) + 1, "splitmix64, first output")
  t.is(below(1 << 31), (0x6e789e6a >> 1) + 1, "splitmix64, second output")
  local seen = {0, 0, 0, 0, 0}
  for _ = 1, 50000 do
    local i = below(5)
    seen[i] = seen[i] + 1
  end
  local even = true
  for i = 1, 5 do even = even and math.abs(seen[i] - 10000) < 400 end
  t.ok(even, "draws are even")
end

-- Percentile intervals.
do
  local values = {}
  for i = 0, 200 do values[#values + 1] = 200 - i end
  local lo, hi = bootstrap.interval(values)
  t.ok(lo == 5 and hi == 195, "95 % of 0..200 is 5..195")
  lo, hi = bootstrap.interval({1, 2, math.huge})
  t.ok(lo == 1.05 and hi == math.huge, "an infinite replicate leaves the interval open")
  lo, hi = bootstrap.interval({-math.huge, -math.huge, math.huge, math.huge})
  t.ok(lo == -math.huge and hi == math.huge, "no NaN between opposite infinities")
  t.is(bootstrap.interval({}), nil, "no replicates, no interval")
end

-- The published throughputs: the figures of the README.
do
  local rows, info = analysis.run(study({updates = 20}, function(backend, layers)
    return BASE[backend][layers]
  end), {replicates = 50})
  close(value(rows, "T_1", "rapidgemm"), 449170, 1e-12, "constant throughput comes back")
  close(value(rows, "dt", "rapidgemm"), 0.666436, 1e-6, "dt, rapidgemm")
  close(value(rows, "dt", "deepgemm"), 0.710998, 1e-6, "dt, deepgemm")
  close(value(rows, "R", "rapidgemm"), 1.50052e6, 1e-5, "R, rapidgemm")
  close(value(rows, "T_20", "rapidgemm"), 67165, 1e-5, "T_20, rapidgemm")
  close(value(rows, "gain_R"), 6.6865, 1e-4, "gain in R")
  close(value(rows, "gain_T_20"), 5.9055, 1e-4, "gain in T_20")
  close(value(rows, "gain_dt"), 6.2676, 1e-4, "gain in dt")
  local t1, t2 = value(rows, "t_1", "deepgemm"), value(rows, "t_2", "deepgemm")
  close(value(rows, "t_20", "deepgemm"), t1 + 19 * (t2 - t1), 1e-12, "t_20 = t_1 + 19 dt")
  local _, row = value(rows, "gain_R")
  close(row.hi - row.lo, 0, 1e-9, "without noise the interval is a point")
  t.is(value(rows, "degenerate", "rapidgemm"), 0, "no degenerate replicate")
  close(info.lines.deepgemm[#info.lines.deepgemm].y, value(rows, "t_20", "deepgemm"), 1e-12,
    "the line ends at t_20")
  t.ok(analysis.find(rows, "gain_R_top05", "rapidgemm/deepgemm") ~= nil, "gain at top 5 %")
  close(value(rows, "gain_R_median"), 6.6865, 1e-4, "the median estimator agrees here")
end

-- The envelope by hand: throughputs 1..10 after two warm-up updates that would win.
do
  local function throughput(_, layers, repetition, update)
    if update <= 2 then return 1000 end
    return (update - 2 + 10 * (repetition - 1)) * (layers == 1 and 2 or 1)
  end
  local rows = analysis.run(study({updates = 12, repetitions = 2}, throughput),
    {warmup = 2, top = 0.2, replicates = 0})
  close(value(rows, "T_2", "deepgemm"), (9.5 + 19.5) / 2, 1e-12,
    "mean over runs of the fastest two")
  close(value(rows, "T_2_median", "deepgemm"), (5.5 + 15.5) / 2, 1e-12, "mean over runs of medians")
  local _, row = value(rows, "T_1", "deepgemm")
  t.is(row.lo, nil, "no replicates, no bounds")
  t.is(analysis.cells(row).lo, "-", "written as -")
end

-- Three depths: least squares by hand. t = 1, 2, 4 s at 1, 2, 4 layers, then t_4 moved up by 3.5 s.
do
  local at = {1, 1 / 2, 1 / 4}
  local derived = analysis.derive(at, {1, 2, 4}, 20)
  close(derived.dt, 1, 1e-12, "a line is recovered")
  close(derived.t_full, 20, 1e-12, "at full depth too")
  derived = analysis.derive({1, 1 / 2, 1 / 7.5}, {1, 2, 4}, 20)
  close(derived.dt, 2.25, 1e-12, "least squares slope")
  close(derived.t_full, 3.5 + 2.25 * (20 - 7 / 3), 1e-12, "line through the means")
  local rows = analysis.run(study({updates = 20, layers = {4, 1, 2}}, function(_, layers)
    return 1000 / layers
  end), {replicates = 20, full_depth = 4})
  close(value(rows, "T_4", "rapidgemm"), 250, 1e-9, "measured at full depth")
  close(value(rows, "T_4_line", "rapidgemm"), 250, 1e-9, "the line's figure has its own name")
end

-- Noise that all runs share cancels in the gains, and the order of rows does not matter.
do
  local noise = bootstrap.generator(5)
  local shared = {}
  for update = 1, 100 do shared[update] = 1 - 0.2 * noise(1000) / 1000 end
  local rows = study({updates = 100, repetitions = 2}, function(backend, layers, _, update)
    return BASE[backend][layers] * shared[update]
  end)
  local result = analysis.run(rows, {warmup = 20, replicates = 200})
  local _, gain = value(result, "gain_R")
  close(gain.hi - gain.lo, 0, 1e-9, "shared noise cancels in the gain")
  local _, level = value(result, "T_1", "rapidgemm")
  t.ok(level.hi - level.lo > 100, "and shows in the level")
  local backwards, text = {}, {}
  for i = #rows, 1, -1 do backwards[#backwards + 1] = rows[i] end
  for i, row in ipairs(rows) do
    text[i] = {}
    for key, cell in pairs(row) do
      text[i][key] = type(cell) == "number" and string.format("%.17g", cell) or cell
    end
  end
  local fixed = {warmup = 20, replicates = 200, backends = {"rapidgemm", "deepgemm"}}
  t.ok(same(analysis.run(backwards, fixed), result), "the order of the rows does not matter")
  t.ok(same(analysis.run(text, fixed), result), "rows of text give the same")
  fixed.layers = {2, 1}
  t.ok(same(analysis.run(rows, fixed), result), "nor does the order in which depths are asked for")
  local other = analysis.run(rows, {warmup = 20, replicates = 200, seed = 2})
  t.ok(not same(other, result), "another seed draws other replicates")
  t.is(value(other, "T_1", "rapidgemm"), level.value, "and leaves the values alone")
  for _, row in ipairs(rows) do row.time_s = row.time_s * 3 end
  local slower = analysis.run(rows, {warmup = 20, replicates = 200})
  close(value(slower, "gain_R"), gain.value, 1e-9, "gains do not depend on the clock's unit")
end

-- A slope that noise drowns, and one that is negative.
do
  local noise = bootstrap.generator(9)
  local rows, info = analysis.run(study({updates = 60}, function(_, layers)
    return (1000 - layers) * (1 - 0.3 * noise(1000) / 1000)
  end), {replicates = 300, top = 0.5})
  local _, rate = value(rows, "R", "rapidgemm")
  t.ok(rate.hi == math.huge and rate.lo > 0, "R is open above when dt's interval reaches 0")
  t.ok(value(rows, "degenerate", "rapidgemm") > 0, "degenerate replicates are counted")
  t.like(table.concat(info.notes, "\n"), "rapidgemm: dt is not above 0 in %d+ of 300", "and noted")
  local _, gain = value(rows, "gain_R")
  t.ok(gain.lo >= -100 and gain.hi == math.huge, "the gain in R is open, and no NaN")
  t.is(analysis.cells(gain).hi, "inf", "written as inf")
  t.like(tables.study(rows, info), "inf%]", "and shown")

  rows, info = analysis.run(study({updates = 20}, function(backend, layers)
    return (backend == "rapidgemm" and 2 - layers or layers) + 100
  end), {replicates = 50})
  t.is(value(rows, "R", "deepgemm"), nil, "a negative dt has no R")
  t.is(value(rows, "gain_R"), nil, "nor a gain in R")
  local _, undefined = value(rows, "gain_R")
  t.is(undefined.lo, -100.0, "whose interval then says so")
  t.like(tables.study(rows, info), "undefined", "and the table")
  t.is(analysis.cells(analysis.find(rows, "R", "deepgemm")).value, "-", "written as -")
end

-- Few data: one repetition, one update, a sweep point that keeps nothing; one and three backends.
do
  local function throughput(backend, layers) return BASE[backend][layers] end
  local rows, info = analysis.run(study({updates = 5}, throughput), {top = 0.2, replicates = 20})
  t.is(analysis.find(rows, "gain_R_top05", "rapidgemm/deepgemm"), nil, "5 % of 5 updates: left out")
  t.like(table.concat(info.notes, "\n"), "top 5 %% of 5 updates keeps none", "with a note")
  t.like(table.concat(info.notes, "\n"), "one repetition", "a single repetition is noted")
  rows = analysis.run(study({updates = 1}, throughput), {top = 1, replicates = 20})
  close(value(rows, "gain_R"), 6.6865, 1e-4, "a single update is enough for values")
  rows, info = analysis.run(study({updates = 8, backends = {"rapidgemm"}}, throughput),
    {replicates = 9})
  t.is(value(rows, "gain_R", "rapidgemm/rapidgemm"), nil, "one backend has no gains")
  t.ok(not tables.study(rows, info):find("gain"), "and its table none")
  local three = {updates = 8, backends = {"a", "deepgemm", "c"}}
  rows = analysis.run(study(three, function(backend, layers)
    return 1000 / (layers * (backend == "deepgemm" and 2 or 1))
  end), {replicates = 9})
  close(value(rows, "gain_dt", "c/deepgemm"), 50, 1e-9,
    "gains are over deepgemm wherever it stands")
  rows = analysis.run(study({updates = 8, backends = {"a", "b"}}, function() return 5 end),
    {replicates = 9})
  t.ok(value(rows, "gain_T_1", "a/b") == 0, "else over the last backend")
end

-- Coverage: throughput = truth times uniform noise, so all gains are known exactly. Of 60 studies
-- the 95 % interval should miss about 3; 12 misses have a probability below 1 in 20 000.
do
  local truth = analysis.gains(analysis.derive(BASE.rapidgemm, {1, 2}, 20),
    analysis.derive(BASE.deepgemm, {1, 2}, 20))
  local noise, misses, misses_median, studies = bootstrap.generator(17), 0, 0, 60
  for seed = 1, studies do
    local rows = analysis.run(study({updates = 60}, function(backend, layers)
      return BASE[backend][layers] * (1 - 0.02 * noise(1 << 20) / (1 << 20))
    end), {replicates = 200, seed = seed, sweep = {}})
    local function missed(figure)
      local _, row = value(rows, figure)
      return (row.lo > truth.R or row.hi < truth.R) and 1 or 0
    end
    misses, misses_median = misses + missed("gain_R"), misses_median + missed("gain_R_median")
  end
  t.ok(misses <= 11,
    string.format("envelope intervals miss the truth %d times in %d", misses, studies))
  t.ok(misses_median <= 11,
    string.format("median intervals miss the truth %d times in %d", misses_median, studies))
end

-- Rows that cannot be analysed: the message names the run.
do
  local function broken(change, options)
    local rows = study({updates = 6}, function() return 100 end)
    change(rows)
    local result, message = analysis.run(rows, options or {top = 0.5, replicates = 5})
    return result == nil and message
  end
  t.like(broken(function(rows) table.remove(rows, 3) end),
    "rapidgemm, 1 layer, repetition 1: update 3 is missing", "missing update")
  t.like(broken(function(rows) rows[8].tokens = 5 end),
    "2 layers.*update 2: 5 tokens where other runs", "tokens that differ")
  t.like(broken(function(rows) rows[2].time_s = "nan" end), "update 2: .* time_s 'nan' must", "NaN")
  t.like(broken(function(rows) rows[2].time_s = 0 end), "above 0", "time of zero")
  t.like(broken(function(rows) rows[2].update = 1 end), "update 1 occurs twice", "double update")
  t.like(broken(function(rows) rows[2].layers = "x" end), "row 2: .*layers 'x'",
    "layers not a number")
  t.like(broken(function(rows) for _ = 1, 6 do table.remove(rows) end end),
    "deepgemm, 2 layers, repetition 1: the run is missing", "missing run")
  t.like(broken(function() end, {warmup = 6}), "no update is left", "warm-up takes all")
  t.like(broken(function() end, {top = 0.01}), "keeps none of 6", "top fraction keeps none")
  t.like(broken(function() end, {layers = {1}}), "two depths", "one depth")
end

-- The checks of options name flag, value and remedy.
do
  local good = {updates = 100, warmup = 20, top = 0.1, layers = {1, 2}, repetitions = 2,
    backends = {"rapidgemm", "deepgemm"}}
  local function check(change)
    local options = setmetatable(change, {__index = good})
    return arguments.check(options, {"rapidgemm", "deepgemm"})
  end
  t.is(check({}), nil, "good options pass")
  t.like(check({updates = 20}), "^%-%-updates 20: .*%-%-warmup 20.*give", "updates <= warmup")
  t.like(check({warmup = -1}), "^%-%-warmup %-1: give", "negative warm-up")
  t.like(check({top = 0.001}), "^%-%-top 0.001: keeps none of the 80.*give %-%-top 0.01",
    "top keeps none")
  t.like(check({top = 10}), "^%-%-top 10: .*for 10 %% give %-%-top 0.1", "top in percent")
  t.like(check({top = 0 / 0}), "^%-%-top", "top NaN")
  t.like(check({layers = {0, 1}}), "^%-%-layers 0,1: 0 is no depth; give", "layers < 1")
  t.is(check({layers = {2}}), nil, "one depth")
  t.like(check({layers = {1, 10001}}), "^%-%-layers 1,10001: give depths of 10000 or fewer", "too deep")
  t.like(check({layers = {}}), "^%-%-layers: give one depth, or two", "no depth")
  t.like(check({layers = {1, 2, 1}}), "1 occurs twice; give", "double depth")
  t.like(check({backends = {"rapidgem"}}), "'rapidgem'; choose from rapidgemm, deepgemm", "backend")
  t.like(check({backends = {"deepgemm", "deepgemm"}}), "occurs twice", "double backend")
  t.like(check({repetitions = 0}), "^%-%-repetitions 0: give", "repetitions")
  local remedies = true
  for kept = 1, 300 do
    local remedy = tonumber(arguments.top(1e-9, kept, 0):match("give %-%-top (%S+)"))
    remedies = remedies and arguments.top(remedy, kept, 0) == nil
  end
  t.ok(remedies, "the remedy offered for --top works for any number of updates")
end

-- Time of the whole analysis at the size of the published study.
do
  local noise, began = bootstrap.generator(1), os.clock()
  analysis.run(study({updates = 100, repetitions = 2}, function(backend, layers)
    return BASE[backend][layers] * (1 - 0.02 * noise(1000) / 1000)
  end), {warmup = 20})
  t.ok(os.clock() - began < 5, "2000 replicates take less than 5 s")
end

t.done()
