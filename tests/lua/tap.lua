-- TAP for Lua tests: each check prints one line; done() prints the plan and sets the exit code.

local tap = {}

local count, failed = 0, 0

local function report(ok, name, detail)
  count = count + 1
  if not ok then failed = failed + 1 end
  print(string.format("%s %d - %s", ok and "ok" or "not ok", count, name or ""))
  if not ok and detail then print("# " .. detail:gsub("\n", "\n# ")) end
  return ok
end

function tap.ok(cond, name)
  return report(cond and true or false, name)
end

function tap.is(got, want, name)
  return report(got == want, name, string.format("got %s, want %s", tostring(got), tostring(want)))
end

function tap.like(text, pattern, name)
  local ok = type(text) == "string" and text:find(pattern) ~= nil
  return report(ok, name, string.format("%s does not match %s", tostring(text), pattern))
end

function tap.skip(reason, number)
  for _ = 1, number or 1 do
    count = count + 1
    print(string.format("ok %d # SKIP %s", count, reason))
  end
end

function tap.done()
  print("1.." .. count)
  os.exit(failed == 0 and 0 or 1, true)
end

return tap
