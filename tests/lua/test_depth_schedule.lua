-- Order of runs, resuming, and the identity of a study.

package.path = "lua/?.lua;" .. package.path

local t = dofile("tests/lua/tap.lua")
local schedule = require "tilelab.depth.schedule"

local function text(runs)
  local parts = {}
  for i, run in ipairs(runs) do parts[i] = run.backend .. run.layers end
  return table.concat(parts, " ")
end

local function build(backends, layers, repetitions)
  return schedule.build {backends = backends, layers = layers, repetitions = repetitions}
end

t.is(text(build({"a", "b"}, {1, 2}, 1)), "a1 b1 b2 a2", "one repetition: ABBA")
t.is(text(build({"a", "b"}, {1, 2}, 2)), "a1 b1 b2 a2 a2 b2 b1 a1", "two: the second mirrored")
t.is(text(build({"a"}, {1, 2}, 1)), "a1 a2", "one backend")

-- Palindromes, each cell once a repetition, and equal mean positions for even repetitions.
for _, backends in ipairs {{"a", "b"}, {"a", "b", "c"}, {"a", "b", "c", "d"}} do
  for _, layers in ipairs {{1, 2}, {1, 2, 4}} do
    for repetitions = 1, 4 do
      local name = string.format("%d backends, %d depths, %d repetitions", #backends, #layers,
        repetitions)
      local runs = build(backends, layers, repetitions)
      local sums, seen, palindrome = {}, {}, true
      for i, run in ipairs(runs) do
        palindrome = palindrome and run.backend == runs[#runs + 1 - i].backend
        local cell = run.backend .. run.layers
        sums[cell] = (sums[cell] or 0) + i
        seen[cell .. "/" .. run.repetition] = true
      end
      local cells = 0
      for _ in pairs(seen) do cells = cells + 1 end
      t.ok(cells == #runs and #runs == #backends * #layers * repetitions, name .. ": each run once")
      if #layers % 2 == 0 or repetitions % 2 == 0 then
        t.ok(palindrome, name .. ": a palindrome")
      end
      if repetitions % 2 == 0 then
        local equal = true
        for _, sum in pairs(sums) do equal = equal and sum == (#runs + 1) * repetitions / 2 end
        t.ok(equal, name .. ": a steady drift shifts all alike")
      end
    end
  end
end

-- Resuming.
local runs = build({"a", "b"}, {1, 2}, 2)
local UPDATES = 3

-- The first `count` rows of a study, as text or as numbers.
local function rows_of(count, as_text)
  local rows = {}
  for i = 0, count - 1 do
    local run = runs[i // UPDATES + 1]
    local update = i % UPDATES + 1
    local row = {layers = run.layers, repetition = run.repetition, update = update}
    if as_text then
      for key, value in pairs(row) do row[key] = tostring(value) end
    end
    row.backend = run.backend
    rows[#rows + 1] = row
  end
  return rows
end

for count = 0, #runs * UPDATES do
  local state = schedule.resume(rows_of(count, count % 2 == 0), runs, UPDATES)
  local whole, part = count // UPDATES, count % UPDATES
  local ok = state and #state.complete == whole and #state.remaining == #runs - whole
    and #state.keep == whole * UPDATES and (state.cut ~= nil) == (part > 0)
    and (not state.cut or state.cut == state.remaining[1])
    and (whole == #runs or state.remaining[1] == runs[whole + 1])
  t.ok(ok, string.format("cut after %d rows: %d runs stay, %d rows drop", count, whole, part))
end

for from = 0, 2 do
  local asked
  local state = schedule.resume(rows_of(UPDATES + 2), runs, UPDATES, function(run, count)
    asked = run == runs[2] and count
    return from > 0 and from or nil
  end)
  t.ok(asked == 2 and state.from == from and #state.keep == UPDATES + from and state.remaining[1] == runs[2],
    string.format("a checkpoint at update %d keeps the rows up to it", from))
end
t.is(schedule.resume(rows_of(UPDATES), runs, UPDATES, error).from, 0, "no checkpoint is asked for between runs")

local function refused(rows, pattern, name, updates)
  local state, message = schedule.resume(rows, runs, updates or UPDATES)
  t.is(state, nil, name .. ": refused")
  t.like(message, pattern, name)
end
do
  local rows = rows_of(5)
  rows[2].update = 3
  refused(rows, "row 2 is update 3 of a, 1 layer, repetition 1, where update 2 of a, 1 layer, "
    .. "repetition 1 was to follow.*%-%-fresh", "a gap")
  rows = rows_of(5)
  table.remove(rows, 3)
  refused(rows, "row 3 is update 1 of b, .* where update 3 of a", "a cut run in the middle")
  rows = rows_of(5)
  rows[4].backend = "c"
  refused(rows, "row 4 %(backend c, .* is no run of this study.*%-%-fresh", "another backend")
  rows = rows_of(5)
  rows[4].layers = "x"
  refused(rows, "row 4 .* is no run of this study", "layers not a number")
  refused(rows_of(5), "row 3 is update 3", "more updates than a run has", 2)
  rows = rows_of(#runs * UPDATES)
  rows[#rows + 1] = rows[1]
  refused(rows, "where nothing was to follow", "a row past the end")
end

-- Identity.
local recorded = {commit = "abc", dirty = "no", flag_updates = "100", flag_seed = "1",
  device = "cpu", ["kernel_sha256.gemm"] = "11", script_sha256 = "22", date = "monday", command = "x"}
local function difference(change)
  local present = {}
  for key, cell in pairs(recorded) do present[key] = cell end
  for key, cell in pairs(change) do present[key] = cell or nil end
  return schedule.difference(recorded, present)
end
t.is(difference({}), nil, "the same study")
t.is(difference({date = "tuesday", command = "y", host = "h"}), nil,
  "date and command line may differ")
t.like(difference({commit = "abd"}), "commit is 'abd' now and was 'abc'.*%-%-fresh", "commit")
t.like(difference({dirty = "yes"}), "dirty is 'yes' now", "dirty")
t.like(difference({flag_updates = "50"}), "flag_updates is '50' now and was '100'", "flag")
t.like(difference({device = "cuda:0"}), "device is 'cuda:0' now", "device")
t.like(difference({["kernel_sha256.gemm"] = "12"}), "kernel_sha256.gemm is '12' now", "kernel hash")
t.like(difference({script_sha256 = "0"}), "script_sha256 is '0' now", "script hash")
t.like(difference({["kernel_sha256.rope"] = "7"}), "kernel_sha256.rope is '7' now and was not given",
  "a new kernel")
t.like(difference({flag_seed = false}), "flag_seed is not given now and was '1'",
  "a flag that went")
t.like(difference({flag_seed = "2", device = "x", commit = "c"}), "commit is",
  "commit comes first")

t.done()
