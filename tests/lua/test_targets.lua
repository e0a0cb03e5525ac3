-- Targets: reading them, holding them against rows, writing what is reached.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local core = require "tilelab_core"
local targets = require "tilelab.targets"

local folder <close> = t.folder()
local HEAD = "study\tfigure\tfloor\taim\treached\tnote\n"

local function file(text) return t.write(folder / "targets.tsv", HEAD .. text:gsub(" ?| ?", "\t") .. "\n") end

-- The repository's own.

local own = targets.read(lab.root .. "/tests/targets.tsv")
t.ok(#own >= 8, "tests/targets.tsv can be read")
for _, target in ipairs(own) do
  t.ok(lab.recorded.module(target.study) ~= nil, target.where .. ": " .. target.study .. " has a drawing module")
end

-- Against rows.

local data = lab.record.read(t.write(folder / "rows.tsv", "op\ttime_us\na\t2\nb\t3\n"))
local function status(floor, aim, figure)
  local list = targets.read(file(("study | %s | %s | %s | - | -"):format(figure or "max time_us", floor, aim)))
  local result, value, message = targets.check(list[1], data)
  return result .. " " .. tostring(value) .. (message and " " .. message or "")
end
t.is(status("3", "-"), "held 3", "a floor that is just held")
t.is(status("3", "3"), "aim reached 3", "an aim that is reached")
t.is(status("2", "3.5"), "held 3", "between floor and aim")
t.is(status("3.01", "-"), "BELOW 3", "below")
t.is(status("<=3", "<=2"), "held 3", "at most")
t.is(status("<=2.9", "-"), "BELOW 3", "above what is allowed")
t.is(status(">=1", ">=2"), "aim reached 3", "at least, in words")
t.like(status("1", "-", "max time_us where op=c"), "^not recorded nil .*no row matches", "no such rows")
t.like(status("1", "-", "max tim_us"), "^not recorded nil .*did you mean 'time_us'", "no such column")
local list = targets.read(file "study | count | 1 | - | - | -")
t.is(select(3, targets.check(list[1], nil)), "no record of study", "no record")

-- What cannot be read.

local function refused(row, pattern)
  local ok, err = pcall(targets.read, file(row))
  t.ok(not ok and core.error_kind(err) == "refused" and tostring(err):find(pattern) ~= nil, row .. ": refused")
  if ok or not tostring(err):find(pattern) then print("# " .. tostring(err)) end
end
refused("study | max time_us wher op=a | 1 | - | - | -", "targets.tsv:2: figure: at character 13: 'wher' is left over")
refused("study | max time_us | high | - | - | -",
  "targets.tsv:2: column 'floor' holds 'high'; it takes a number, or <=")
refused("study | max time_us | - | - | - | -", "column 'floor' holds '%-'")
refused("study | max time_us | nan | - | - | -", "column 'floor' holds 'nan'")
refused("study | max time_us | 1 | ~2 | - | -", "column 'aim' holds '~2'; .*or %-")
refused("study | max time_us | 1 | 0.5 | - | -", "aim 0.5 is easier than floor 1")
refused("study | max time_us | <=1 | 2 | - | -", "aim 2 is easier than floor <=1")
refused("a/b | count | 1 | - | - | -", "study 'a/b' is no name")
refused("study | count | 1 | - | -", ":2: 5 columns where the header has 6")

t.is(targets.with_reached("# c\n" .. HEAD .. "s\tcount\t1\t-\t-\tnote\ns\tcount\t2\t-\t7\t-\n", { [3] = "0.95" }),
  "# c\n" .. HEAD .. "s\tcount\t1\t-\t0.95\tnote\ns\tcount\t2\t-\t7\t-\n", "what is reached is written, the rest kept")
t.done()
