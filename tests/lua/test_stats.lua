-- Statistics, comparison and random numbers as scripts see them; the numbers are tested in C.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"

local s = lab.stats { 4, 1, 3, 2 }
t.is(s.n, 4, "n")
t.is(s.min, 1.0, "min")
t.is(s.q1, 1.75, "q1")
t.is(s.median, 2.5, "median")
t.is(s.q3, 3.25, "q3")
t.is(s.max, 4.0, "max")
t.is(s.mean, 2.5, "mean")
t.is(s.median_lo, 1.0, "interval of four is the range")
t.ok(s.coverage > 0.8 and s.coverage < 0.95, "and says what it covers")
t.is(lab.stats({ 7 }).relative_spread, 0.0, "one sample")
t.is(lab.stats({ 7, 9 }).median, 8.0, "two samples")
t.error(function() lab.stats {} end, "sample", "no samples")
t.error(function() lab.stats { 1, 0 / 0 } end, "2", "NaN, with its position")
t.error(function() lab.stats { 1, "2" } end, "sample 2 is a string", "a text")

local a = lab.tensor_from("cpu", "fp32", { { 1, 2 }, { 3, 4 } })
local b = lab.tensor_from("cpu", "fp32", { { 1, 2 }, { 3.5, 4 } })
local c = lab.compare(b, a)
t.is(c.pass, false, "different without a bound")
t.is(c.violations, 1, "violations")
t.is(c.mismatched_bits, 1, "mismatched_bits")
t.is(table.concat(c.worst_coord, " "), "2 1", "worst_coord counts from 1")
t.is(c.worst_index, 3, "worst_index too")
t.is(c.worst_value, 3.5, "worst_value")
t.is(lab.compare(b, a, { absolute = 0.5 }).pass, true, "an absolute bound")
t.is(lab.compare(b, a, { relative = 0.2 }).pass, true, "a relative bound")
t.is(lab.compare(b, a, { scaled = 0.1, scale = lab.tensor { shape = { 2, 2 }, fill = 5 } }).pass, true,
  "a scaled bound")
b:set(0 / 0, 1, 1)
c = lab.compare(b, a, { absolute = 1e9 })
t.is(c.pass, false, "NaN never passes")
t.is(c.nonfinite, 1, "and is counted")
t.is(lab.compare(lab.tensor { shape = 0 }, lab.tensor { shape = 0 }).worst_coord, nil, "nothing to compare")
t.error(function() lab.compare(a, lab.tensor { shape = 4 }) end, "%[2, 2%].*%[4%]", "shapes differ")
t.error(function() lab.compare(a, a, { absolut = 1 }) end, "did you mean 'absolute'", "unknown bound")

local r, again = lab.random(5, 1), lab.random(5, 1)
local same, inside = true, true
for _ = 1, 100 do
  local x = r:below(10)
  same, inside = same and x == again:below(10), inside and math.type(x) == "integer" and x >= 0 and x < 10
end
t.ok(same, "one seed, one stream")
t.ok(inside, "below")
local u = r:uniform()
t.ok(u >= 0 and u < 1, "uniform")
t.ok(math.abs(r:normal()) < 5, "normal")
t.error(function() r:below(0) end, "2%^32", "a bound below 1")
local list = r:shuffle { 1, 2, 3, 4, 5, 6 }
local sorted = { table.unpack(list) }
table.sort(sorted)
t.is(table.concat(sorted), "123456", "shuffle loses nothing")
local firsts = {}
for _ = 1, 600 do
  local first = r:shuffle({ 1, 2, 3 })[1]
  firsts[first] = (firsts[first] or 0) + 1
end
t.ok(firsts[1] > 140 and firsts[2] > 140 and firsts[3] > 140, "shuffle is fair")

do -- by group
  local value = lab.tensor { dtype = "fp32", shape = { 5, 2 }, fill = 1 }
  local exact = value:clone():set(3, 4, 2)
  local offsets = lab.tensor_from("cpu", "i32", { 0, 2, 2, 5 })
  local groups = lab.compare_groups(value, exact, offsets, { absolute = 1 })
  t.is(#groups, 3, "a comparison for each group")
  t.ok(groups[1].pass and groups[2].pass and groups[2].count == 0, "groups without an error, and without rows")
  t.ok(not groups[3].pass and groups[3].worst_coord[1] == 4 and groups[3].worst_coord[2] == 2,
    "the worst position is that of the whole tensor")
  local scale = lab.tensor { dtype = "fp32", shape = { 5, 2 }, fill = 2 }
  t.ok(lab.compare_groups(value, exact, offsets, { scaled = 1, scale = scale })[3].pass, "with a scale")
  t.error(function() lab.compare_groups(value, exact, lab.tensor_from("cpu", "i32", { 0, 6 })) end,
    "offset 1 is 6; it must be 0 to 5", "offsets past the rows")
  t.error(function() lab.compare_groups(value, exact, value) end, "i32 %[num_groups %+ 1%]", "offsets of another kind")
end

t.is(lab.hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "hash")
t.is(lab.nearest("layes", { "device", "layers" }), "layers", "nearest")
t.is(lab.nearest("zzz", { "device", "layers" }), nil, "nothing near")
t.error(function()
  lab.stats(setmetatable({}, { __len = function() return 1 << 61 end, __index = function() return 1 end }))
end, "too many samples", "a length that no list has")
t.done()
