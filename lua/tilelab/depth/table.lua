-- The table of a depth-scaling study with units, intervals and which direction is better, for
-- readers who know neither this code nor the study.

local align = require("tilelab.text_table").align
local analysis = require "tilelab.depth.analysis"

local tables = {}

-- The power of 1000, and its letter, that leaves a value one to three digits before the point.
local function magnitude(value)
  for _, step in ipairs {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} do
    if math.abs(value) >= step[1] * 0.9995 then return step[1], step[2] end
  end
  return 1, ""
end

-- Five significant digits as decimals after the point, for a value already scaled.
local function decimals(value)
  if value == 0 then return 3 end
  return math.max(0, math.min(6, 4 - math.floor(math.log(math.abs(value), 10))))
end

local function number(value, scale, digits)
  if math.abs(value) == math.huge then return value > 0 and "inf" or "-inf" end
  return string.format("%." .. digits .. "f", value / scale)
end

local function bounds(row, scale, digits)
  if not row.lo then return "" end
  return string.format(" [%s, %s]", number(row.lo, scale, digits), number(row.hi, scale, digits))
end

-- "0.66644 [0.66238, 0.66881]", "448.59k [447.97, 448.91]", "undefined [.., ..]".
function tables.figure(row)
  local reference = row.value or row.lo
  if not reference then return "undefined" end
  local scale, letter = magnitude(reference)
  local digits = decimals(reference / scale)
  local value = row.value and number(row.value, scale, digits) .. letter or "undefined"
  return value .. bounds(row, scale, digits)
end

-- "+6.69 [+6.36, +7.75]", in percent.
function tables.gain(row)
  local function percent(value)
    if math.abs(value) == math.huge then return value > 0 and "inf" or "-inf" end
    return string.format("%+.2f", value)
  end
  local text = row.value and percent(row.value) or "undefined"
  if row.lo then text = string.format("%s [%s, %s]", text, percent(row.lo), percent(row.hi)) end
  return text
end

-- What is shown of one estimator: {figure, unit, better}.
local function entries(info)
  local list = {}
  for _, depth in ipairs(info.layers) do list[#list + 1] = {"T_" .. depth, "tokens/s", "higher"} end
  for _, depth in ipairs(info.layers) do list[#list + 1] = {"t_" .. depth, "us/token", "lower"} end
  list[#list + 1] = {"dt", "us/token", "lower"}
  list[#list + 1] = {"R", "token-layers/s", "higher"}
  list[#list + 1] = {"T_" .. info.full, "tokens/s", "higher"}
  return list
end

local function legend(info)
  return string.format([[
T_L   throughput with L layers; t_L = 1 / T_L, the time per token
dt    what one more layer adds to the time per token (slope of t_L over L)
R     1 / dt, the model-size rate
%-5s throughput at full depth, from the line through t_L%s]], "T_" .. info.full,
    #info.layers == 2 and "" or " (least squares)")
end

local function challengers(info)
  local list = {}
  for _, backend in ipairs(info.backends) do
    if backend ~= info.baseline then list[#list + 1] = backend end
  end
  return list
end

local function estimator_table(rows, info, suffix)
  local header, cells = {"figure", "unit", "better"}, {}
  for _, backend in ipairs(info.backends) do header[#header + 1] = backend end
  for _, backend in ipairs(challengers(info)) do
    header[#header + 1] = string.format("gain of %s, %%", backend)
  end
  cells[1] = header
  for _, entry in ipairs(entries(info)) do
    local line = {entry[1], entry[2], entry[3]}
    for _, backend in ipairs(info.backends) do
      line[#line + 1] = tables.figure(analysis.find(rows, entry[1] .. suffix, backend))
    end
    for _, backend in ipairs(challengers(info)) do
      local pair = backend .. "/" .. info.baseline
      local row = analysis.find(rows, "gain_" .. entry[1] .. suffix, pair)
      line[#line + 1] = row and tables.gain(row) or ""
    end
    cells[#cells + 1] = line
  end
  return align(cells, {})
end

local function sweep_table(rows, info)
  local cells = {{"updates kept"}}
  for _, backend in ipairs(challengers(info)) do
    table.insert(cells[1], string.format("gain in R of %s, %%", backend))
  end
  for _, fraction in ipairs(info.sweep) do
    local line = {string.format("fastest %g %% (%d of %d)", 100 * fraction,
      analysis.keep(fraction, info.n), info.n)}
    for _, backend in ipairs(challengers(info)) do
      local row = analysis.find(rows, string.format("gain_R_top%02.0f", 100 * fraction),
        backend .. "/" .. info.baseline)
      line[#line + 1] = row and tables.gain(row) or nil
    end
    if #line > 1 then cells[#cells + 1] = line end
  end
  return #cells > 1 and align(cells, {}) or nil
end

-- The text of a study: rows and info as analysis.run returns them.
function tables.study(rows, info)
  local parts = {}
  local function add(format, ...) parts[#parts + 1] = string.format(format, ...) end
  add("Each run: updates %d to %d (%d kept after %d of warm-up), %d repetition%s.",
    info.warmup + 1, info.last_update, info.n, info.warmup, #info.repetitions,
    #info.repetitions == 1 and "" or "s")
  if info.replicates > 0 then
    add("[low, high]: 95 %% interval, paired bootstrap (updates, repetitions), %d replicates.",
      info.replicates)
  end
  if #challengers(info) > 0 then
    add("gain: against %s, towards the better side (dt: lower by so much); below 0 it is a loss.",
      info.baseline)
  end
  add("\n%s", legend(info))
  add("\nEnvelope: throughput of a run = mean of its fastest %d update%s (top %g %%)\n\n%s",
    info.keep, info.keep == 1 and "" or "s", 100 * info.top, estimator_table(rows, info, ""))
  add("\nMedian: throughput of a run = median of its %d updates\n\n%s", info.n,
    estimator_table(rows, info, "_median"))
  local sweep = #challengers(info) > 0 and sweep_table(rows, info)
  if sweep then
    add("\nGain in the model-size rate by how many updates the envelope keeps\n\n%s", sweep)
  end
  for i, note in ipairs(info.notes) do add("%sNote: %s.", i == 1 and "\n" or "", note) end
  return table.concat(parts, "\n") .. "\n"
end

return tables
