-- The four figures of a depth-scaling study, as specifications for tilelab.draw:
--   throughput     throughput by depth and backend, clustered bars
--   time_per_token time per token against depth, with the fitted line to full depth
--   gain           gain in R over the baseline against the top fraction
--   trace          time of each update, those of the envelope marked
-- Rows and info are what analysis.run returns; nothing is computed anew here.

local analysis = require "tilelab.depth.analysis"
local tables = require "tilelab.depth.table"

local figures = {}

local function point(x, row, scale)
  return {x = x, y = row.value * scale, lo = row.lo and row.lo * scale,
    hi = row.hi and row.hi * scale}
end

local function envelope_text(info)
  return string.format("mean throughput of the fastest %d of %d updates", info.keep, info.n)
end

-- A new caption: that of the study (device, clock, commit, note), what is drawn, the statistic of
-- a mark, n and interval.
local function caption(info, study, what, statistic)
  local result = {what = what, statistic = statistic}
  for key, text in pairs(study) do result[key] = text end
  result.n = string.format("%d updates in each of %d run%s", info.n, #info.repetitions,
    #info.repetitions == 1 and "" or "s")
  if info.replicates > 0 then
    result.interval = string.format("95 %% intervals of a paired bootstrap over updates and "
      .. "repetitions (%d replicates)", info.replicates)
  end
  return result
end

-- Throughputs are drawn in thousands once the largest has five digits.
local function throughput_scale(rows, info)
  local largest = 0
  for _, backend in ipairs(info.backends) do
    largest = math.max(largest, analysis.find(rows, "T_" .. info.layers[1], backend).value)
  end
  if largest >= 1e4 then return 1e-3, "Throughput (1000 tokens/s)" end
  return 1, "Throughput (tokens/s)"
end

local function throughput(rows, info, study)
  local scale, ylabel = throughput_scale(rows, info)
  local series = {}
  for i, backend in ipairs(info.backends) do
    local points = {}
    for _, depth in ipairs(info.layers) do
      local label = depth == 1 and "1 layer" or depth .. " layers"
      points[#points + 1] = point(label, analysis.find(rows, "T_" .. depth, backend), scale)
    end
    series[i] = {name = backend, points = points}
  end
  return {
    kind = "bars", name = "throughput", title = "Throughput by depth", xlabel = "Model depth",
    ylabel = ylabel, series = series,
    caption = caption(info, study, "Throughput of the training step by model depth "
      .. "and backend of the grouped GEMMs", envelope_text(info)),
  }
end

-- The numbers that a paper prints of it: the depths that were measured, and the line's end.
local function time_table(rows, info)
  local result = {columns = {"Model depth (layers)"}, rows = {}}
  for b, backend in ipairs(info.backends) do
    result.columns[b + 1] = backend
    for i, depth in ipairs(info.layers) do
      result.rows[i] = result.rows[i] or {tostring(depth)}
      result.rows[i][b + 1] = tables.figure(analysis.find(rows, "t_" .. depth, backend))
    end
    local last = #info.layers + 1
    result.rows[last] = result.rows[last] or {info.full_depth .. ", fitted line"}
    result.rows[last][b + 1] = tables.figure(analysis.find(rows, "t_" .. info.full, backend))
  end
  return result
end

local function time_per_token(rows, info, study)
  local series, count = {}, #info.backends
  for slot, backend in ipairs(info.backends) do
    local measured = {}
    for i, depth in ipairs(info.layers) do
      measured[i] = point(depth, analysis.find(rows, "t_" .. depth, backend), 1)
    end
    series[slot] = {name = backend, style = "points", slot = slot, points = measured}
    series[count + slot] = {name = backend .. ", fitted line", style = "line", slot = slot, key = false,
      points = info.lines[backend]}
  end
  local description = caption(info, study, string.format("Time per token against model "
    .. "depth as measured, and the least-squares line to full depth (%d layers)", info.full_depth),
    "inverse of the " .. envelope_text(info))
  if description.interval then
    description.interval = description.interval .. ", and so are the error bars where depths were "
      .. "measured"
  end
  return {
    kind = "lines", name = "time_per_token", title = "Time per token: measured, and lines fitted",
    xlabel = "Model depth (layers)", ylabel = "Time per token (µs)", series = series,
    caption = description, table = time_table(rows, info),
  }
end

local function gain(rows, info, study)
  local series, around_zero, open = {}, false, false
  for _, backend in ipairs(info.backends) do
    local pair, points = backend .. "/" .. info.baseline, {}
    for _, fraction in ipairs(info.sweep) do
      local row = analysis.find(rows, string.format("gain_R_top%02.0f", 100 * fraction), pair)
      if row and row.value then
        points[#points + 1] = point(100 * fraction, row, 1)
        around_zero = around_zero or math.min(row.value, row.lo or 0) < 0
        open = open or row.hi == math.huge
      end
    end
    if #points > 0 then
      series[#series + 1] = {name = backend .. " over " .. info.baseline, style = "both",
        points = points}
    end
  end
  if #series == 0 then return nil end
  local description = caption(info, study, string.format("Gain over %s in the model-size "
    .. "rate R = 1 / dt, dt being the time per token of one more layer, by how many of the fastest "
    .. "updates of each run count", info.baseline), "ratio of the rates, less 1")
  if open then
    description.note = (description.note and description.note .. ". " or "")
      .. "Intervals without an upper end are not drawn"
  end
  return {
    kind = "lines", name = "gain", title = "Gain in model-size rate",
    xlabel = "Fastest updates kept (%)", ylabel = "Gain in R (%)", series = series,
    interval = "band", references = around_zero and {{y = 0, label = "no gain"}} or nil,
    caption = description,
  }
end

-- Update times of the first repetition at the largest depth; in ms where all are below 10 s.
local function trace(_, info, study)
  local depth, series = info.layers[#info.layers], {}
  local longest = 0
  for _, backend in ipairs(info.backends) do
    for _, seconds in ipairs(info.time_s[backend][depth][1]) do
      longest = math.max(longest, seconds)
    end
  end
  local scale, unit = 1000, "ms"
  if longest >= 10 then scale, unit = 1, "s" end
  for i, backend in ipairs(info.backends) do
    local marked = analysis.envelope(info.throughput[backend][depth][1], info.keep)
    local points = {}
    for position, seconds in ipairs(info.time_s[backend][depth][1]) do
      points[position] = {x = info.warmup + position, y = scale * seconds, mark = marked[position]}
    end
    series[i] = {name = backend, style = "line", points = points}
  end
  local description = caption(info, study, string.format("Times of the updates after "
    .. "warm-up, first repetition at %d layers", depth), "time of one update")
  description.n = string.format("%d updates of one run", info.n)
  return {
    kind = "trace", name = "trace", title = string.format("Update times, %d layers", depth),
    xlabel = "Update", ylabel = string.format("Time of the update (%s)", unit), series = series,
    marked = string.format("fastest %d of %d", info.keep, info.n), caption = description,
  }
end

-- study: what all captions have {clock, device, commit, note}. Returns a list of specifications, in the order above;
-- without the gain where there is no gain to draw (one backend, or dt of 0).
function figures.build(rows, info, study)
  local list = {}
  for _, build in ipairs {throughput, time_per_token, gain, trace} do
    list[#list + 1] = build(rows, info, study)
  end
  return list
end

return figures
