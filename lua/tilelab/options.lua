-- Options of a script, declared as a table and parsed in one place.
--
--   local opt = lab.options {
--     summary = "Time one GEMM.",
--     { "device", "string", "cpu", "where to run" },
--     { "sizes", "list", { 256, 512 }, "values of n", of = "integer", min = 1 },
--     { "layout", "string", "nt", "operand layout", choices = { "nt", "nn", "tn" } },
--     { "published", "string", nil, "recompute published figures", implied = "published.tsv" },
--     { "fresh", "boolean", false, "drop earlier results" },
--   }
--   opt.device, opt.sizes[1], opt.fresh
--
-- Each row: name, type, default (nil where there is none), help; and by name
--   choices   the values that are allowed          min, max   inclusive bounds of numbers
--   of        what a list holds: "string" (the default), "integer" or "number"
--   value     how --help calls the value           required   true: must be given
--   implied   the value of a bare --name; another one is given as --name=value only
-- Types: string, integer, number, boolean, list (separated by commas). Booleans are --name and
-- --no-name. A name with underscores is written with dashes on the command line. With
-- `arguments = "FILE..."` further arguments are allowed, as opt[1], opt[2] ...; "--" ends options.
--
-- tostring(opt) is the whole choice as one line, so that two runs can be compared.

local core = require "tilelab_core"
local fields = require "tilelab.fields"
local main = require "tilelab.main"
local shell = require "tilelab.shell"

local WIDTH, COLUMN = 90, 26 -- of --help: its lines, and where descriptions begin

local options = {}

-- --- declarations -----------------------------------------------------------------------------

local types = { string = true, integer = true, number = true, boolean = true, list = true }

local function flag_of(option) return "--" .. option.name:gsub("_", "-") end

local function declaration_error(option, message, level)
  error(("option '%s': %s"):format(tostring(option[1]), message), level + 1)
end

local row_fields = { "choices", "min", "max", "of", "value", "required", "implied", positions = 4 }

local function read_row(row, level)
  fields.check("an option", row, row_fields, level + 1)
  if type(row[1]) ~= "string" or not row[1]:match("^%l[%l%d_-]*$") then
    declaration_error(row, "a name is lower-case letters, digits and dashes", level + 1)
  end
  if not types[row[2]] then
    declaration_error(row, ("type '%s' is none of string, integer, number, boolean, list")
      :format(tostring(row[2])), level + 1)
  end
  if row.of and (row[2] ~= "list" or not types[row.of]) then
    declaration_error(row, "`of` says what a list holds: string, integer or number", level + 1)
  end
  local option = { name = row[1]:gsub("%-", "_"), type = row[2], default = row[3],
    help = row[4] or "", choices = row.choices, min = row.min, max = row.max, element = row.of or "string",
    value = row.value, required = row.required, implied = row.implied }
  if option.type == "boolean" and option.default == nil then option.default = false end
  option.flag = flag_of(option)
  return option
end

-- --- values -----------------------------------------------------------------------------------

local kinds = { string = "a text", integer = "an integer", number = "a number" }

local function texts_of(list)
  local texts = {}
  for i, item in ipairs(list) do texts[i] = tostring(item) end
  return texts
end

local function expectation(option, kind)
  if option.choices then return "one of " .. table.concat(option.choices, ", ") end
  local text = kinds[kind]
  if option.min and option.max then
    return ("%s from %s to %s"):format(text, option.min, option.max)
  elseif option.min then
    return ("%s from %s on"):format(text, option.min)
  elseif option.max then
    return ("%s up to %s"):format(text, option.max)
  end
  return text
end

local function value_error(option, text, expected)
  main.usage_error("option %s: expected %s, got '%s'%s", option.flag, expected, text,
    option.choices and fields.hint(text, texts_of(option.choices)) or "")
end

local function contains(list, value)
  for _, item in ipairs(list) do
    if item == value then return true end
  end
  return false
end

-- One value of kind string, integer or number, or nil where the text is none that is allowed.
local function scalar(option, kind, text)
  local value = text
  if kind == "string" then
    if type(text) ~= "string" then return nil end
  else
    value = tonumber(text)
    if kind == "integer" then value = value and math.tointeger(value) end
    if not value or value ~= value or value == math.huge or value == -math.huge then return nil end
    if option.min and value < option.min or option.max and value > option.max then return nil end
  end
  if option.choices and not contains(option.choices, value) then return nil end
  return value
end

-- An item that is there twice is refused: it would be measured twice, and its rows be one another's double.
local function parse_list(option, text)
  local list = {}
  for item in (text .. ","):gmatch("([^,]*),") do
    local value = item ~= "" and scalar(option, option.element, item) or nil
    if value == nil then
      local nothing = item == "" and " (an item between commas is empty)" or ""
      value_error(option, item == "" and text or item, ("%s for each item%s"):format(
        expectation(option, option.element), nothing))
    end
    if contains(list, value) then value_error(option, item, "each item once") end
    list[#list + 1] = value
  end
  return list
end

local truth = { ["true"] = true, yes = true, on = true, ["1"] = true,
  ["false"] = false, no = false, off = false, ["0"] = false }

local function parse_value(option, text)
  if option.type == "list" then return parse_list(option, text) end
  if option.type == "boolean" then
    if truth[text] == nil then value_error(option, text, "true or false") end
    return truth[text]
  end
  local value = scalar(option, option.type, text)
  if value == nil then value_error(option, text, expectation(option, option.type)) end
  return value
end

-- The default must be a value that the command line could give.
local function check_default(option, row, level)
  local default = option.default
  if default == nil then return end
  local good
  if option.type == "boolean" then
    good = type(default) == "boolean"
  elseif option.type == "list" then
    good = type(default) == "table"
    for _, item in ipairs(good and default or {}) do
      good = good and scalar(option, option.element, item) == item
    end
  else
    good = scalar(option, option.type, default) == default
  end
  if not good then
    declaration_error(row, ("the default '%s' is none of its own values"):format(
      tostring(default)), level + 1)
  end
end

local function read_declaration(spec, level)
  local spec_fields = { "name", "summary", "arguments", positions = #spec }
  fields.check("lab.options", spec, spec_fields, level + 1)
  local declared = { list = {}, by_name = {}, name = spec.name or main.name(),
    summary = spec.summary, arguments = spec.arguments }
  for i, row in ipairs(spec) do
    local option = read_row(row, level + 1)
    if declared.by_name[option.name] or option.name == "help" then
      declaration_error(row, "is declared twice", level + 1)
    end
    check_default(option, row, level + 1)
    declared.list[i], declared.by_name[option.name] = option, option
  end
  return declared
end

-- --- help -------------------------------------------------------------------------------------

local function value_text(value)
  return type(value) == "table" and table.concat(texts_of(value), ",") or tostring(value)
end

local function synopsis(option)
  if option.type == "boolean" then
    return option.default and "--no-" .. option.flag:sub(3) or option.flag
  end
  local value = option.value or option.type == "list" and option.element:upper() .. ",..."
    or option.type:upper()
  return option.implied ~= nil and ("%s[=%s]"):format(option.flag, value)
    or ("%s %s"):format(option.flag, value)
end

local function description(option)
  local notes = {}
  if option.choices then notes[1] = value_text(option.choices):gsub(",", ", ") end
  if option.required then
    notes[#notes + 1] = "required"
  elseif option.default ~= nil and option.type ~= "boolean" and value_text(option.default) ~= "" then
    notes[#notes + 1] = "default: " .. value_text(option.default)
  end
  if option.implied ~= nil then notes[#notes + 1] = "alone: " .. value_text(option.implied) end
  return #notes == 0 and option.help or ("%s (%s)"):format(option.help, table.concat(notes, "; "))
end

-- `left` and the words of `right`, the latter in a column of their own.
local function entry(left, right)
  local lines, line = {}, "  " .. left
  line = #line < COLUMN - 1 and line .. (" "):rep(COLUMN - #line) or line .. "  "
  for word in right:gmatch("%S+") do
    if #line + #word > WIDTH and #line > COLUMN then
      lines[#lines + 1] = line:gsub("%s+$", "")
      line = (" "):rep(COLUMN)
    end
    line = line .. word .. " "
  end
  lines[#lines + 1] = line:gsub("%s+$", "")
  return table.concat(lines, "\n")
end

local function help_text(declared)
  local lines = { ("usage: %s [options]%s"):format(declared.name,
    declared.arguments and " " .. declared.arguments or "") }
  if declared.summary then lines[2] = declared.summary end
  lines[#lines + 1] = ""
  for _, option in ipairs(declared.list) do
    lines[#lines + 1] = entry(synopsis(option), description(option))
  end
  lines[#lines + 1] = entry("--help", "print this text")
  return table.concat(lines, "\n") .. "\n"
end

-- --- parsing ----------------------------------------------------------------------------------

local function unknown_flag(declared, flag)
  local flags = { "--help" }
  for _, option in ipairs(declared.list) do
    flags[#flags + 1] = option.flag
    if option.type == "boolean" then flags[#flags + 1] = "--no-" .. option.flag:sub(3) end
  end
  local nearest = core.nearest(flag, flags)
  main.usage_error("unknown option %s; %s", flag, nearest and ("did you mean %s?"):format(nearest)
    or "--help lists them all")
end

-- Reads the option at args[i]; returns the position of its last word.
local function parse_option(declared, values, args, i)
  local flag, text = args[i]:match("^(%-%-[^=]+)=(.*)$")
  flag = flag or args[i]
  if flag == "--help" or flag == "-h" then
    error(core.error_new("help", help_text(declared)), 0)
  end
  local name = flag:match("^%-%-(.+)$")
  name = name and name:gsub("-", "_")
  local option = name and declared.by_name[name]
  if not option and name and name:match("^no_") then
    local negated = declared.by_name[name:sub(4)]
    if negated and negated.type == "boolean" then
      if text then main.usage_error("option %s takes no value", flag) end
      values[negated.name] = false
      return i
    end
  end
  if not option then unknown_flag(declared, flag) end
  if text then
    values[option.name] = parse_value(option, text)
  elseif option.type == "boolean" then
    values[option.name] = true
  elseif option.implied ~= nil then
    values[option.name] = option.implied
  else
    text = args[i + 1]
    if text == nil or text:match("^%-%-") then
      main.usage_error("option %s needs a value: %s", option.flag,
        expectation(option, option.type == "list" and option.element or option.type))
    end
    values[option.name] = parse_value(option, text)
    return i + 1
  end
  return i
end

local function copy(value)
  return type(value) == "table" and table.move(value, 1, #value, 1, {}) or value
end

local function describe(declared, values)
  local parts = {}
  for _, option in ipairs(declared.list) do
    local value = rawget(values, option.name)
    if option.type == "boolean" then
      parts[#parts + 1] = value and option.flag or "--no-" .. option.flag:sub(3)
    elseif value ~= nil then
      local text = value_text(value)
      if text:find("[^%w_./:,+-]") or text == "" then
        text = shell.quote(text)
      end
      parts[#parts + 1] = option.flag .. "=" .. text
    end
  end
  return table.concat(parts, " ")
end

-- Reading an undeclared name is an error; declared names without a value are nil.
local function seal(declared, values)
  return setmetatable(values, {
    __tostring = function() return describe(declared, values) end,
    __index = function(_, key)
      if type(key) == "number" or declared.by_name[key] then return nil end
      local names = {}
      for i, option in ipairs(declared.list) do names[i] = option.name end
      error(("no option '%s' is declared%s"):format(tostring(key),
        fields.hint(tostring(key), names)), 2)
    end,
  })
end

local function parse(spec, args, level)
  local declared, values = read_declaration(spec, level + 1), {}
  local i, only_arguments = 1, false
  while args[i] ~= nil do
    if not only_arguments and args[i] == "--" then
      only_arguments = true
    elseif not only_arguments and args[i]:match("^%-.") and not tonumber(args[i]) then
      i = parse_option(declared, values, args, i)
    elseif declared.arguments then
      values[#values + 1] = args[i]
    else
      local name = (args[i - 1] or ""):match("^%-%-([^=]+)$")
      local before = name and declared.by_name[(name:gsub("-", "_"))]
      local form = before and before.implied ~= nil and before.flag .. "=" .. args[i]
      main.usage_error("unexpected argument '%s'; %s", args[i],
        form and "did you mean " .. form .. "?" or "options are written --name value")
    end
    i = i + 1
  end
  for _, option in ipairs(declared.list) do
    if values[option.name] == nil then
      if option.required then main.usage_error("option %s is required", option.flag) end
      values[option.name] = copy(option.default)
    end
  end
  return seal(declared, values)
end

-- Parses `args` (a list) against the declaration `spec`. Raises error values of kind "usage" for
-- what is wrong on the command line, and of kind "help" holding the text of --help.
function options.parse(spec, args)
  local values = parse(spec, args, 2)
  return values
end

-- lab.options{...}: the script's own command line. Inside lab.main errors are raised; outside they
-- are printed and the script exits: 2 for a usage error, 0 after --help.
function options.options(spec)
  if main.is_active() then
    local values = parse(spec, arg or {}, 2)
    return values
  end
  local ok, result = pcall(parse, spec, arg or {}, 3)
  if ok then return result end
  if not core.error_kind(result) then error(result, 0) end
  main.exit(main.report(result))
end

return options
