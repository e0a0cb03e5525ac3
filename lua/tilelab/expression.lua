-- Figures of merit over the rows of a result file, for tests/targets.tsv and the README's numbers.
--
--   min share_of_dense where op=fwd_w13 experts=32 variant=sm90_ragged
--   max abs(ratio - 1) where kind=count,occupancy
--   geomean tflops of variant=sm90_ragged over variant=sm90_padded where experts=32
--   value time_us where path=lua_call - value time_us where path=c_call
--
--   figure    = sums and products of numbers, ( figure ), abs( figure ) and aggregates
--   aggregate = NAME operand [of CONDITIONS over CONDITIONS] [where CONDITIONS], or
--               count [where CONDITIONS]
--   NAME      = min max mean median geomean sum, or value: of the only row
--   operand   = a column, abs( ... ), or ( ... ) with sums and products of columns and numbers
--   CONDITION = column OP text, without spaces around OP, which is one of = != < <= > >= ~; = and !=
--               take alternatives a,b; ~ is "contains"; text with spaces stands in double quotes
--
-- `of A over B` takes the operand's ratio between rows of A and the rows of B that agree with them
-- in every key column (rows.lua) that neither names. A row that finds no partner is an error, and so
-- are a cell that is no number and an aggregate over no rows: a figure covers what it says it covers.

local core = require "tilelab_core"
local fields = require "tilelab.fields"
local rows = require "tilelab.rows"

local expression = {}

local Parser = {}
Parser.__index = Parser

local function refuse(format, ...)
  error(core.error_new("refused", format:format(...), "expression"), 0)
end

-- --- words ------------------------------------------------------------------------------------

function Parser:fail(format, ...)
  refuse("at character %d: " .. format, self.start or self.at, ...)
end

local function shown(word) return word == "" and "the end" or ("'%s'"):format(word) end

-- The next word: a number, a name, a sign, "" at the end; it is not taken.
function Parser:peek()
  local at = self.text:find("%S", self.at) or #self.text + 1
  self.start = at
  local word = self.text:match("^%d+%.?%d*[eE][+-]?%d+", at) or self.text:match("^%d*%.?%d+", at)
    or self.text:match("^[%a_][%w_]*", at) or self.text:match("^.", at) or ""
  return word, at + #word
end

function Parser:take(word)
  local found, after = self:peek()
  if word and found ~= word then
    self:fail("expected '%s', found %s", word, shown(found))
  end
  self.at = after
  return found
end

-- A condition where one begins here, else nil.
function Parser:condition()
  local at = self.text:find("%S", self.at) or #self.text + 1
  local column, operator, after = self.text:match("^([%a_][%w_]*)([=!<>~]+)()", at)
  if not column then return nil end
  self.start = at
  if not (" = != < <= > >= ~ "):find((" %s "):format(operator), 1, true) then
    self:fail("'%s' is none of = != < <= > >= ~", operator)
  end
  local text, rest = self.text:match('^"([^"]*)"()', after)
  if not text then text, rest = self.text:match("^([^%s()\"]+)()", after) end
  if not text then self:fail("a text is missing after '%s%s'", column, operator) end
  self.at = rest
  if (operator:find("[<>]")) and not tonumber(text) then
    self:fail("'%s%s%s' compares with a number", column, operator, text)
  end
  return { column = column, operator = operator, text = text }
end

function Parser:conditions(after)
  local list = {}
  repeat
    local condition = self:condition()
    list[#list + 1] = condition
  until not condition
  if #list == 0 then self:fail("a condition such as column=text is missing after '%s'", after) end
  return list
end

-- --- grammar ----------------------------------------------------------------------------------

local AGGREGATES = { min = true, max = true, mean = true, median = true, geomean = true, sum = true,
  count = true, value = true }

-- `inside`: within an operand, where names are columns.
function Parser:sum(inside)
  local left = self:product(inside)
  while true do
    local sign = self:peek()
    if sign ~= "+" and sign ~= "-" then return left end
    self:take()
    left = { kind = "binary", sign = sign, left, self:product(inside) }
  end
end

function Parser:product(inside)
  local left = self:unary(inside)
  while true do
    local sign = self:peek()
    if sign ~= "*" and sign ~= "/" then return left end
    self:take()
    left = { kind = "binary", sign = sign, left, self:unary(inside) }
  end
end

function Parser:unary(inside)
  local word = self:peek()
  if word == "-" then
    self:take()
    return { kind = "negative", self:unary(inside) }
  elseif word == "(" then
    self:take()
    local inner = self:sum(inside)
    self:take(")")
    return inner
  elseif word == "abs" then
    self:take()
    self:take("(")
    local inner = self:sum(inside)
    self:take(")")
    return { kind = "abs", inner }
  elseif tonumber(word) then
    self:take()
    return { kind = "number", tonumber(word) }
  elseif inside and word:find("^[%a_]") then
    return { kind = "column", self:take() }
  elseif AGGREGATES[word] then
    return self:aggregate(self:take())
  end
  local names = fields.names(AGGREGATES)
  return self:fail("expected %s, found %s%s", inside and "a column or a number"
    or "a number or one of " .. table.concat(names, " "), shown(word),
    word:find("^%a") and fields.hint(word, names) or "")
end

function Parser:aggregate(name)
  local node = { kind = "aggregate", name = name }
  if name ~= "count" then node.operand = self:unary(true) end
  if node.operand and self:peek() == "of" then
    self:take()
    node.of = self:conditions("of")
    self:take("over")
    node.over = self:conditions("over")
  end
  if self:peek() == "where" then
    self:take()
    node.where = self:conditions("where")
  end
  return node
end

-- Parses a figure; raises a refusal that says at which character it is wrong.
function expression.parse(text)
  local parser = setmetatable({ text = text, at = 1 }, Parser)
  local tree = parser:sum(false)
  local word = parser:peek()
  if word ~= "" then
    parser:fail("'%s' is left over%s", word, (word == "where" or word == "of")
      and "; an operand with + - * / stands in parentheses" or "")
  end
  return tree
end

-- --- evaluation -------------------------------------------------------------------------------

local function check_column(data, column)
  for _, name in ipairs(data.columns) do
    if name == column then return end
  end
  refuse("%s has no column '%s'%s", data.path, column, fields.hint(column, data.columns))
end

local function equal(cell, text)
  local a, b = tonumber(cell), tonumber(text)
  if a and b then return a == b end
  return cell == text
end

local function one_of(cell, text)
  for choice in (text .. ","):gmatch("([^,]*),") do
    if equal(cell, choice) then return true end
  end
  return false
end

local function holds(data, row, condition)
  local cell, operator, text = row[condition.column], condition.operator, condition.text
  if operator == "=" then return one_of(cell, text) end
  if operator == "!=" then return not one_of(cell, text) end
  if operator == "~" then return cell:find(text, 1, true) ~= nil end
  local a, b = data:number(row, condition.column), tonumber(text)
  return operator == "<" and a < b or operator == "<=" and a <= b or operator == ">" and a > b
    or operator == ">=" and a >= b
end

local function select_rows(data, list, conditions)
  for _, condition in ipairs(conditions or {}) do check_column(data, condition.column) end
  local kept = {}
  for _, row in ipairs(list) do
    local keep = true
    for _, condition in ipairs(conditions or {}) do keep = keep and holds(data, row, condition) end
    if keep then kept[#kept + 1] = row end
  end
  return kept
end

local evaluate

local function binary(sign, a, b)
  if sign == "+" then return a + b elseif sign == "-" then return a - b end
  if sign == "*" then return a * b end
  if b == 0 then refuse("division by zero") end
  return a / b
end

-- Ratios of an operand between the rows of two selections that agree in the other key columns.
local function paired(node, data, list)
  local named, keys = {}, {}
  for _, conditions in ipairs { node.of, node.over } do
    for _, condition in ipairs(conditions) do named[condition.column] = true end
  end
  for _, key in ipairs(rows.keys(data)) do
    if not named[key] then keys[#keys + 1] = key end
  end
  local remedy = "add conditions to `of` and `over`"
  local under = rows.index(data, keys, select_rows(data, list, node.over), remedy)
  local values, over = {}, select_rows(data, list, node.of)
  rows.index(data, keys, over, remedy)
  for i, row in ipairs(over) do
    local partner = under[rows.identity(row, keys)]
    if not partner then
      refuse("%s: no row of `over` agrees with it in %s", data:where(row), table.concat(keys, ", "))
    end
    values[i] = binary("/", evaluate(node.operand, data, row), evaluate(node.operand, data, partner))
  end
  return values
end

local reduce = {
  min = function(values) return math.min(table.unpack(values)) end,
  max = function(values) return math.max(table.unpack(values)) end,
  median = rows.median,
}

function reduce.sum(values)
  local sum = 0
  for _, value in ipairs(values) do sum = sum + value end
  return sum
end

function reduce.mean(values) return reduce.sum(values) / #values end

function reduce.geomean(values)
  local sum = 0
  for _, value in ipairs(values) do
    if value <= 0 then refuse("a geometric mean of %g", value) end
    sum = sum + math.log(value)
  end
  return math.exp(sum / #values)
end

function reduce.value(values)
  if #values > 1 then refuse("%d rows match where `value` wants one: add conditions", #values) end
  return values[1]
end

local function aggregate(node, data)
  local list, values = select_rows(data, data.rows, node.where), {}
  if node.name == "count" then return #list end
  if node.of then
    values = paired(node, data, list)
  else
    for i, row in ipairs(list) do values[i] = evaluate(node.operand, data, row) end
  end
  if #values == 0 then refuse("%s: no row matches", data.path) end
  return reduce[node.name](values)
end

function evaluate(node, data, row)
  local kind = node.kind
  if kind == "number" then return node[1] end
  if kind == "negative" then return -evaluate(node[1], data, row) end
  if kind == "abs" then return math.abs(evaluate(node[1], data, row)) end
  if kind == "binary" then
    return binary(node.sign, evaluate(node[1], data, row), evaluate(node[2], data, row))
  end
  if kind == "column" then
    check_column(data, node[1])
    return data:number(row, node[1])
  end
  return aggregate(node, data)
end

-- The value of a figure, given as text, over `data` (from lab.record.read). Raises a refusal for a text
-- that cannot be read and for rows that it cannot be computed from.
function expression.value(text, data)
  return evaluate(expression.parse(text), data)
end

return expression
