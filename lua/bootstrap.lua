-- First line of an experiment, so that `lua experiments/x.lua` works whatever `lua` is:
--
--   local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")
--
-- Under Lua 5.4 it finds lua/ and build/ and returns require "tilelab". Under another version it
-- runs the same command again with lua5.4 or build/tilelab and exits with its code. This file and
-- the experiments parse under Lua 5.1 to 5.4 and LuaJIT.

local this_file = debug.getinfo(1, "S").source:match("^@(.*)$")

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

-- The repository: "experiments/../lua/bootstrap.lua" gives ".", "./../lua/bootstrap.lua" "./..".
local root = (this_file:match("^(.*/)lua/[^/]*$") or (this_file:match("^(.*/)") or "./") .. "../")
if not root:match("^%.?%.?/%.%./$") then
  local shorter = root:gsub("[^/]+/%.%./$", "")
  -- Through a link to experiments/, ".." is not the folder that the name suggests.
  if exists(shorter .. "lua/bootstrap.lua") then root = shorter end
end
root = root == "" and "." or (root:gsub("(.)/$", "%1"))
local module, host = root .. "/build/tilelab_core.so", root .. "/build/tilelab"
local script = arg and arg[0] or "tilelab"

local function stop(message)
  io.stderr:write(script, ": ", message, "\n")
  os.exit(1)
end

if _VERSION == "Lua 5.4" then
  package.path = root .. "/lua/?.lua;" .. package.path
  if not package.preload.tilelab_core then
    if not exists(module) then
      stop("build/tilelab_core.so is missing: run `make` in " .. root)
    end
    package.cpath = root .. "/build/?.so;" .. package.cpath
  end
  return require "tilelab"
end

-- What os.execute returns differs: a status as from wait before 5.2, three values from then on.
local function run(command)
  local first, _, code = os.execute(command)
  if type(first) == "number" then
    code = first
    if first >= 256 then code = math.floor(first / 256) elseif first > 0 then code = 128 + first end
  elseif first and code == nil then
    code = 0
  end
  return code
end

-- For a POSIX shell: in single quotes nothing is special but the quote itself.
local function quoted(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

if not (arg and arg[-1]) then
  stop("run this under Lua 5.4, not " .. _VERSION)
end

local interpreter
if exists(module) and run("command -v lua5.4 >/dev/null 2>&1") == 0 then
  interpreter = "lua5.4"
elseif exists(host) then
  interpreter = host
else
  stop("this is " .. _VERSION .. "; it takes lua5.4 with build/tilelab_core.so, or build/tilelab: "
    .. "run `make` in " .. root)
end

local words = { "exec", quoted(interpreter), quoted(script) }
for i = 1, #arg do words[#words + 1] = quoted(arg[i]) end
io.stdout:flush()
os.exit(run(table.concat(words, " ")))
