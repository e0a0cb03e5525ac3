-- Figures that a depth-scaling record gives beside its analysis: losses and expert load over the updates, and
-- the published study beside ours. Specifications for tilelab.draw.

local core = require "tilelab_core"
local analysis = require "tilelab.depth.analysis"
local published = require "tilelab.depth.published"
local record = require "tilelab.record"
local recorded = require "tilelab.recorded"

local curves = {}

-- Points of a column over the updates of the first repetition at the deepest model: a series for each backend.
local function over_updates(data, column, backends)
  local deepest, series, by_name = 0, {}, {}
  for _, row in ipairs(data.rows) do deepest = math.max(deepest, data:number(row, "layers")) end
  for slot, backend in ipairs(backends) do
    series[slot] = { name = backend, slot = slot, style = "line", points = {} }
    by_name[backend] = series[slot].points
  end
  for _, row in ipairs(data.rows) do
    if data:number(row, "layers") == deepest and row.repetition == "1" then
      local points = by_name[row.backend]
      points[#points + 1] = { x = data:number(row, "update"), y = tonumber(row[column]) }
    end
  end
  return series, deepest
end

-- The largest difference of a column between any backend and the first at one update, relative to the first's.
local function apart(series)
  local worst = 0
  for i = 2, #series do
    for k, point in ipairs(series[i].points) do
      local other = series[1].points[k]
      if other and point.y and other.y then worst = math.max(worst, math.abs(point.y / other.y - 1)) end
    end
  end
  return worst
end

local function layers_text(count) return count == 1 and "1 layer" or count .. " layers" end

local function loss(data, info)
  local series, deepest = over_updates(data, "loss", info.backends)
  local note = #series > 1 and ("No backend's loss differs from that of %s by more than %.1e of it"):format(
    series[1].name, apart(series)) or nil
  return { name = "loss", kind = "lines", xlabel = "Update", ylabel = "Loss (nats)", series = series,
    caption = { what = ("Mean cross-entropy of each update, first repetition at %s, routing %s, %s"):format(
      layers_text(deepest), data.rows[1].routing, data.rows[1].precision), n = "one run of each backend",
      statistic = "mean over the tokens of an update", note = note } }
end

-- The experts' load: `column` of updates.tsv, in words and for the axis.
local function load(data, info, column, words)
  local series, deepest = over_updates(data, column, info.backends)
  local most = 0
  for _, one in ipairs(series) do
    for _, point in ipairs(one.points) do most = math.max(most, point.y or 0) end
  end
  if most == 0 then return nil end -- no expert was ever empty, or the model has none
  return { name = words.name, kind = "lines", xlabel = "Update", ylabel = words.axis, series = series, zero = true,
    caption = { what = ("%s of the %s experts, last micro-batch of each update at %s, routing %s"):format(words.what,
      data.rows[1].experts_per_gpu, layers_text(deepest), data.rows[1].routing), n = "one run of each backend",
      statistic = "mean over the layers" } }
end

local FULLEST = { name = "expert_load", axis = "Rows of the fullest, over the mean", what = "Rows of the fullest" }
local EMPTY = { name = "experts_empty", axis = "Experts without rows", what = "Number without any row," }

-- Tokens/s as published, by "T_1 backend"; empty where the file is not there.
local function published_throughputs()
  local path, found = recorded.root .. "/" .. published.default_path, {}
  if not core.stat(path) then return found end
  for _, row in ipairs(record.read(path, { "figure", "backend", "value" }).rows) do
    found[row.figure .. " " .. row.backend] = published.parse(row.value).value
  end
  return found
end

-- Time per token and GPU against depth, ours and as published; only for the published layout on a GPU.
local function beside_published(data, result, info)
  if data.rows[1].model ~= "30b-a3b" or data.provenance.device == "cpu" then return nil end
  local series, throughput = {}, published_throughputs()
  local chip = data.provenance.device_model:gsub("^NVIDIA ", "")
  for slot, backend in ipairs(info.backends) do
    local points = {}
    for i, depth in ipairs(info.layers) do
      local row = analysis.find(result, "t_" .. depth, backend)
      points[i] = { x = depth, y = row.value, lo = row.lo, hi = row.hi }
    end
    series[#series + 1] = { name = ("%s, one %s"):format(backend, chip), slot = slot, points = points }
  end
  for slot, backend in ipairs(info.backends) do
    local points = {}
    for _, depth in ipairs { 1, 2 } do
      local total = throughput[("T_%d %s"):format(depth, backend)]
      if total then points[#points + 1] = { x = depth, y = 1e6 * published.GPUS / total } end
    end
    if #points > 0 then
      series[#series + 1] = { name = backend .. ", published, B200", slot = slot + 4, points = points }
    end
  end
  return { name = "published", kind = "lines", xlabel = "Model depth (layers)", ylabel = "Time per token (µs, a GPU)",
    series = series, zero = true, xtics = info.layers,
    caption = { what = "Time per token of one GPU against model depth, beside the published study of four B200 "
      .. "(RapidGEMM README; its throughput over four)", statistic = "inverse of the mean throughput of the fastest "
      .. "updates", n = ("%d updates in each of %d run%s here; one as published"):format(info.n, #info.repetitions,
      #info.repetitions == 1 and "" or "s"),
      note = ("What differs: here one GPU holds all 128 experts and communicates with none, there each held 32, "
      .. "exchanged tokens with the others and sharded its optimiser; here %s, there fp32 outside of the grouped "
      .. "GEMMs; another chip and another trainer. The slopes are what one layer costs, the offsets what embedding, "
      .. "head and optimiser do"):format(data.rows[1].precision) } }
end

-- Specifications of all of them that the record has something for; result and info: of analysis.run.
function curves.build(data, result, info)
  local list = { loss(data, info) }
  list[#list + 1] = load(data, info, "load_max_over_mean", FULLEST)
  list[#list + 1] = load(data, info, "experts_empty", EMPTY)
  list[#list + 1] = beside_published(data, result, info)
  return list
end

return curves
