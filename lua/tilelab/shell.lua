-- Words of a POSIX shell, and those that this process was started with.

local shell = {}

-- The word in single quotes, between which nothing is special but the quote itself.
function shell.quote(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

-- The command that runs: interpreter, its options, script, arguments; nil where Lua was not started
-- from a command line.
function shell.command()
  if not arg then return nil end
  local first = 0
  while arg[first - 1] do first = first - 1 end
  return table.move(arg, first, #arg, 1, {})
end

return shell
