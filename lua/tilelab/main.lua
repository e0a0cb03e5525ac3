-- The frame around a script: exit codes, messages, Ctrl-C.
--
--   lab.main(function() ... end)
--     0    the function returned (nothing, true or 0); the script goes on after lab.main
--     n    it returned that number; 1 when it returned false
--     1    a defect: traceback
--     2    bad input: "name: message" (lab.usage_error, lab.check, an error value of kind
--          "refused"), what lab.options found wrong on the command line, or output that was not
--          written
--     130  Ctrl-C: <close> variables have run, one line is printed. A second Ctrl-C ends the
--          process at once.

local core = require "tilelab_core"
local progress = require "tilelab.progress"

local main = {}
local depth = 0 -- calls of main.run that are active

-- The script's name for messages: "depth_scaling" for experiments/depth_scaling.lua.
function main.name()
  local script = arg and arg[0] or "tilelab"
  return (script:match("([^/]+)$") or script):gsub("%.lua$", "")
end

-- Raises a usage error: lab.main prints "name: message" and exits with 2, without a traceback.
function main.usage_error(format, ...)
  error(core.error_new("usage", format:format(...)), 0)
end

-- lab.check(f(...)): passes results on; nil, message, code becomes an error that lab.main prints
-- without a traceback and exits with 2.
function main.check(value, message, code, ...)
  if value == nil or value == false then
    error(core.error_new("refused", tostring(message or "refused"), code and tostring(code)), 0)
  end
  return value, message, code, ...
end

-- The other way round, for a value that is never nil: fn(...), or nil and the message where it
-- raised a refusal. Any other error is passed on.
function main.attempt(fn, ...)
  local ok, value = pcall(fn, ...)
  if ok then return value end
  if core.error_kind(value) ~= "refused" then error(value, 0) end
  return nil, tostring(value)
end

-- lab.device_option(name) -> the device; raises a usage error of --device where there is none of that name.
function main.device_option(name)
  local known, device, message = pcall(core.device, name)
  if not (known and device) then main.usage_error("--device: %s", message or tostring(device)) end
  return device
end

-- lab.gpu(name) -> the device, or nil, message, code where there is none of that name or it is no NVIDIA
-- GPU. For names that the user gave, and work that the CPU cannot do: no message sends there.
function main.gpu(name)
  local known, device, message, code = pcall(core.device, name)
  if not known then return nil, tostring(device), "argument" end
  if not device then return nil, (message:gsub(",? or use %-%-device cpu", "")), code end
  if device.arch == 0 then
    return nil, ("device '%s': this needs an NVIDIA GPU; give cuda or cuda:N"):format(name), "argument"
  end
  return device
end

local function handle(value)
  if core.error_kind(value) then return value end
  return debug.traceback(tostring(value), 2)
end

-- Prints what a script ended with; returns the exit code.
function main.report(value)
  local kind = core.error_kind(value)
  progress.break_line()
  if kind == "help" then
    io.stdout:write(value.message)
    return 0
  end
  io.stdout:flush()
  io.stderr:write(main.name(), ": ", tostring(value), "\n")
  if kind == "interrupted" then return 130 end
  return kind and 2 or 1
end

local function code_of(result)
  if result == nil or result == true then return 0 end
  if result == false then return 1 end
  if math.type(result) == "integer" and result >= 0 and result <= 255 then return result end
  return 0
end

-- Calls fn(...) as lab.main does. Instead of exiting it returns the exit code, and whether the
-- script should end: after everything but a plain return.
function main.run(fn, ...)
  depth = depth + 1
  core.interrupt_arm()
  local ok, result = xpcall(fn, handle, ...)
  core.interrupt_disarm()
  depth = depth - 1
  if not ok then return main.report(result), true end
  if core.interrupted() then -- something on the way caught the error
    return main.report(core.error_new("interrupted", "interrupted")), true
  end
  if io.type(io.stdout) == "file" and (not io.stdout:flush() or core.has_failed(io.stdout)) then
    return main.report(core.error_new("refused", "standard output was not written; is the disk full?")), true
  end
  local code = code_of(result)
  return code, code ~= 0
end

-- Whether a call of main.run will see an error that is raised now.
function main.is_active() return depth > 0 end

function main.exit(code)
  io.stdout:flush()
  os.exit(code, true)
end

function main.main(fn, ...)
  if type(fn) ~= "function" then
    error(("lab.main takes a function, not a %s"):format(type(fn)), 2)
  end
  local code, ends = main.run(fn, ...)
  if ends then main.exit(code) end
end

return main
