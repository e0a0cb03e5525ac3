-- Numbers of a document that are those of a record: the check that they still are, and their renewal.
--
-- A number: <!-- recorded: h200/launch_overhead.tsv: value time_us where path=lua_added -->1.3 us
--   The next number on the line is the figure's value (expression.lua), rounded to the digits that are
--   written; with % after it, the value is a share. Not at the beginning of a line that continues a paragraph,
--   where Markdown takes a comment for the paragraph's end.
-- A table: <!-- recorded: h200/grouped_gemm.tsv --> on a line of its own before a Markdown table
--   Its header names columns of the record, with or without backticks. In each row the cells of key
--   columns pick the one row of the record, and the numbers of value columns are that row's, rounded
--   to the digits that are written.

local expression = require "tilelab.expression"
local fields = require "tilelab.fields"
local file = require "tilelab.file"
local main = require "tilelab.main"
local recorded = require "tilelab.recorded"
local rows = require "tilelab.rows"

local document = {}

local function decimals(written) return #(written:match("%.(%d*)") or "") end

-- Whether the number `written` is `value` to its own digits.
local function agrees(written, value)
  return math.abs(tonumber(written) - value) <= 0.5 * 10.0 ^ -decimals(written) * (1 + 1e-9)
end

-- `value` to the digits of `written`.
local function as_written(written, value) return ("%%.%df"):format(decimals(written)):format(value) end

local Check = {}
Check.__index = Check

function Check:problem(format, ...)
  self.problems[#self.problems + 1] = ("%s:%d: "):format(self.path, self.number) .. format:format(...)
end

-- A number at `first` of the line that is another than the record's: a problem that update() can mend.
function Check:differs(first, written, text, format, ...)
  self:problem(format, ...)
  self.edits[#self.edits + 1] = { line = self.number, first = first, last = first + #written - 1, text = text }
end

-- The record of a mark, or nil after saying why not.
function Check:record(name)
  local known = self.records[name]
  if known == nil then
    known = {}
    known.data, known.message = main.attempt(recorded.read, self.folder .. "/" .. name)
    self.records[name] = known
  end
  if known.message then self:problem("%s", known.message) end
  return known.data
end

-- The number behind a mark that ends before `at`.
function Check:number_mark(name, figure, line, at)
  self.count = self.count + 1
  local data = self:record(name)
  if not data then return end
  local first, written, after = line:match("^[^%d<]-()(%-?%d+%.?%d*)(.*)$", at)
  if not first then
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
    self:differs(first, written, as_written(written, value), "it says %s where %s has %.6g (%s)", written, name,
      value, figure)
  end
end

-- Cells of a table's row, without what marks them up, and where each begins.
local function cells_of(line)
  local cells, starts = {}, {}
  local first = line:match("^%s*|?()")
  for at, cell in line:sub(1, #line:gsub("|%s*$", "")):gmatch("()([^|]*)|?", first) do
    cells[#cells + 1], starts[#starts + 1] = cell:gsub("[`*]", ""):match("^%s*(.-)%s*$"), at
  end
  if line:find("|%s*$") and cells[#cells] == "" then cells[#cells] = nil end
  return cells, starts
end

-- One row of a table against the record.
function Check:table_row(data, header, line)
  local found, shown, cells, starts = nil, {}, cells_of(line)
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
      local complaint = { "%s is %s where %s has %s", column, tostring(written), data:where(found), found[column] }
      if not same and value and tonumber(written) then
        self:differs(line:find(written, starts[i], true), written, as_written(written, value), table.unpack(complaint))
      elseif not same then
        self:problem(table.unpack(complaint))
      end
    end
  end
end

-- The table whose header is at `lines[at]`; returns the position after it.
function Check:table_mark(name, lines, at)
  self.count = self.count + 1
  local data = self:record(name)
  self.number = at
  if not (lines[at] or ""):find("|") or not (lines[at + 1] or ""):find("^%s*|?[%s:|-]+$") then
    self:problem("no table follows the mark of %s", name)
    return at
  end
  local header = cells_of(lines[at])
  if not data then return at end
  for _, column in ipairs(header) do
    if data.rows[1][column] == nil then
      self:problem("%s has no column '%s'%s", data.path, column, fields.hint(column, data.columns))
      return at
    end
  end
  at = at + 2
  while (lines[at] or ""):find("^%s*|") do
    self.number = at
    self:table_row(data, header, lines[at])
    at = at + 1
  end
  return at
end

-- The document's lines, and what became of its marks.
local function examine(path, folder)
  local lines = {}
  for line in (main.check(file.read(path)) .. "\n"):gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  local check = setmetatable({ path = path, folder = folder or recorded.folder, problems = {}, edits = {},
    records = {}, count = 0 }, Check)
  for number, line in ipairs(lines) do
    check.number = number
    for at in line:gmatch("()<!%-%-%s*recorded") do
      local name, rest = line:match("^<!%-%-%s*recorded:%s*([%w_/.-]+)()", at)
      local figure, after = line:match("^:%s*(.-)%s*%-%->()", rest or #line + 1)
      if figure then
        if line:match "^%s*()" == at and (lines[number - 1] or ""):find "%S" then
          check:problem("the mark of '%s' begins a line, which ends the paragraph there: put a word before it", figure)
        end
        check:number_mark(name, figure, line, after)
      elseif name and line:find("^%s*%-%->%s*$", rest) then
        check:table_mark(name, lines, number + 1)
      else
        check:problem("a mark is written <!-- recorded: file.tsv: figure --> before a number, or "
          .. "<!-- recorded: file.tsv --> before a table")
      end
      check.number = number
    end
  end
  return lines, check
end

-- Checks the marks of a document -> list of problems ("path:line: ..."), number of marks. `folder`: of
-- the records. Raises a refusal when the document cannot be read.
function document.check(path, folder)
  local _, check = examine(path, folder)
  return check.problems, check.count
end

-- Writes the records' numbers into the document, each to the digits that it has there -> how many were others.
function document.update(path, folder)
  local lines, check = examine(path, folder)
  for i = #check.edits, 1, -1 do -- from the back, so that places before stay where they are
    local edit = check.edits[i]
    local line = lines[edit.line]
    lines[edit.line] = line:sub(1, edit.first - 1) .. edit.text .. line:sub(edit.last + 1)
  end
  if #check.edits > 0 then main.check(file.replace(path, table.concat(lines, "\n"))) end
  return #check.edits
end

return document
