-- Published depth-scaling figures against the analysis of this repository: the four published
-- throughputs go through analysis.derive and analysis.gains, and each published figure must agree
-- with what comes out, as far as the printed digits of the inputs and of the figure itself tell.
--
-- The file is a TSV with the columns figure, backend, value and unit; values keep their printed
-- digits ("449.17k", "1.500"), since these state the rounding.

local analysis = require "tilelab.depth.analysis"
local text_table = require "tilelab.text_table"

local published = {}

published.default_path = "experiments/published_depth_scaling.tsv"
published.GPUS = 4    -- whose throughputs together are published, and whose micro-batches one device here does at once
published.TOP = 0.10  -- fraction of the fastest updates that make a run's throughput, likewise
published.WARMUP = 20 -- first updates of a run that are dropped, the study's own default too

local FULL_DEPTH = 20
local LAYERS = {1, 2}
local ADVANCED, BASELINE = "rapidgemm", "deepgemm"
local PAIR = ADVANCED .. "/" .. BASELINE

-- The throughputs that are fed in, in the order of the corner combinations.
local INPUTS = {
  {"T_1", ADVANCED, "tokens/s"}, {"T_2", ADVANCED, "tokens/s"},
  {"T_1", BASELINE, "tokens/s"}, {"T_2", BASELINE, "tokens/s"},
}

-- The nine figures: name, backend, unit, its value in that unit from the derived figures of both
-- backends and the gains.
local FIGURES = {
  {"dt", ADVANCED, "us/token", function(a) return 1e6 * a.dt end},
  {"dt", BASELINE, "us/token", function(_, b) return 1e6 * b.dt end},
  {"R", ADVANCED, "token-layers/s", function(a) return a.R end},
  {"R", BASELINE, "token-layers/s", function(_, b) return b.R end},
  {"T_20", ADVANCED, "tokens/s", function(a) return a.T_full end},
  {"T_20", BASELINE, "tokens/s", function(_, b) return b.T_full end},
  {"gain_dt", PAIR, "%", function(_, _, gain) return gain.dt end},
  {"gain_R", PAIR, "%", function(_, _, gain) return gain.R end},
  {"gain_T_20", PAIR, "%", function(_, _, gain) return gain.T_full end},
}

local SCALES = {[""] = 1, k = 1e3, M = 1e6, G = 1e9}

-- "449.17k" -> {value, half (half a unit of the last printed digit), decimals, letter}; nil if the
-- text is no such number.
function published.parse(text)
  local sign, digits, fraction, letter = text:match("^([+-]?)(%d+)%.?(%d*)([kMG]?)$")
  if not digits or text:find("%.[kMG]?$") then return nil end
  local scale = SCALES[letter]
  local magnitude = tonumber(digits .. "." .. fraction .. "0") * scale
  return {
    value = sign == "-" and -magnitude or magnitude, half = 0.5 * 10.0 ^ -#fraction * scale,
    decimals = #fraction, letter = letter,
  }
end

-- "M token-layers/s" against "token-layers/s" -> 1e6; nil when they differ in more than a prefix.
local function unit_scale(text, unit)
  if text == unit then return 1 end
  local letter = text:match("^([kMG]) ")
  return letter and text:sub(3) == unit and SCALES[letter] or nil
end

local function split(line)
  local cells = {}
  for cell in (line .. "\t"):gmatch("([^\t]*)\t") do cells[#cells + 1] = cell end
  return cells
end

local function fail(path, line, format, ...)
  return nil, string.format("%s:%d: ", path, line) .. string.format(format, ...)
end

-- Positions of the needed columns in a header row, or nil, message.
local function header(path, line, cells)
  local columns = {}
  for i, name in ipairs(cells) do columns[name] = i end
  for _, name in ipairs {"figure", "backend", "value", "unit"} do
    if not columns[name] then
      return fail(path, line, "column '%s' is missing; the header row needs figure, backend, value "
        .. "and unit, separated by tabs", name)
    end
  end
  columns.count = #cells
  return columns
end

-- text of the file -> found["figure backend"] = {text, unit, line}, number of lines; or nil,
-- message.
local function read(path, text)
  if text ~= "" and text:sub(-1) ~= "\n" then
    local _, newlines = text:gsub("\n", "")
    return fail(path, newlines + 1, "the last row has no newline, so it may have been cut: "
      .. "complete it")
  end
  local found, columns, number = {}, nil, 0
  for line in text:gmatch("([^\n]*)\n") do
    number = number + 1
    line = line:gsub("\r$", "")
    if line ~= "" and line:sub(1, 1) ~= "#" then
      local cells = split(line)
      if not columns then
        local problem
        columns, problem = header(path, number, cells)
        if not columns then return nil, problem end
      elseif #cells ~= columns.count then
        return fail(path, number, "%d cells where the header has %d; cells are separated by tabs",
          #cells, columns.count)
      else
        local key = cells[columns.figure] .. " " .. cells[columns.backend]
        if found[key] then
          return fail(path, number, "figure %s of %s stands in line %d already",
            cells[columns.figure], cells[columns.backend], found[key].line)
        end
        found[key] = {text = cells[columns.value], unit = cells[columns.unit], line = number}
      end
    end
  end
  if not columns then return fail(path, number, "no header row (figure, backend, value, unit)") end
  return found, number
end

-- The entry of one wanted figure as {value, half, decimals, letter, scale, text, unit}, value and
-- half in the unit of the analysis; or nil, message.
local function lookup(path, found, last_line, figure, backend, unit)
  local entry = found[figure .. " " .. backend]
  if not entry then
    return fail(path, last_line, "the file ends without figure %s of %s: add its row (unit %s)",
      figure, backend, unit)
  end
  local parsed = published.parse(entry.text)
  if not parsed then
    return fail(path, entry.line, "%s of %s: '%s' is not a number; write digits as printed, "
      .. "such as 449.17k or 1.500", figure, backend, entry.text)
  end
  local scale = unit_scale(entry.unit, unit)
  if not scale then
    return fail(path, entry.line, "%s of %s: unit '%s' where %s is expected, with k or M before it "
      .. "if need be", figure, backend, entry.unit, unit)
  end
  parsed.value, parsed.half = parsed.value * scale, parsed.half * scale
  parsed.scale, parsed.unit, parsed.text = scale * SCALES[parsed.letter], entry.unit, entry.text
  parsed.line = entry.line
  return parsed
end

-- The nine figures from the throughputs [4], in the order of INPUTS.
local function recompute(inputs)
  local a = analysis.derive({inputs[1], inputs[2]}, LAYERS, FULL_DEPTH)
  local b = analysis.derive({inputs[3], inputs[4]}, LAYERS, FULL_DEPTH)
  local gain, values = analysis.gains(a, b), {}
  for i, figure in ipairs(FIGURES) do values[i] = figure[4](a, b, gain) or math.huge end
  return values
end

-- Extremes of the nine figures over the corners of the inputs' rounding: lo [9], hi [9]. Each
-- figure is monotone in each throughput as long as dt stays positive, so the corners suffice.
local function extremes(inputs)
  local lo, hi = {}, {}
  for corner = 0, (1 << #inputs) - 1 do
    local shifted = {}
    for i, input in ipairs(inputs) do
      local sign = (corner >> (i - 1)) & 1 == 1 and 1 or -1
      shifted[i] = input.value + sign * input.half
    end
    for i, value in ipairs(recompute(shifted)) do
      lo[i], hi[i] = math.min(lo[i] or value, value), math.max(hi[i] or value, value)
    end
  end
  return lo, hi
end

-- Reads the file and compares. Returns {passed, rows = nine of {figure, backend, unit, published,
-- recomputed, lo, hi (texts in the printed unit), value, ok}}, or nil and a message with file:line.
function published.compare(path)
  local file, reason = io.open(path, "rb")
  if not file then return nil, string.format("cannot read the published figures: %s", reason) end
  local text = file:read("a")
  file:close()
  if not text then return nil, path .. ": cannot be read (is it a folder?)" end
  local found, last_line = read(path, text)
  if not found then return nil, last_line end

  local inputs, values = {}, {}
  for i, input in ipairs(INPUTS) do
    local entry, message = lookup(path, found, last_line, table.unpack(input))
    if not entry then return nil, message end
    if entry.value - entry.half <= 0 then
      return fail(path, entry.line, "%s of %s: a throughput of %s is not above 0", input[1],
        input[2], entry.text)
    end
    inputs[i], values[i] = entry, entry.value
  end
  local recomputed, lo, hi = recompute(values), extremes(inputs)
  local result = {passed = true, rows = {}}
  for i, figure in ipairs(FIGURES) do
    local entry, message = lookup(path, found, last_line, figure[1], figure[2], figure[3])
    if not entry then return nil, message end
    local function printed(value, more)
      if value == math.huge then return "undefined" end
      return string.format("%." .. entry.decimals + more .. "f%s", value / entry.scale,
        entry.letter)
    end
    local slack = entry.half + 1e-9 * math.abs(entry.value)
    local ok = entry.value + slack >= lo[i] and entry.value - slack <= hi[i]
    result.passed = result.passed and ok
    result.rows[i] = {figure = figure[1], backend = figure[2], unit = entry.unit,
      published = entry.text, recomputed = printed(recomputed[i], 0), lo = printed(lo[i], 2),
      hi = printed(hi[i], 2), value = recomputed[i], ok = ok}
  end
  return result
end

-- Compares and writes the table through write(text) (default io.write). Returns true when every
-- published figure agrees, false when one does not; nil, message when the file cannot be used.
function published.report(path, write)
  local result, message = published.compare(path)
  if not result then return nil, message end
  local cells = {{"figure", "backend", "published", "recomputed", "lowest", "highest", "unit",
    "verdict"}}
  local outside = 0
  for _, row in ipairs(result.rows) do
    if not row.ok then outside = outside + 1 end
    cells[#cells + 1] = {row.figure, row.backend, row.published, row.recomputed, row.lo, row.hi,
      row.unit, row.ok and "ok" or "OUTSIDE"}
  end
  write = write or io.write
  write(string.format([[
Figures of %s, recomputed from its four throughputs T_1 and T_2.
lowest, highest: what the rounding of the four printed throughputs allows; ok: the published
figure, give or take half a unit of its last digit, meets that interval.

]], path))
  write(text_table.align(cells, {[3] = true, [4] = true, [5] = true, [6] = true}) .. "\n\n")
  write(outside == 0 and "All nine published figures agree.\n"
    or string.format("%d of nine published figures lie OUTSIDE.\n", outside))
  return result.passed
end

return published
