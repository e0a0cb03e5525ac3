-- The rows of a depth-scaling study as arrays of throughput, ready for the analysis.
--
-- A row is {backend, layers, repetition, update, tokens, time_s}, numbers or their text (other
-- columns are ignored). Every run (one backend, depth and repetition) must hold the same updates
-- with the same token counts: the bootstrap pairs update u of one run with update u of the others,
-- which is only meaningful when both did the same work.

local schedule = require "tilelab.depth.schedule"

local samples = {}

local function whole(value)
  local number = tonumber(value)
  return number and math.tointeger(number)
end

-- A finite number above zero, or nil.
local function positive(value)
  local number = tonumber(value)
  if number and number > 0 and number < math.huge then return number end
  return nil
end

-- rows -> runs[backend][layers][repetition][update] = row, what occurs of each, or nil, message.
local function index(rows)
  local runs, backends, layers, repetitions = {}, {}, {}, {}
  local last_update = 0
  local function noted(set, list, value)
    if not set[value] then
      set[value] = {}
      if list then list[#list + 1] = value end
    end
    return set[value]
  end
  local seen_layers, seen_repetitions = {}, {}
  for position, row in ipairs(rows) do
    local depth, repetition = whole(row.layers), whole(row.repetition)
    local update, backend = whole(row.update), row.backend
    if not (backend and depth and repetition and update and depth >= 1 and repetition >= 1
        and update >= 1) then
      return nil, string.format("row %d: backend '%s', layers '%s', repetition '%s', update '%s': "
        .. "expected a name and three whole numbers from 1", position, backend, row.layers,
        row.repetition, row.update)
    end
    noted(seen_layers, layers, depth)
    noted(seen_repetitions, repetitions, repetition)
    local run = noted(noted(noted(runs, backends, backend), nil, depth), nil, repetition)
    if run[update] then
      return nil, string.format("%s: update %d occurs twice",
        schedule.name {backend = backend, layers = depth, repetition = repetition}, update)
    end
    run[update] = row
    last_update = math.max(last_update, update)
  end
  table.sort(layers)
  table.sort(repetitions)
  return {runs = runs, backends = backends, layers = layers, repetitions = repetitions,
    last_update = last_update}
end

-- One run's kept updates as two arrays, or nil, message. `tokens` [update] is what the first run
-- counted; it is filled by that run and compared by the others.
local function take(run, name, warmup, last_update, tokens)
  local throughput, time_s = {}, {}
  for update = warmup + 1, last_update do
    local row = run[update]
    if not row then return nil, string.format("%s: update %d is missing", name, update) end
    local count, seconds = positive(row.tokens), positive(row.time_s)
    if not (count and seconds) then
      return nil, string.format("%s, update %d: tokens '%s' and time_s '%s' must be numbers "
        .. "above 0", name, update, row.tokens, row.time_s)
    end
    tokens[update] = tokens[update] or count
    if tokens[update] ~= count then
      return nil, string.format("%s, update %d: %s tokens where other runs have %s; "
        .. "runs are compared update by update and need the same text, seed and sizes", name,
        update, row.tokens, tokens[update])
    end
    throughput[#throughput + 1] = count / seconds
    time_s[#time_s + 1] = seconds
  end
  return throughput, time_s
end

-- Returns {backends, layers, repetitions (numbers), warmup, last_update, n (updates kept a run),
-- throughput [backend][layers][repetition position][n] tokens/s, time_s (the same shape)}, or nil
-- and a message that names the run and the update. options: warmup; backends and layers select
-- (default: all that occur); backends keep their order, depths come ascending.
function samples.collect(rows, options)
  local found, message = index(rows)
  if not found then return nil, message end
  local data = {
    backends = options.backends or found.backends,
    layers = {table.unpack(options.layers or found.layers)},
    repetitions = found.repetitions, warmup = options.warmup or 0,
    last_update = found.last_update, throughput = {}, time_s = {},
  }
  table.sort(data.layers)
  data.n = data.last_update - data.warmup
  if data.n < 1 then
    return nil, string.format("no update is left: the rows end at update %d and the warm-up "
      .. "takes %d", data.last_update, data.warmup)
  end
  local tokens = {}
  for _, backend in ipairs(data.backends) do
    data.throughput[backend], data.time_s[backend] = {}, {}
    for _, depth in ipairs(data.layers) do
      local throughputs, times = {}, {}
      for position, repetition in ipairs(data.repetitions) do
        local name = schedule.name {backend = backend, layers = depth, repetition = repetition}
        local run = found.runs[backend] and found.runs[backend][depth]
          and found.runs[backend][depth][repetition]
        if not run then return nil, name .. ": the run is missing" end
        local throughput, time_s = take(run, name, data.warmup, data.last_update, tokens)
        if not throughput then return nil, time_s end
        throughputs[position], times[position] = throughput, time_s
      end
      data.throughput[backend][depth], data.time_s[backend][depth] = throughputs, times
    end
  end
  return data
end

return samples
