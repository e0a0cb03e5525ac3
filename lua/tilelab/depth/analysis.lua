-- The depth-scaling analysis: from the update records of a study to its figures.
--
-- Throughput of a run: mean of its fastest updates (the envelope, by default the top 10 %), or the
-- median of its updates (suffix _median); T_L is the mean over repetitions. From T_L on:
--   t_L     1 / T_L, us/token
--   dt      slope of t over L by least squares (t_2 - t_1 for two depths), us/token for one layer
--   R       1 / dt, the model-size rate, token-layers/s
--   t_20    the fitted line at full depth (t_1 + 19 dt for depths 1 and 2), and T_20 = 1 / t_20;
--           the number is the full depth. If that depth was measured too, the line's are
--           t_20_line, T_20_line and gain_T_20_line.
--   gain_*  of a backend over the baseline, in percent, backend column "a/baseline": T_L, R and
--           T_20 higher, dt lower. gain_R_top05 .. gain_R_top25: gain in R by top fraction.
--   degenerate  number of bootstrap replicates whose dt is not above 0
-- Intervals: 95 %, paired bootstrap (bootstrap.lua). R and T_20 take theirs from dt and t_20 and
-- are open (inf) where those reach 0; a figure that is not defined at all has no value.

local bootstrap = require "tilelab.depth.bootstrap"
local samples = require "tilelab.depth.samples"

local analysis = {}

analysis.columns = {"figure", "backend", "value", "lo", "hi", "unit"}

analysis.defaults = {
  top = 0.10, replicates = 2000, seed = 1, full_depth = 20, baseline = "deepgemm",
  sweep = {0.05, 0.10, 0.15, 0.20, 0.25},
}

-- Updates that a top fraction keeps of n: rounded, 0 when it keeps none.
function analysis.keep(fraction, n)
  return math.floor(fraction * n + 0.5)
end

-- throughputs [i] in tokens/s at layers [i] (two different depths or more) ->
-- {t = list, intercept, dt, t_full, R, T_full}, times in s; R is nil where dt is not above 0,
-- T_full nil where t_full is not.
function analysis.derive(throughputs, layers, full_depth)
  local count, mean_l, mean_t, t = #layers, 0.0, 0.0, {}
  for i = 1, count do
    t[i] = 1 / throughputs[i]
    mean_l, mean_t = mean_l + layers[i] / count, mean_t + t[i] / count
  end
  local covariance, variance = 0.0, 0.0
  for i = 1, count do
    covariance = covariance + (layers[i] - mean_l) * (t[i] - mean_t)
    variance = variance + (layers[i] - mean_l) ^ 2
  end
  local dt = covariance / variance
  local intercept = mean_t - mean_l * dt
  local t_full = intercept + full_depth * dt
  return {
    t = t, intercept = intercept, dt = dt, t_full = t_full,
    R = dt > 0 and 1 / dt or nil, T_full = t_full > 0 and 1 / t_full or nil,
  }
end

-- Gain in percent of 1/a over 1/b. Times of 0 or less stand for a rate beyond all bounds; where
-- both do, nothing can be said: nil.
local function gain_in_rate(a, b)
  if a > 0 and b > 0 then return 100 * (b / a - 1) end
  if a > 0 then return -100.0 end
  if b > 0 then return math.huge end
  return nil
end

local function gain_in_time(a, b)
  if b > 0 then return 100 * (1 - a / b) end
  if a > 0 then return -math.huge end
  return nil
end

-- Gains in percent of derived figures a over b: {T = list, dt, R, T_full}; see gain_in_rate for
-- values that are not finite or nil.
function analysis.gains(a, b)
  local gain = {T = {}}
  for i = 1, #a.t do gain.T[i] = gain_in_rate(a.t[i], b.t[i]) end
  gain.dt = gain_in_time(a.dt, b.dt)
  gain.R = gain_in_rate(a.dt, b.dt)
  gain.T_full = gain_in_rate(a.t_full, b.t_full)
  return gain
end

-- Interval over replicates 1..count of a value that may be undefined (nil): such a replicate
-- widens both sides, to `lowest` below and without bound above.
local function interval(count, value_of, lowest)
  local low, high, undefined = {}, {}, 0
  for replicate = 1, count do
    local value = value_of(replicate)
    if value == nil then undefined = undefined + 1 end
    low[replicate], high[replicate] = value or lowest, value or math.huge
  end
  local lo, hi = bootstrap.interval(low)
  if undefined > 0 then hi = select(2, bootstrap.interval(high)) end
  return lo, hi
end

local function finite(value)
  return value and math.abs(value) < math.huge and value or nil
end

local function inverted(lo, hi, scale)
  if not hi or hi <= 0 then return nil end
  return scale / hi, lo > 0 and scale / lo or math.huge
end

-- Appends the rows of one backend and estimator; returns how many replicates are degenerate.
-- derived: {point = derived figures, list = those of each replicate}.
local function backend_rows(rows, suffix, backend, info, derived)
  local point, list = derived.point, derived.list
  local function add(figure, value, lo, hi, unit)
    rows[#rows + 1] = {figure = figure .. suffix, backend = backend, value = value, lo = lo,
      hi = hi, unit = unit}
  end
  local count = #list
  local t_lo, t_hi = {}, {}
  for i, depth in ipairs(info.layers) do
    t_lo[i], t_hi[i] = interval(count, function(k) return list[k].t[i] end)
    local lo, hi = inverted(t_lo[i], t_hi[i], 1)
    add("T_" .. depth, 1 / point.t[i], lo, hi, "tokens/s")
  end
  local function add_time(figure, value, lo, hi)
    add(figure, 1e6 * value, lo and 1e6 * lo, hi and 1e6 * hi, "us/token")
  end
  for i, depth in ipairs(info.layers) do add_time("t_" .. depth, point.t[i], t_lo[i], t_hi[i]) end
  local lo, hi = interval(count, function(k) return list[k].dt end)
  add_time("dt", point.dt, lo, hi)
  lo, hi = inverted(lo, hi, 1)
  add("R", point.R, lo, hi, "token-layers/s")
  lo, hi = interval(count, function(k) return list[k].t_full end)
  add_time("t_" .. info.full, point.t_full, lo, hi)
  lo, hi = inverted(lo, hi, 1)
  add("T_" .. info.full, point.T_full, lo, hi, "tokens/s")
  local degenerate = 0
  for k = 1, count do
    if not (list[k].dt > 0) then degenerate = degenerate + 1 end
  end
  add("degenerate", degenerate, nil, nil, "replicates")
  return degenerate
end

-- pair: {name = "a/baseline", a and b = what backend_rows takes as derived}.
local function gain_rows(rows, suffix, pair, info)
  local a_point, b_point, list = pair.a.point, pair.b.point, {}
  local point = analysis.gains(a_point, b_point)
  for k, a in ipairs(pair.a.list) do list[k] = analysis.gains(a, pair.b.list[k]) end
  local function add(figure, value, lo, hi)
    rows[#rows + 1] = {figure = figure .. suffix, backend = pair.name, value = finite(value),
      lo = lo, hi = hi, unit = "%"}
  end
  local count = #list
  for i, depth in ipairs(info.layers) do
    add("gain_T_" .. depth, point.T[i],
      interval(count, function(k) return list[k].T[i] end, -100.0))
  end
  add("gain_dt", point.dt, interval(count, function(k) return list[k].dt end, -math.huge))
  add("gain_R", a_point.R and b_point.R and point.R,
    interval(count, function(k) return list[k].R end, -100.0))
  add("gain_T_" .. info.full, a_point.T_full and b_point.T_full and point.T_full,
    interval(count, function(k) return list[k].T_full end, -100.0))
end

-- derived[backend] = {point, list}, for statistic number j of the resampled means.
local function derive_all(info, point, list, j)
  local derived, num_layers = {}, #info.layers
  for b, backend in ipairs(info.backends) do
    local function derive(means)
      local throughputs = {}
      for l = 1, num_layers do throughputs[l] = means[(b - 1) * num_layers + l][j] end
      return analysis.derive(throughputs, info.layers, info.full_depth)
    end
    local replicates = {}
    for k, means in ipairs(list) do replicates[k] = derive(means) end
    derived[backend] = {point = derive(point), list = replicates}
  end
  return derived
end

-- The pairs that gain_rows takes: each backend over the baseline; none for a single backend.
local function against_baseline(info, derived)
  local list = {}
  for _, backend in ipairs(info.backends) do
    if backend ~= info.baseline then
      list[#list + 1] = {name = backend .. "/" .. info.baseline, a = derived[backend],
        b = derived[info.baseline]}
    end
  end
  return list
end

-- The fitted line with its interval, from one layer to full depth: a list of {x, y, lo, hi},
-- in us/token.
local function fitted_line(derived, last_depth)
  local line, steps = {}, 40
  for step = 0, steps do
    local x = 1 + (last_depth - 1) * step / steps
    local lo, hi = interval(#derived.list, function(k)
      return 1e6 * (derived.list[k].intercept + x * derived.list[k].dt)
    end)
    line[#line + 1] = {x = x, y = 1e6 * (derived.point.intercept + x * derived.point.dt), lo = lo,
      hi = hi}
  end
  return line
end

-- Positions of the kept updates that make up the envelope of one run's throughput array:
-- set[position] = true.
function analysis.envelope(throughput, keep)
  local set, order = {}, bootstrap.ranked(throughput).order
  for i = 1, keep do set[order[i]] = true end
  return set
end

-- The distinct numbers of updates kept, ascending, with the position of each.
local function keep_counts(fractions, n)
  local keeps, positions = {}, {}
  for _, fraction in ipairs(fractions) do
    local keep = analysis.keep(fraction, n)
    if keep >= 1 and not positions[keep] then
      positions[keep] = true
      keeps[#keeps + 1] = keep
    end
  end
  table.sort(keeps)
  for position, keep in ipairs(keeps) do positions[keep] = position end
  return keeps, positions
end

-- The gain in R by top fraction.
local function sweep_rows(rows, info, derive)
  if #info.backends < 2 then return end
  for _, fraction in ipairs(info.sweep) do
    local keep = analysis.keep(fraction, info.n)
    if keep < 1 then
      info.notes[#info.notes + 1] = string.format("top %g %% of %d updates keeps none: left out",
        100 * fraction, info.n)
    else
      for _, pair in ipairs(against_baseline(info, derive(keep))) do
        local a, b = pair.a, pair.b
        local lo, hi = interval(info.replicates, function(k)
          return gain_in_rate(a.list[k].dt, b.list[k].dt)
        end, -100.0)
        rows[#rows + 1] = {
          figure = string.format("gain_R_top%02.0f", 100 * fraction), backend = pair.name,
          value = a.point.R and b.point.R and gain_in_rate(a.point.dt, b.point.dt),
          lo = lo, hi = hi, unit = "%",
        }
      end
    end
  end
end

local function baseline_of(backends, wanted)
  for _, backend in ipairs(backends) do
    if backend == wanted then return wanted end
  end
  return backends[#backends]
end

-- Samples and settings as the context of analysis.run, or nil, message.
local function prepare(rows, options)
  local info, message = samples.collect(rows, options)
  if not info then return nil, message end
  for name, default in pairs(analysis.defaults) do
    info[name] = options[name] == nil and default or options[name]
  end
  if #info.layers < 2 then return nil, "two depths or more are needed: the rows hold one" end
  info.keep = analysis.keep(info.top, info.n)
  if info.keep < 1 then
    return nil, string.format("top fraction %g keeps none of %d updates", info.top, info.n)
  end
  info.baseline = baseline_of(info.backends, info.baseline)
  info.full = tostring(info.full_depth)
  for _, depth in ipairs(info.layers) do
    if depth == info.full_depth then info.full = info.full .. "_line" end
  end
  info.notes = {}
  return info
end

-- Draws the replicates. Returns function(keep) -> derived[backend] = {point, list} of the mean of
-- the `keep` fastest updates, or of the median for nil.
local function resampled(info)
  local cells = {}
  for _, backend in ipairs(info.backends) do
    for _, depth in ipairs(info.layers) do
      local runs = {}
      for r, throughput in ipairs(info.throughput[backend][depth]) do
        runs[r] = bootstrap.ranked(throughput)
      end
      cells[#cells + 1] = runs
    end
  end
  local keeps, positions = keep_counts({info.top, table.unpack(info.sweep)}, info.n)
  local point, list = bootstrap.resample(cells, info.n, keeps, info.replicates, info.seed)
  return function(keep)
    return derive_all(info, point, list, keep and positions[keep] or #keeps + 1)
  end
end

local function add_caveats(info, degenerate)
  local notes = info.notes
  for _, backend in ipairs(info.backends) do
    if degenerate[backend] > 0 then
      notes[#notes + 1] = string.format("%s: dt is not above 0 in %d of %d bootstrap replicates; "
        .. "the study is too short or too noisy to bound R: more --updates or --repetitions",
        backend, degenerate[backend], info.replicates)
    end
  end
  if #info.repetitions == 1 then
    notes[#notes + 1] = "one repetition: the intervals cover updates, not what differs between runs"
  elseif #info.repetitions < 4 then
    notes[#notes + 1] = string.format("%d repetitions: where runs differ more than their updates "
      .. "do, so few make the intervals too narrow", #info.repetitions)
  end
  if info.n == 1 then
    notes[#notes + 1] = "one update a run: the intervals cannot cover what differs between updates"
  end
end

-- rows of updates -> list of {figure, backend, value, lo, hi, unit} for summary.tsv and the
-- context that tables and figures need; or nil, message for rows that cannot be analysed.
-- options: warmup (0), backends and layers (all that occur), and those of analysis.defaults; the
-- gains are over `baseline`, or the last backend where it is absent.
-- The context: {backends, layers, repetitions, n (updates kept a run), warmup, last_update, keep
-- (updates in the envelope), baseline, full (full depth as figure names have it), notes (texts),
-- throughput, time_s (see samples.collect), lines [backend] = {{x, y, lo, hi}} in us/token} and
-- every setting.
function analysis.run(rows, options)
  local info, message = prepare(rows, options)
  if not info then return nil, message end
  local derive = resampled(info)
  local result, degenerate, lines = {}, {}, {}
  local function estimate(derived, suffix)
    for _, backend in ipairs(info.backends) do
      local count = backend_rows(result, suffix, backend, info, derived[backend])
      if suffix == "" then degenerate[backend] = count end
    end
    for _, pair in ipairs(against_baseline(info, derived)) do
      gain_rows(result, suffix, pair, info)
    end
  end
  local envelope = derive(info.keep)
  estimate(envelope, "")
  estimate(derive(nil), "_median")
  sweep_rows(result, info, derive)
  local last_depth = math.max(info.full_depth, info.layers[#info.layers])
  for backend, derived in pairs(envelope) do lines[backend] = fitted_line(derived, last_depth) end
  info.lines = lines
  add_caveats(info, degenerate)
  return result, info
end

-- A row of analysis.run as text cells keyed by column: "-" where there is no value.
function analysis.cells(row)
  local function number(value)
    if value == nil then return "-" end
    return math.type(value) == "integer" and string.format("%d", value)
      or string.format("%.9g", value)
  end
  return {figure = row.figure, backend = row.backend, unit = row.unit, value = number(row.value),
    lo = number(row.lo), hi = number(row.hi)}
end

-- The row of a figure and backend, or nil.
function analysis.find(rows, figure, backend)
  for _, row in ipairs(rows) do
    if row.figure == figure and row.backend == backend then return row end
  end
  return nil
end

return analysis
