-- A paired bootstrap over update indices and repetitions, and percentile intervals.
--
-- Each replicate draws n updates and the repetitions with replacement, once for all backends and
-- depths, so that what an update (its text, its routing) does to all runs cancels in comparisons.
-- Runs are sorted once; a replicate is a vector of counts, and one walk down the sorted updates
-- gives the mean of every top fraction and the median. What it cannot know: an envelope above the
-- fastest update seen, and, from one repetition, how much runs differ.

local bootstrap = {}

-- A splitmix64 stream (Steele, Lea, Flood 2014): the same draws on every machine.
-- Returns function(n) -> an integer in 1..n, for n below 2^31.
function bootstrap.generator(seed)
  local state = seed
  return function(n)
    state = state + 0x9E3779B97F4A7C15
    local z = state
    z = (z ~ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ~ (z >> 27)) * 0x94D049BB133111EB
    z = z ~ (z >> 31)
    return ((z >> 32) * n >> 32) + 1
  end
end

-- values [n] -> {order = update positions, fastest first, value = the values in that order}.
-- Ties keep the order of the updates, so that the result does not depend on the sort.
function bootstrap.ranked(values)
  local order, value = {}, {}
  for i = 1, #values do order[i] = i end
  table.sort(order, function(a, b)
    if values[a] ~= values[b] then return values[a] > values[b] end
    return a < b
  end)
  for i, position in ipairs(order) do value[i] = values[position] end
  return {order = order, value = value}
end

-- Of the sample in which update i of a ranked run occurs counts[i] times (n in all): out[j] = mean
-- of the keeps[j] fastest (keeps ascending), out[#keeps + 1] = median.
function bootstrap.statistics(run, counts, n, keeps, out)
  local order, value, num_keeps = run.order, run.value, #keeps
  local upper, lower = (n + 1) // 2, n // 2 + 1
  local taken, sum, next_keep, median_upper = 0, 0.0, 1, nil
  for i = 1, #order do
    local count = counts[order[i]]
    if count > 0 then
      local x = value[i]
      local reached = taken + count
      while next_keep <= num_keeps and keeps[next_keep] <= reached do
        local keep = keeps[next_keep]
        out[next_keep] = (sum + (keep - taken) * x) / keep
        next_keep = next_keep + 1
      end
      if not median_upper and upper <= reached then median_upper = x end
      if lower <= reached and not out.median_done then
        out[num_keeps + 1] = (median_upper + x) / 2
        out.median_done = true
      end
      taken, sum = reached, sum + count * x
      if out.median_done and next_keep > num_keeps then break end
    end
  end
  out.median_done = nil
  return out
end

-- Means over repetitions of the statistics above: means[cell][j], for the runs of each cell
-- (cells[cell] = list of ranked runs, one a repetition) and repetition weights (summing to 1).
local function averaged(cells, counts, n, keeps, weights, scratch)
  local means = {}
  for cell, runs in ipairs(cells) do
    local mean = {}
    for j = 1, #keeps + 1 do mean[j] = 0.0 end
    for repetition, weight in ipairs(weights) do
      if weight > 0 then
        local out = bootstrap.statistics(runs[repetition], counts, n, keeps, scratch)
        for j = 1, #keeps + 1 do mean[j] = mean[j] + weight * out[j] end
      end
    end
    means[cell] = mean
  end
  return means
end

-- The sample itself, then `replicates` resamples of it: point, list of the same shape as point.
function bootstrap.resample(cells, n, keeps, replicates, seed)
  local num_repetitions = #cells[1]
  local counts, weights, scratch = {}, {}, {}
  for i = 1, n do counts[i] = 1 end
  for r = 1, num_repetitions do weights[r] = 1 / num_repetitions end
  local point = averaged(cells, counts, n, keeps, weights, scratch)
  local below, list = bootstrap.generator(seed), {}
  for replicate = 1, replicates do
    for i = 1, n do counts[i] = 0 end
    for _ = 1, n do
      local i = below(n)
      counts[i] = counts[i] + 1
    end
    for r = 1, num_repetitions do weights[r] = 0 end
    for _ = 1, num_repetitions do
      local r = below(num_repetitions)
      weights[r] = weights[r] + 1 / num_repetitions
    end
    list[replicate] = averaged(cells, counts, n, keeps, weights, scratch)
  end
  return point, list
end

-- Linear between order statistics (type 7 of Hyndman and Fan 1996); next to an infinite one it
-- takes the neighbour on the `outward` side (-1 or 1).
local function quantile(sorted, p, outward)
  local h = (#sorted - 1) * p + 1
  local i = math.floor(h)
  local low, high = sorted[i], sorted[math.min(i + 1, #sorted)]
  if low == high then return low end
  if low == -math.huge or high == math.huge then
    if h == i then return low end
    return outward < 0 and low or high
  end
  return low + (h - i) * (high - low)
end

-- Central 95 % of the replicates: lo, hi. Sorts `values` in place; infinities are welcome.
-- Without replicates: nil.
function bootstrap.interval(values)
  if #values == 0 then return nil end
  table.sort(values)
  return quantile(values, 0.025, -1), quantile(values, 0.975, 1)
end

return bootstrap
