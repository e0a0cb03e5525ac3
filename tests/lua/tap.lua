-- A small TAP runner: local t = dofile("tests/lua/tap.lua"), checks, t.done().
-- Runs wherever Lua 5.4 does, from the repository root.

local t = { count = 0, failed = 0 }
io.stdout:setvbuf "line" -- a test that hangs or dies has said how far it came

local function report(good, name, ...)
  t.count = t.count + 1
  if not good then t.failed = t.failed + 1 end
  io.stdout:write(good and "ok " or "not ok ", t.count, " - ", name or "", "\n")
  if not good then
    for _, line in ipairs { ... } do io.stdout:write("#   ", (line:gsub("\n", "\n#   ")), "\n") end
    local where = debug.getinfo(3, "Sl")
    io.stdout:write("#   at ", where.short_src, ":", where.currentline, "\n")
  end
  return good
end

local function show(value)
  return type(value) == "string" and ("%q"):format(value) or tostring(value)
end

function t.ok(condition, name) return (report(condition, name)) end

function t.is(got, want, name)
  return (report(got == want, name, "got  " .. show(got), "want " .. show(want)))
end

-- `text` matches the Lua pattern.
function t.like(text, pattern, name)
  return (report(type(text) == "string" and text:find(pattern) ~= nil, name,
    "got      " .. show(text), "expected " .. show(pattern)))
end

-- fn() raises an error whose text matches the pattern.
function t.error(fn, pattern, name)
  local ok, message = pcall(fn)
  if ok then return (report(false, name, "no error was raised", "expected " .. show(pattern))) end
  message = tostring(message)
  return (report(message:find(pattern) ~= nil, name, "got      " .. show(message),
    "expected " .. show(pattern)))
end

-- Says what comes next.
function t.note(text) io.stdout:write("# ", text, "\n") end

function t.skip(reason, count)
  for _ = 1, count or 1 do
    t.count = t.count + 1
    io.stdout:write("ok ", t.count, " # SKIP ", reason, "\n")
  end
end

-- Prints the plan; ends with exit code 1 when a check failed.
function t.done()
  io.stdout:write("1..", t.count, "\n")
  io.stdout:flush()
  if t.failed > 0 then os.exit(1, true) end
end

-- A fresh folder that goes when the test's last `folder` variable is closed.
function t.folder()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir '" .. path .. "'"))
  return setmetatable({}, {
    __div = function(_, name) return path .. "/" .. name end,
    __tostring = function() return path end,
    __close = function() os.execute("rm -rf '" .. path .. "'") end,
  })
end

function t.write(path, text)
  local file = assert(io.open(path, "wb"))
  assert(file:write(text))
  assert(file:close())
  return path
end

function t.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  return text
end

return t
