-- Runs the GPU's tests where there is nothing but the binary and these files:
--
--   build/tilelab tests/gpu/run.lua [NAME ...]     from the repository's root
--
-- Each file runs in a process of its own, since a fault of a kernel ends all use of the GPU. Prints
-- their TAP and a closing line; exit code 1 when something failed. Without a GPU all is skipped.

local lab = require "tilelab"
local shell = require "tilelab.shell"

local FOLDER = "tests/gpu"

local function files(wanted)
  local list = {}
  for _, name in ipairs(lab.check(lab.list(FOLDER))) do
    local test = name:match "^(.*)%.lua$"
    if test and test ~= "run" and (#wanted == 0 or wanted[test]) then list[#list + 1] = test end
  end
  return list
end

-- Runs one file and passes its lines on; adds what they say to `total`.
local function run(test, total)
  local passed, failed, skipped, planned = 0, 0, 0, nil
  local path = ("%s/%s.lua"):format(FOLDER, test)
  io.stdout:write("# ", path, "\n")
  local interpreter = shell.command()[1] -- the one that runs this script
  local pipe = assert(io.popen(("%s %s 2>&1"):format(shell.quote(interpreter), shell.quote(path))))
  for line in pipe:lines() do
    io.stdout:write(line, "\n")
    io.stdout:flush()
    planned = planned or tonumber(line:match "^1%.%.(%d+)")
    if line:find "^ok .*# SKIP" then
      skipped = skipped + 1
    elseif line:find "^ok " then
      passed = passed + 1
    elseif line:find "^not ok " then
      failed = failed + 1
    end
  end
  local ended, how, code = pipe:close()
  if not ended and failed == 0 or planned ~= passed + failed + skipped then
    failed = failed + 1
    io.stdout:write(("not ok - %s ended early: %s %s\n"):format(path, how or "exit", tostring(code)))
  end
  total.passed, total.failed = total.passed + passed, total.failed + failed
  total.skipped = total.skipped + skipped
end

lab.main(function()
  local wanted = {}
  for i, name in ipairs(arg) do
    wanted[i], wanted[name] = name, true
  end
  local list, total = files(wanted), { passed = 0, failed = 0, skipped = 0 }
  if #list == 0 then lab.usage_error("no test of that name in %s", FOLDER) end
  local device, reason = lab.gpu "cuda"
  if not device then print("1.." .. #list) end
  for _, test in ipairs(list) do
    if device then
      run(test, total)
    else
      total.skipped = total.skipped + 1
      print(("ok - %s/%s.lua # SKIP %s"):format(FOLDER, test, reason))
    end
  end
  print(("%d passed, %d failed, %d skipped"):format(total.passed, total.failed, total.skipped))
  return total.failed == 0
end)
