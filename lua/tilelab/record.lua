-- Result files: TSV with a "#" provenance block and one header row.
--
--   local record <close> = lab.check(lab.record.create(path, lab.provenance{}, { "n", "time_us" }))
--   record:row { n = 256, time_us = 12.5 }              -- written and flushed at once
--   local record = lab.record.append(path, columns)     -- goes on with a file that is whole
--
--   local data = lab.record.read(path, { "n", "time_us" })
--   for _, row in ipairs(data.rows) do print(data:number(row, "time_us")) end
--
-- A file that cannot be trusted stops the script: read raises an error value (lab.main exits with
-- 2) that begins with "path:line:" and says what is wrong and what to do.

local core = require "tilelab_core"
local fields = require "tilelab.fields"
local file = require "tilelab.file"
local provenance = require "tilelab.provenance"

local record = { create = core.record_create, append = core.record_append }

local Data = {}
Data.__index = Data

local function refuse(code, format, ...)
  error(core.error_new("refused", format:format(...), code), 0)
end

local function split(line)
  local cells = {}
  for cell in (line .. "\t"):gmatch("([^\t]*)\t") do cells[#cells + 1] = cell end
  return cells
end

local function check_header(path, number, columns, required)
  local known = {}
  for _, name in ipairs(columns) do
    if known[name] then
      refuse("format", "%s:%d: column '%s' is there twice", path, number, name)
    end
    known[name] = true
  end
  for _, name in ipairs(required) do
    if not known[name] then
      local nearest = core.nearest(name, columns)
      refuse("format", "%s:%d: column '%s' is missing%s; the file has: %s", path, number, name,
        nearest and (" (did you mean '%s'?)"):format(nearest) or "", table.concat(columns, ", "))
    end
  end
end

local function named(columns, cells)
  local row = {}
  for i, name in ipairs(columns) do row[name] = cells[i] end
  return row
end

-- lab.record.read(path[, required columns[, { drop_cut_row = false }]])
--   -> { path, columns, rows = list of { column = text }, provenance = { key = value }, cut }
-- Raises for a file that is absent or has no header, a missing or repeated column, a row with
-- another number of cells, and a last row without its newline: its writer was killed. With
-- drop_cut_row that row is left out, and `cut` is its text.
function record.read(path, required, settings)
  if settings then fields.check("lab.record.read", settings, { "drop_cut_row" }, 2) end
  local content, message = file.read(path)
  if not content then refuse("io", "%s", message) end
  local data = setmetatable({ path = path, rows = {}, provenance = {}, line = {} }, Data)
  local number = 0
  for line, newline in content:gmatch("([^\n]*)(\n?)") do
    number = number + 1
    if line == "" and newline == "" then break end
    if newline == "" then
      if not (settings and settings.drop_cut_row) then
        refuse("format", "%s:%d: the last row is cut off (no final newline): remove it, or measure "
          .. "again", path, number)
      end
      data.cut = line
    elseif not data.columns then
      local comment = line:match("^#%s?(.*)$")
      if comment then
        local key, value = provenance.entry(comment)
        if key then data.provenance[key] = value end
      else
        data.columns = split(line)
        check_header(path, number, data.columns, required or {})
      end
    else
      local cells = split(line)
      if #cells ~= #data.columns then
        refuse("format", "%s:%d: %d columns where the header has %d: remove the row, or measure "
          .. "again", path, number, #cells, #data.columns)
      end
      local row = named(data.columns, cells)
      data.rows[#data.rows + 1] = row
      data.line[row] = number
    end
  end
  if not data.columns then
    refuse("format", "%s:%d: no header row; this is no result file: remove it, or measure "
      .. "again", path, math.max(number, 1))
  end
  return data
end

-- "path:line" of a row of this file, for messages.
function Data:where(row) return ("%s:%d"):format(self.path, self.line[row]) end

-- The text of a cell. An unknown column is the caller's mistake.
function Data:text(row, column)
  local text = row[column]
  if text == nil then
    error(("%s has no column '%s'%s"):format(self.path, column,
      fields.hint(column, self.columns)), 2)
  end
  return text
end

-- A cell as a finite number; raises file and line for anything else, NaN and "-" included.
function Data:number(row, column)
  local text = self:text(row, column)
  local value = tonumber(text)
  if not value or value ~= value or value == math.huge or value == -math.huge then
    refuse("format", "%s: column '%s' holds '%s' where a number is needed: remove the row, or "
      .. "measure again", self:where(row), column, text)
  end
  return value
end

return record
