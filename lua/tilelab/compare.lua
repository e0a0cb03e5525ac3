-- Compares two result files row by row. Pure: no output, no files.
--
-- Rows belong together when their key columns agree (rows.lua). A row's ratio is new over base; its
-- interval adds the relative half-widths of both in quadrature, on a log scale:
--
--   slower     the whole interval lies above 1, and the ratio beyond the threshold
--   faster     the whole interval lies below 1, and the ratio beyond the threshold
--   same       the whole interval lies within the threshold
--   ambiguous  anything else: the measurements do not tell
--
-- Without an interval (no _lo and _hi columns, or "-" in them) the threshold alone decides. Of
-- values that should be high, "lower" is the worse and "higher" the better verdict.

local core = require "tilelab_core"
local fields = require "tilelab.fields"
local rows = require "tilelab.rows"

local compare = {}

local function refuse(format, ...)
  error(core.error_new("refused", format:format(...), "format"), 0)
end

-- "3%" or "0.03" -> 0.03; nil for anything else.
function compare.threshold(text)
  local percent = text:match("^([%d.]+)%%$")
  local value = percent and tonumber(percent)
  value = value and value / 100 or not percent and tonumber(text) or nil
  return value and value > 0 and value < 1 and value or nil
end

local function find(list, name)
  for i, item in ipairs(list) do
    if item == name then return i end
  end
end

-- Key columns of both files, or the caller's, checked to be in both.
function compare.keys(base, new, given)
  if given then
    for _, key in ipairs(given) do
      for _, data in ipairs { base, new } do
        if not find(data.columns, key) then
          refuse("%s has no column '%s'%s", data.path, key, fields.hint(key, data.columns))
        end
      end
    end
    return given
  end
  local keys, of_new = {}, rows.keys(new)
  for _, key in ipairs(rows.keys(base)) do
    if find(of_new, key) then keys[#keys + 1] = key end
  end
  if #keys == 0 and #of_new + #rows.keys(base) > 0 then
    refuse("%s and %s have no column in common that tells rows apart; are they of the same experiment?",
      base.path, new.path)
  end
  return keys
end

-- Value of a row and its interval (nil, nil where there is none).
local function value_of(data, row, column)
  local value = data:number(row, column)
  if value <= 0 then
    refuse("%s: column '%s' holds %s where a positive number is needed", data:where(row), column,
      row[column])
  end
  local lo, hi = row[column .. "_lo"], row[column .. "_hi"]
  if lo == nil or hi == nil or lo == "-" or hi == "-" then return value end
  lo, hi = data:number(row, column .. "_lo"), data:number(row, column .. "_hi")
  if not (lo > 0 and lo <= value and value <= hi) then
    refuse("%s: %s %g lies outside its interval [%g, %g]", data:where(row), column, value, lo, hi)
  end
  return value, lo, hi
end

local function distance(a, b) return a and b and math.log(a / b) or 0 end

-- {ratio, lo, hi} of two values with their intervals; lo and hi are nil where neither has one.
function compare.ratio(base, base_lo, base_hi, new, new_lo, new_hi)
  local ratio = new / base
  if not (base_lo or new_lo) then return { ratio = ratio } end
  local up = math.sqrt(distance(new_hi, new_hi and new) ^ 2 + distance(base_lo and base, base_lo) ^ 2)
  local down = math.sqrt(distance(new_lo and new, new_lo) ^ 2 + distance(base_hi, base_hi and base) ^ 2)
  return { ratio = ratio, lo = ratio * math.exp(-down), hi = ratio * math.exp(up) }
end

local WORDS = {
  lower = { above = "slower", below = "faster", worse = "slower" },
  higher = { above = "higher", below = "lower", worse = "lower" },
}

-- Verdict on a ratio {ratio, lo, hi} where `better` ("lower" or "higher") values are wanted.
function compare.verdict(item, threshold, better)
  local ratio, lo, hi = item.ratio, item.lo or item.ratio, item.hi or item.ratio
  local above, below = 1 + threshold, 1 / (1 + threshold)
  if lo > 1 and ratio > above then return WORDS[better].above end
  if hi < 1 and ratio < below then return WORDS[better].below end
  if lo >= below and hi <= above then return "same" end
  return "ambiguous"
end

-- Compares `base` and `new` (from lab.record.read). settings: threshold (0.03), value ("time_us"),
-- better ("lower" or "higher"), key (list of columns, by default the rule of rows.lua).
-- -> { keys, rows = list of {row, base_row, base, new, ratio, lo, hi, verdict, regression}, from the worst
--      to the best, only_base, only_new, without (rows whose value is "-" in either file), counts =
--      {verdict = n}, regressions, geomean }
-- Raises a refusal for a missing column, a row that is there twice, a value that is no number.
function compare.files(base, new, settings)
  local column, better = settings.value or "time_us", settings.better or "lower"
  for _, data in ipairs { base, new } do
    if not find(data.columns, column) then
      refuse("%s has no column '%s' to compare; give one with --value: %s", data.path, column,
        table.concat(data.columns, ", "))
    end
  end
  local keys = compare.keys(base, new, settings.key)
  local remedy = "give the columns that tell rows apart with --key"
  local of_base, of_new = rows.index(base, keys, nil, remedy), rows.index(new, keys, nil, remedy)
  local result = { keys = keys, rows = {}, only_base = {}, only_new = {}, without = {}, counts = {},
    regressions = 0 }
  local log_sum = 0
  for _, row in ipairs(new.rows) do
    local before = of_base[rows.identity(row, keys)]
    if not before then
      result.only_new[#result.only_new + 1] = row
    elseif before[column] == "-" or row[column] == "-" then
      result.without[#result.without + 1] = row
    else
      local b, b_lo, b_hi = value_of(base, before, column)
      local n, n_lo, n_hi = value_of(new, row, column)
      local item = compare.ratio(b, b_lo, b_hi, n, n_lo, n_hi)
      item.row, item.base_row, item.base, item.new = row, before, b, n
      item.verdict = compare.verdict(item, settings.threshold or 0.03, better)
      item.regression = item.verdict == WORDS[better].worse
      result.rows[#result.rows + 1] = item
      result.counts[item.verdict] = (result.counts[item.verdict] or 0) + 1
      result.regressions = result.regressions + (item.regression and 1 or 0)
      log_sum = log_sum + math.log(item.ratio)
    end
  end
  for _, row in ipairs(base.rows) do
    if not of_new[rows.identity(row, keys)] then result.only_base[#result.only_base + 1] = row end
  end
  result.geomean = #result.rows > 0 and math.exp(log_sum / #result.rows) or nil
  local place = {}
  for i, item in ipairs(result.rows) do place[item] = i end
  table.sort(result.rows, function(a, b)
    if a.ratio ~= b.ratio then return (a.ratio > b.ratio) == (better == "lower") end
    return place[a] < place[b]
  end)
  return result
end

-- Keys of provenance that can explain a difference, by their beginnings.
local TELLING = { "^device", "^gpu", "^driver", "^uuid", "^clock", "^power", "^mig", "^ecc", "^commit$",
  "^dirty$", "^compiler$", "^cuda", "^cublas", "^cudnn", "^seed$", "^host$", "^cpu$", "^lua_sha256$" }

local function telling(key)
  for _, pattern in ipairs(TELLING) do
    if key:find(pattern) then return true end
  end
end

local function median(data, column)
  local values = {}
  for _, row in ipairs(data.rows) do values[#values + 1] = rows.number(row[column]) end
  return rows.median(values)
end

-- What of the conditions differs, as a list of {key, base text, new text}, sorted by key: device,
-- driver, clocks (the median of sm_clock_mhz too), commit, compilers, seed; then the kernels whose
-- sources differ, as one entry.
function compare.conditions(base, new)
  local list, kernels, seen = {}, {}, {}
  for _, data in ipairs { base, new } do
    for key in pairs(data.provenance) do
      local b, n = base.provenance[key] or "-", new.provenance[key] or "-"
      if not seen[key] and b ~= n then
        local folder = key:match("^kernel_sha256%.(.+)$")
        if folder then kernels[#kernels + 1] = folder end
        if telling(key) then list[#list + 1] = { key, b, n } end
      end
      seen[key] = true
    end
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  if find(base.columns, "sm_clock_mhz") and find(new.columns, "sm_clock_mhz") then
    local b, n = median(base, "sm_clock_mhz"), median(new, "sm_clock_mhz")
    if b and n and math.abs(n / b - 1) > 0.01 then
      list[#list + 1] = { "sm_clock_mhz (median)", ("%.0f"):format(b), ("%.0f"):format(n) }
    end
  end
  table.sort(kernels)
  if #kernels > 0 then list[#list + 1] = { "kernels that changed", table.concat(kernels, " ") } end
  return list
end

-- Keys whose cells differ between the compared rows, and the others with their one value: what a
-- table need not repeat.
function compare.varying(result)
  local varying, fixed = {}, {}
  for _, key in ipairs(result.keys) do
    local differs = false
    for _, item in ipairs(result.rows) do
      differs = differs or item.row[key] ~= result.rows[1].row[key]
    end
    if differs then
      varying[#varying + 1] = key
    elseif result.rows[1] then
      fixed[#fixed + 1] = key .. "=" .. result.rows[1].row[key]
    end
  end
  return varying, fixed
end

return compare
