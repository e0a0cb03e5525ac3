-- Rows of result files as points of a design: which columns say what was measured, and which rows
-- of two files, or of two selections, belong together.
--
-- The rule: the key columns are those before the first value column that hold text or integers. All
-- result files put them there. A column is a value when its name ends as those of values do (a
-- unit, an interval's end, a ratio), whatever it holds.

local core = require "tilelab_core"

local rows = {}

local VALUE_ENDINGS = { "_us", "_us_lo", "_us_hi", "_s", "_ms", "_pct", "_mhz", "_w", "_c", "_bytes",
  "gbps", "gflops", "tflops", "ratio", "_lo", "_hi", "_share" }
local VALUE_NAMES = { measured = true, rounds = true, samples = true, waves = true, tilelab = true,
  ncu = true, share_of_dense = true, ai = true }

-- Whether a column holds a measurement, by its name.
function rows.is_value(column)
  if VALUE_NAMES[column] then return true end
  for _, ending in ipairs(VALUE_ENDINGS) do
    if column == ending or column:sub(-#ending) == ending then return true end
  end
  return false
end

-- A cell as a finite number, or nil.
function rows.number(cell)
  local value = tonumber(cell)
  if value and value == value and math.abs(value) ~= math.huge then return value end
end

-- The median of a list of numbers, which gets sorted; nil for an empty list.
function rows.median(values)
  table.sort(values)
  local n = #values
  return n > 0 and (values[(n + 1) // 2] + values[n // 2 + 1]) / 2 or nil
end

-- Rows of a list that hold these texts: {column = text}.
function rows.where(list, conditions)
  local kept = {}
  for _, row in ipairs(list) do
    local keep = true
    for column, text in pairs(conditions) do keep = keep and row[column] == text end
    if keep then kept[#kept + 1] = row end
  end
  return kept
end

local function all_integers_or_text(data, column)
  for _, row in ipairs(data.rows) do
    local value = tonumber(row[column])
    if value and not math.tointeger(value) then return false end
  end
  return true
end

-- Names of the key columns of `data` (from lab.record.read), in its order.
function rows.keys(data)
  local keys = {}
  for _, column in ipairs(data.columns) do
    if rows.is_value(column) then break end
    if all_integers_or_text(data, column) then keys[#keys + 1] = column end
  end
  return keys
end

-- A row's place in the design: its key cells, as one text. Numbers are equal as numbers.
function rows.identity(row, keys)
  local cells = {}
  for i, key in ipairs(keys) do
    local cell = row[key]
    local value = tonumber(cell)
    cells[i] = value and ("%.17g"):format(value) or cell
  end
  return table.concat(cells, "\t")
end

-- { identity = row } of `list` (data.rows unless given). Two rows with one identity are refused: both
-- lines are named, and what to do.
function rows.index(data, keys, list, remedy)
  local index = {}
  for _, row in ipairs(list or data.rows) do
    local identity = rows.identity(row, keys)
    if index[identity] then
      error(core.error_new("refused", ("%s: the same %s as in %s; %s"):format(data:where(row),
        #keys > 0 and table.concat(keys, ", ") or "(empty) key", data:where(index[identity]), remedy),
        "format"), 0)
    end
    index[identity] = row
  end
  return index
end

return rows
