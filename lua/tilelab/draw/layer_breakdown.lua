-- layer_breakdown.tsv: where the time of an update of the training step goes, a row a kernel class of a pass.
--
--   backend layers precision   what trained, and how deep
--   pass           forward, backward, optimiser; other: outside of every launch of the step; update: the whole
--   kernel_class   lua/tilelab/breakdown/classes.lua lists them; all, unrecorded in the rows of the whole update
--   launches       kernels, memsets and copies of an update
--   time_us        of an update: their durations, added up; of `all` from the first start to the last end of
--                  the recorded updates, over their number; of `unrecorded` the median by the host's clock while
--                  nothing was recorded
--   share_of_update   of time_us of `all`; with idle_pct the classes add up to 1
--   logical_gbps   bytes that the equations need, real rows only, over time_us
--   copy_ratio     logical_gbps over that of a copy of 1 GiB recorded after the updates; of classes that are bound
--                  by memory
--   tflops         FLOPs of the equations, real rows only, over time_us
--   tensor_pct     cycles in which tensor cores worked, of those in which a multiprocessor had work
--   occupancy_pct  warps resident while a multiprocessor had any, of 64; both by counter in one more micro-batch,
--                  means weighted by time, "-" where counters are refused
--   idle_pct       time of an update in which nothing ran, right before a kernel of this class, in percent of the
--                  update; of `all` the sum
--
-- The tokens of an update, which the split of the gain needs, stand in the provenance.

local draw = require "tilelab.draw"
local rows = require "tilelab.rows"
local split = require "tilelab.breakdown.split"

local breakdown = {
  schema = {
    { "backend", "text" }, { "layers", "integer" }, { "precision", "text" },
    { "pass", "text", { "forward", "backward", "optimiser", "other", "update" } }, { "kernel_class", "text" },
    { "launches", "integer" }, { "time_us", "number" }, { "share_of_update", "number" }, { "logical_gbps", "number?" },
    { "copy_ratio", "number?" }, { "tflops", "number?" }, { "tensor_pct", "number?" }, { "occupancy_pct", "number?" },
    { "idle_pct", "number?" },
  },
}

-- What the figures of time keep apart, from the foot up; the rest is "other".
local GROUPS = { "grouped GEMM", "dense GEMM", "attention", "permute, combine, SwiGLU", "norm, rope, router",
  "padding, zeroing, counts", "idle" }
local IDLE = GROUPS[7]
local group_of = { grouped_fprop = GROUPS[1], grouped_dgrad = GROUPS[1], grouped_wgrad = GROUPS[1],
  dense_gemm = GROUPS[2], attention = GROUPS[3], convert = GROUPS[3], permute = GROUPS[4], combine = GROUPS[4],
  swiglu = GROUPS[4], norm = GROUPS[5], rope = GROUPS[5], router = GROUPS[5], padding = GROUPS[6],
  zeroing = GROUPS[6], host_counts = GROUPS[6] }

local function numbered(data)
  local list = {}
  for i, row in ipairs(data.rows) do
    list[i] = { backend = row.backend, layers = data:number(row, "layers"), pass = row.pass,
      kernel_class = row.kernel_class, time_us = data:number(row, "time_us"), idle_pct = rows.number(row.idle_pct) or 0,
      occupancy_pct = rows.number(row.occupancy_pct), tensor_pct = rows.number(row.tensor_pct),
      copy_ratio = rows.number(row.copy_ratio), precision = row.precision }
  end
  return list
end

-- Names in the order of the rows; `of` gives the name of a row.
local function names(list, of)
  local result, seen = {}, {}
  for _, row in ipairs(list) do
    local name = of(row)
    if name and not seen[name] then result[#result + 1], seen[name] = name, true end
  end
  return result
end

local function backends_of(list) return names(list, function(row) return row.backend end) end

local function where(list, backend)
  local result = {}
  for _, row in ipairs(list) do
    if row.backend == backend then result[#result + 1] = row end
  end
  return result
end

local function tokens_of(data) return tonumber(data.provenance.tokens_an_update) end

-- The table of the split; nil where the record holds one depth, or one backend.
function breakdown.text(data)
  local list, tokens, layers = numbered(data), tokens_of(data), {}
  local backends = backends_of(list)
  for _, backend in ipairs(backends) do
    layers[backend] = tokens and split.layer(where(list, backend), tokens)
    if not layers[backend] then return nil end
  end
  return split.text(layers, backends, layers.rapidgemm and "rapidgemm" or backends[1])
end

-- Cost of one more layer by group, in us a token: what is at the deeper model less what is at the shallower one.
-- A bar for each pass of a backend; what is outside of the passes stands with the optimiser.
local function layer_bars(data, list)
  local low, high, update_us, bars = math.huge, -math.huge, {}, {}
  for _, row in ipairs(list) do
    low, high = math.min(low, row.layers), math.max(high, row.layers)
    if row.kernel_class == "all" then update_us[row.backend .. row.layers] = row.time_us end
  end
  if not (low < high) then return {} end
  for _, backend in ipairs(backends_of(list)) do
    for _, pass in ipairs { "forward", "backward", "optimiser" } do bars[#bars + 1] = backend .. " " .. pass end
  end
  local scale, series, by_name = 1 / ((high - low) * tokens_of(data)), {}, {}
  local function point(group, bar)
    local one = by_name[group]
    if not one then
      one = { name = group, points = {}, of = {} }
      for i, name in ipairs(bars) do
        one.points[i] = { x = name, y = 0 }
        one.of[name] = one.points[i]
      end
      by_name[group], series[#series + 1] = one, one
    end
    return one.of[bar]
  end
  for _, row in ipairs(list) do
    local sign = row.layers == high and 1 or row.layers == low and -1 or 0
    if row.pass ~= "update" then
      local bar = ("%s %s"):format(row.backend, row.pass == "other" and "optimiser" or row.pass)
      local work, idle = point(group_of[row.kernel_class] or "rest", bar), point(IDLE, bar)
      work.y = work.y + sign * scale * row.time_us
      idle.y = idle.y + sign * scale * row.idle_pct / 100 * update_us[row.backend .. row.layers]
    end
  end
  for _, one in ipairs(series) do
    one.of = nil
    for _, made in ipairs(one.points) do made.y = math.max(0, made.y) end -- noise of parts that do not grow
  end
  return series
end

local SHOWN = 0.002 -- of an update: classes below are left out of the figure of counters

-- Series of the figure of counters: a row a class and pass of the deepest model of one backend.
local function counter_dots(list, backend)
  local deepest = -math.huge
  for _, row in ipairs(list) do deepest = math.max(deepest, row.layers) end
  local all, specs = 0, { { "tensor cores busy", "tensor_pct", 1 }, { "occupancy", "occupancy_pct", 1 },
    { "logical bytes, of a copy", "copy_ratio", 100 } }
  for _, row in ipairs(list) do
    if row.backend == backend and row.layers == deepest and row.kernel_class == "all" then all = row.time_us end
  end
  local series, order, named = {}, {}, {}
  for s, spec in ipairs(specs) do
    local points = {}
    for _, row in ipairs(list) do
      if row.backend == backend and row.layers == deepest and row.pass ~= "update" and row[spec[2]]
        and row.time_us >= SHOWN * all then
        local name = ("%s, %s"):format(row.kernel_class:gsub("_", " "), row.pass)
        if not named[name] then named[name], order[#order + 1] = true, name end
        points[#points + 1] = { x = name, y = spec[3] * row[spec[2]] }
      end
    end
    if #points > 0 then series[#series + 1] = { name = spec[1], points = points, slot = s } end
  end
  return series, order, deepest
end

function breakdown.draw(data, options)
  local list, specs = numbered(data), {}
  local backends, precision = backends_of(list), list[1].precision
  local n = ("%s updates"):format(data.provenance.recorded_updates or "some")
  specs[1] = { name = "layer_time", kind = "parts", preset = "acm-full", order = GROUPS,
    series = layer_bars(data, list), xlabel = "Backend and pass", ylabel = "Time of a layer (µs/token)",
    caption = { what = ("What one more layer costs, by kind of work (%s): kernel records of whole updates at two "
      .. "depths, the difference"):format(precision), n = n, statistic = "mean",
      note = "Counts: rows of each group, copied to the host. Idle: nothing ran, counted with the pass of the kernel "
        .. "that came next. Other: AdamW and the gradients' norm. What does not grow with depth (embedding, head) is "
        .. "not there; what belongs to no pass, as zeroing, stands with the optimiser. A part that is shorter in the "
        .. "deeper model is drawn as 0" } }
  for _, backend in ipairs(backends) do
    local series, order, deepest = counter_dots(list, backend)
    specs[#specs + 1] = { name = "layer_counters_" .. backend, kind = "dots", preset = "acm-column", series = series,
      order = order, xlabel = "Kernel class", ylabel = "Share (%)", yrange = { 0, nil },
      caption = { what = ("Counters of the kernel classes of %s, %d layers, %s: cycles in which tensor cores worked "
        .. "and resident warps, both while a multiprocessor had work; and the bytes that the equations need over time, "
        .. "of a copy's"):format(backend, deepest, precision), n = "one micro-batch and the optimiser",
        statistic = "mean weighted by time", note = ("Classes below %g %% of the update are left out. Operands still "
        .. "in L2 can take a class above a copy"):format(100 * SHOWN) } }
  end
  return draw.figures(data, options, specs)
end

return breakdown
