-- A small TAP runner: local t = dofile("tests/lua/tap.lua"); t.ok(...); t.done().

local tap, count, failed = {}, 0, 0

function tap.ok(condition, name)
  count = count + 1
  if not condition then failed = failed + 1 end
  print(string.format("%s %d - %s", condition and "ok" or "not ok", count, name))
  return condition
end

function tap.is(got, want, name)
  if not tap.ok(got == want, name) then
    print(string.format("#   got:  %s\n#   want: %s", tostring(got), tostring(want)))
  end
end

function tap.like(text, pattern, name)
  if not tap.ok(type(text) == "string" and text:find(pattern) ~= nil, name) then
    print(string.format("#   text:    %s\n#   pattern: %s", tostring(text), pattern))
  end
end

function tap.error(fn, pattern, name)
  local passed, message = pcall(fn)
  tap.like(not passed and tostring(message) or "no error", pattern, name)
end

function tap.skip(reason, skipped)
  for _ = 1, skipped or 1 do
    count = count + 1
    print(string.format("ok %d # SKIP %s", count, reason))
  end
end

function tap.done()
  print("1.." .. count)
  os.exit(failed == 0)
end

return tap
