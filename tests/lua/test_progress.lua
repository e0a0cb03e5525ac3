-- lab.progress: rewriting on a terminal, few plain lines elsewhere; with a clock of our own.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"

local function recorder()
  local parts = {}
  return { write = function(self, ...) parts[#parts + 1] = table.concat { ... } return self end,
    flush = function() end, text = function() return table.concat(parts) end }
end

local now = 0
local function clock() return now end

local out = recorder()
local p = lab.progress { total = 100, label = "train", unit = "updates", every = 10, stream = out,
  terminal = false, clock = clock }
for _ = 1, 100 do
  now = now + 0.5
  p:step(1, "loss 2.5")
end
p:done()
p:done()
local lines = {}
for line in out.text():gmatch("[^\n]+") do lines[#lines + 1] = line end
t.is(#lines, 5, "one line every ten seconds")
t.is(lines[1], "train  20/100  2.00 updates/s  ETA 0:40  loss 2.5", "rate, ETA and note")
t.is(lines[5], "train  100/100  2.00 updates/s  in 0:50  loss 2.5", "the last line tells the whole time")
t.ok(not out.text():find("[\r\27]"), "no control characters")

out, now = recorder(), 0
p = lab.progress { total = 7200, stream = out, terminal = true, clock = clock }
for _ = 1, 10 do
  now = now + 0.0625
  p:step()
end
t.is(select(2, out.text():gsub("\r", "")), 5, "a terminal's line is rewritten ten times a second")
t.ok(not out.text():find("\n"), "in place")
t.like(out.text(), "10/7200  16.0 steps/s  ETA 7:29", "rate and ETA")
p:done()
t.like(out.text(), "\n$", "done ends the line")

out, now = recorder(), 0
p = lab.progress { total = 3, stream = out, terminal = false, clock = clock }
p:done()
t.is(out.text(), "", "nothing done, nothing said")
do
  local closed <close> = lab.progress { total = 1, stream = out, terminal = false, clock = clock }
  now = 1
  closed:step()
end
t.is(out.text(), "1/1  1.00 steps/s  in 0:01\n", "closing shows the last state")
out, now = recorder(), 0
p = lab.progress { total = 100000, stream = out, terminal = false, every = 0, clock = clock }
now = 1
p:step()
t.like(out.text(), "ETA 27:46:39", "hours")
t.error(function() lab.progress { total = 1.5 } end, "total of lab.progress must be an integer", "total")
t.error(function() lab.progress { totl = 1 } end, "did you mean 'total'", "unknown field")
t.done()
