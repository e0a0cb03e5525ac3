-- Numbers of a document that are those of a record, and the check that they still are.
--
-- A number: <!-- recorded: h200/launch_overhead.tsv: value time_us where path=lua_added -->1.3 us
--   The next number on the line is the figure's value (expression.lua), rounded to the digits that are
--   written; with % after it, the value is a share.
-- A table: <!-- recorded: h200/grouped_gemm.tsv --> on a line of its own before a Markdown table
--   Its header names columns of the record, with or without backticks. In each row the cells of key
--   columns pick the one row of the record, and the numbers of value columns are that row's, rounded
--   to the digits that are written.

local core = require "tilelab_core"
local expression = require "tilelab.expression"
local fields = require "tilelab.fields"
local main = require "tilelab.main"
local recorded = require "tilelab.recorded"
local rows = require "tilelab.rows"

local document = {}

-- Whether the number `written` is `value` to its own digits.
local function agrees(written, value)
  local decimals = #(written:match("%.(%d*)") or "")
  return math.abs(tonumber(written) - value) <= 0.5 * 10.0 ^ -decimals * (1 + 1e-9)
end

local Check = {}
Check.__index = Check

function Check:problem(format, ...)
  self.problems[#self.problems + 1] = ("%s:%d: "):format(self.path, self.number) .. format:format(...)
end

-- The record of a mark, or nil after saying why not.
function Check:record(file)
  local known = self.records[file]
  if known == nil then
    known = {}
    known.data, known.message = main.attempt(recorded.read, self.folder .. "/" .. file)
    self.records[file] = known
  end
  if known.message then self:problem("%s", known.message) end
  return known.data
end

function Check:number_mark(file, figure, rest)
  self.count = self.count + 1
  local data = self:record(file)
  if not data then return end
  local written, after = rest:match("^[^%d<]-(%-?%d+%.?%d*)(.*)$")
  if not written then
    self:problem("no number follows the mark of '%s'", figure)
    return
  end
  local value, message = main.attempt(expression.value, figure, data)
  if not value then
    self:problem("%s", message)
    return
  end
  if after:find("^%s?%%") then value = 100 * value end
  if not agrees(written, value) then
    self:problem("it says %s where %s has %.6g (%s)", written, file, value, figure)
  end
end

local function cells_of(line)
  local cells = {}
  for cell in line:gsub("^%s*|", ""):gsub("|%s*$", ""):gmatch("([^|]*)|?") do
    cells[#cells + 1] = cell:gsub("[`*]", ""):match("^%s*(.-)%s*$")
  end
  if line:find("|%s*$") and cells[#cells] == "" then cells[#cells] = nil end
  return cells
end

-- One row of a table against the record.
function Check:table_row(data, header, cells)
  local found, shown = nil, {}
  for _, row in ipairs(data.rows) do
    local matches = true
    for i, column in ipairs(header) do
      if not rows.is_value(column) then matches = matches and row[column] == cells[i] end
    end
    if matches and found then
      self:problem("more than one row of %s has these keys", data.path)
      return
    end
    found = matches and row or found
  end
  if not found then
    for i, column in ipairs(header) do
      if not rows.is_value(column) then shown[#shown + 1] = column .. "=" .. tostring(cells[i]) end
    end
    self:problem("no row of %s has %s", data.path, table.concat(shown, " "))
    return
  end
  for i, column in ipairs(header) do
    if rows.is_value(column) then
      local value, written = rows.number(found[column]), cells[i]
      local same = value and tonumber(written) and agrees(written, value) or not value
        and written == found[column]
      if not same then
        self:problem("%s is %s where %s has %s", column, tostring(written), data:where(found), found[column])
      end
    end
  end
end

-- The table whose header is at `lines[at]`; returns the position after it.
function Check:table_mark(file, lines, at)
  self.count = self.count + 1
  local data = self:record(file)
  self.number = at
  if not (lines[at] or ""):find("|") or not (lines[at + 1] or ""):find("^%s*|?[%s:|-]+$") then
    self:problem("no table follows the mark of %s", file)
    return at
  end
  local header = cells_of(lines[at])
  if not data then return at end
  for _, column in ipairs(header) do
    if data.rows[1][column] == nil then
      self:problem("%s has no column '%s'%s", file, column, fields.hint(column, data.columns))
      return at
    end
  end
  at = at + 2
  while (lines[at] or ""):find("^%s*|") do
    self.number = at
    self:table_row(data, header, cells_of(lines[at]))
    at = at + 1
  end
  return at
end

-- Checks the marks of a document -> list of problems ("path:line: ..."), number of marks. `folder`: of
-- the records. Raises a refusal when the document cannot be read.
function document.check(path, folder)
  local file, message = io.open(path, "rb")
  if not file then error(core.error_new("refused", message, "io"), 0) end
  local lines = {}
  for line in file:lines() do lines[#lines + 1] = line end
  file:close()
  local check = setmetatable({ path = path, folder = folder or recorded.folder, problems = {}, records = {},
    count = 0 }, Check)
  for number, line in ipairs(lines) do
    check.number = number
    for at in line:gmatch("()<!%-%-%s*recorded") do
      local file_name, rest = line:match("^<!%-%-%s*recorded:%s*([%w_/.-]+)(.*)$", at)
      local figure, after = (rest or ""):match("^:%s*(.-)%s*%-%->(.*)$")
      if figure then
        check:number_mark(file_name, figure, after)
      elseif rest and rest:find("^%s*%-%->%s*$") then
        check:table_mark(file_name, lines, number + 1)
      else
        check:problem("a mark is written <!-- recorded: file.tsv: figure --> before a number, or "
          .. "<!-- recorded: file.tsv --> before a table")
      end
      check.number = number
    end
  end
  return check.problems, check.count
end

return document
