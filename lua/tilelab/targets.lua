-- What must be reached: tests/targets.tsv, held against the records.
--
-- Columns: study (an experiment), figure (expression.lua), floor, aim, reached (as last recorded, "-"
-- before), note (where a figure is out of reach: what was tried, and what limits it). A floor or an
-- aim is a number to be reached at least, or "<=number": at most; an aim may be "-".

local core = require "tilelab_core"
local expression = require "tilelab.expression"
local main = require "tilelab.main"
local record = require "tilelab.record"
local rows = require "tilelab.rows"

local targets = {}

targets.columns = { "study", "figure", "floor", "aim", "reached", "note" }

local function refuse(format, ...)
  error(core.error_new("refused", format:format(...), "format"), 0)
end

-- {at_most, limit} of a floor or an aim; nil for "-" where that is allowed.
local function read_bound(data, row, column, optional)
  local text = row[column]
  if optional and text == "-" then return nil end
  local sign, number = text:match("^([<>]?=?)%s*(.-)$")
  local limit = rows.number(number)
  if not limit or not (sign == "" or sign == "<=" or sign == ">=") then
    refuse("%s: column '%s' holds '%s'; it takes a number, or <= and a number%s", data:where(row),
      column, text, optional and ", or -" or "")
  end
  return { at_most = sign == "<=", limit = limit }
end

-- Reads and checks a file of targets: a list of {study, figure, floor, aim, reached, note, where, line}.
-- Raises a refusal with file and line for what cannot be read, figures included.
function targets.read(path)
  local data, list = record.read(path, targets.columns), {}
  for i, row in ipairs(data.rows) do
    local target = { study = row.study, figure = row.figure, reached = row.reached, note = row.note,
      floor = read_bound(data, row, "floor"), aim = read_bound(data, row, "aim", true),
      floor_text = row.floor, aim_text = row.aim, where = data:where(row), line = data.line[row] }
    if not target.study:find("^[%w_]+$") then
      refuse("%s: study '%s' is no name of an experiment", target.where, target.study)
    end
    local parsed, message = main.attempt(expression.parse, target.figure)
    if not parsed then refuse("%s: figure: %s", target.where, message) end
    if target.aim then
      local floor, aim = target.floor, target.aim
      local harder = floor.at_most and aim.limit <= floor.limit or not floor.at_most
        and aim.limit >= floor.limit
      if floor.at_most ~= aim.at_most or not harder then
        refuse("%s: aim %s is easier than floor %s", target.where, row.aim, row.floor)
      end
    end
    list[i] = target
  end
  return list
end

local function holds(bound, value)
  if bound.at_most then return value <= bound.limit end
  return value >= bound.limit
end

-- Holds a target against its record (nil where there is none) -> status, value, message. Status: "aim
-- reached", "held" (the floor; there may be no aim), "BELOW", or "not recorded" (no file, or no rows
-- of that kind: the message says which).
function targets.check(target, data)
  if not data then return "not recorded", nil, "no record of " .. target.study end
  local value, message = main.attempt(expression.value, target.figure, data)
  if not value then return "not recorded", nil, message end
  if value ~= value or not holds(target.floor, value) then return "BELOW", value end
  return target.aim and holds(target.aim, value) and "aim reached" or "held", value
end

-- A figure as `reached` has it.
function targets.text(value) return ("%.4g"):format(value) end

-- The file's text with the cells `reached` of the given lines replaced: {line = text}.
function targets.with_reached(text, reached)
  local lines, number = {}, 0
  for line in text:gmatch("([^\n]*)\n") do
    number = number + 1
    if reached[number] then
      local cells = {}
      for cell in (line .. "\t"):gmatch("([^\t]*)\t") do cells[#cells + 1] = cell end
      cells[5] = reached[number]
      line = table.concat(cells, "\t")
    end
    lines[number] = line
  end
  return table.concat(lines, "\n") .. "\n"
end

return targets
