-- What tests and benchmarks of the grouped GEMMs share, on the CPU: sizes, cases, and a check that
-- passes what is right and finds what is planted.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local grouped = require "tilelab.grouped"

local function sum(list)
  local total = 0
  for _, value in ipairs(list) do total = total + value end
  return total
end

local function largest(list) return math.max(table.unpack(list)) end

-- --- sizes ---------------------------------------------------------------------------------------

t.is(table.concat(grouped.sizes("uniform", 10, 4), " "), "3 3 2 2", "uniform sizes")
for _, distribution in ipairs { "multinomial", "zipf" } do
  local sizes = grouped.sizes(distribution, 32768, 32, 3)
  t.is(#sizes, 32, distribution .. ": a size for each expert")
  t.is(sum(sizes), 32768, "of all rows")
  t.is(table.concat(grouped.sizes(distribution, 32768, 32, 3), " "), table.concat(sizes, " "), "the same again")
  t.ok(table.concat(grouped.sizes(distribution, 32768, 32, 4), " ") ~= table.concat(sizes, " "),
    "others for another seed")
end
t.ok(largest(grouped.sizes("multinomial", 32768, 32, 1)) < 1024 + 160, "multinomial: 1024 rows, give or take 32")
local zipf = grouped.sizes("zipf", 32768, 32, 1)
t.ok(largest(zipf) > 5500 and largest(zipf) < 6100, ("zipf: the largest has some 5800 rows, %d"):format(largest(zipf)))
local firsts = {}
for seed = 1, 8 do firsts[grouped.sizes("zipf", 1000, 8, seed)[1] > 220] = true end
t.ok(firsts[true] and firsts[false], "and is not always the first")
t.error(function() grouped.sizes("even", 4, 2) end, "unknown distribution 'even'; there are: uniform", "an unknown one")
t.error(function() grouped.sizes("zipf", 4, 0) end, "experts of grouped.sizes must be an integer from 1 on, not 0",
  "no experts")
t.error(function() grouped.sizes("multinomial", 4.5, 2) end, "rows of grouped.sizes must be an integer", "half a row")
t.error(function() grouped.sizes("uniform", -1, 2) end, "rows of grouped.sizes must be an integer from 0 on",
  "fewer than none")
for _, exponent in ipairs { -1, 1 / 0, 0 / 0 } do
  t.error(function() grouped.sizes("zipf", 4, 2, 1, exponent) end, "exponent of grouped.sizes", "a wild exponent")
end
t.is(table.concat(grouped.offsets { 3, 0, 4 }, " "), "0 3 3 7", "offsets")
t.is(table.concat(grouped.padded({ 0, 1, 128, 129 }, 128), " "), "0 128 128 256", "padded sizes")
t.is(grouped.shapes.fwd_w13.n * grouped.shapes.fwd_w13.k, grouped.shapes.wgrad_w13.m * grouped.shapes.wgrad_w13.n,
  "shapes of a weight and of its gradient")

-- --- cases ---------------------------------------------------------------------------------------

local seen, rows, groups = {}, {}, {}
for _, case in ipairs(grouped.cases()) do
  if seen[case.name] then t.ok(false, case.name .. " is there twice") end
  seen[case.name] = case
  groups[#case.sizes] = true
  if #case.sizes == 1 then rows[case.sizes[1]] = true end
end
local all = true
for size = 0, 300 do all = all and rows[size] end
t.ok(all, "one group of 0 to 300 rows")
for _, count in ipairs { 1, 3, 33, 128, 1025 } do t.ok(groups[count], count .. " groups") end
for _, name in ipairs { "nt, the first group empty", "nn, all groups empty", "nn, n 1408, k 72" } do
  t.ok(seen[name], name)
end

-- --- operands ------------------------------------------------------------------------------------

do
  local args, used = grouped.operands { sizes = { 2, 0, 3 }, n = 8, k = 16, tail = 2, seed = 1 }
  t.is(used, 5, "the last offset")
  t.is(tostring(args.b), "tensor [3, 8, 16] bf16 cpu", "b")
  local values = args.a:totable()
  t.ok(values[5 * 16] == values[5 * 16] and values[5 * 16 + 1] ~= values[5 * 16 + 1], "the tail is poisoned")
  args, used = grouped.operands { sizes = { 2, 0, 3 }, n = 8, k = 16, tail = 2, alignment = 4, layout = "nn" }
  t.is(used, 8, "padded groups")
  t.is(tostring(args.b), "tensor [3, 16, 8] bf16 cpu", "b, nn")
  t.is(table.concat(args.row_experts:totable(), " "), "0 0 -1 -1 2 2 2 -1 -1 -1", "row_experts")
  t.is(table.concat(args.group_offsets:totable(), " "), "0 4 4 8", "group_offsets")
  t.error(function() grouped.operands { size = {} } end, "did you mean 'sizes'", "a misspelt setting")
end
do -- a pattern longer than its period
  local period = (1 << 24) - 72
  local x = lab.tensor { dtype = "bf16", shape = { 2 * period + 1000 } }
  grouped.fill(x, 3)
  local head = lab.tensor { dtype = "bf16", shape = { period } }:normal { seed = 3 }
  local same = true
  for i = 0, 1 do same = same and lab.compare(x:view(i * period, { period }), head).mismatched_bits == 0 end
  t.ok(same and lab.compare(x:view(2 * period, { 1000 }), head:view(0, { 1000 })).mismatched_bits == 0,
    "long tensors repeat their beginning")
end

-- --- checks --------------------------------------------------------------------------------------

local function with(args, more)
  local copy = {}
  for key, value in pairs(args) do copy[key] = value end
  for key, value in pairs(more) do copy[key] = value end
  return copy
end

local function launch(args, more)
  args = with(args, more)
  lab.check(lab.plan(args)):launch()
  return args.d
end

local function checker_of(args, more)
  return grouped.checker(with({ a = args.a, b = args.b, group_offsets = args.group_offsets, layout = args.layout },
    more or {}))
end

-- Every eighth of the many sizes, to save time.
for i, case in ipairs(grouped.cases()) do
  if #case.sizes > 1 and case.n * case.k < 1e6 or i % 8 == 0 then
    local args = grouped.operands(with(case, { seed = i }))
    local checker = checker_of(args)
    local poison, reason = checker:check(args.d)
    if sum(case.sizes) > 0 and (poison or not reason:find "elements in %d+ of %d+ groups are wrong") then
      t.ok(false, case.name .. ": poison passes: " .. reason)
    end
    local pass, text, found = checker:check(launch(args, { op = "m_grouped_gemm", variant = "cpu_ragged" }))
    local right = pass and #found == #case.sizes
    for g, group in ipairs(found) do right = right and (group.row ~= nil) == (case.sizes[g] > 0) end
    t.ok(right, case.name .. ": " .. text)
  end
end

local case = { sizes = { 20, 0, 1, 39 }, n = 24, k = 72, tail = 2, seed = 9 }
for _, layout in ipairs { "nt", "nn" } do
  local args = grouped.operands(with(case, { layout = layout }))
  local checker = checker_of(args)
  local product = { op = "m_grouped_gemm", variant = "cpu_ragged" }
  local d = launch(args, product)
  d:rows(31, 31):copy(d:rows(32, 32))
  local pass, text, found = checker:check(d)
  t.ok(not pass and found[4].row == 31 and found[1].violations == 0, layout .. ": a wrong row: " .. text)
  t.like(text, "in 1 of 4 groups are wrong; worst .* group 4, row 31", "named")
  for row = 1, 60 do d:set(d:get(row, 6), row, 5) end
  launch(args, product)
  for row = 1, 20 do d:set(d:get(row, 6), row, 5) end
  pass, text, found = checker:check(d)
  t.ok(not pass and found[1].column == 5 and found[4].violations == 0, layout .. ": a wrong column: " .. text)
  local dropped = lab.tensor { dtype = "bf16", shape = args.a.shape }:copy(args.a)
  for row = 1, 60 do dropped:set(0, row, 72) end
  pass, text, found = checker:check(launch(args, with(product, { a = dropped })))
  t.ok(not pass and found[1].violations > 0 and found[3].violations > 0, layout .. ": a dropped k-row: " .. text)
  launch(args, product):set(0 / 0, 21, 24)
  pass, text, found = checker:check(d)
  t.ok(not pass and found[3].worst == math.huge and found[3].column == 24, layout .. ": a NaN: " .. text)
  t.ok(checker_of(args, { relative = 1e9, scaled = 1e9 }):check(launch(args, product)), "bounds of one's own")
  checker:close()
  t.error(function() checker:check(d) end, "closed", "a closed checker")
end
do
  local args = grouped.operands { sizes = { 3, 0 }, n = 0, k = 8 }
  local pass, text, found = checker_of(args):check(args.d)
  t.ok(pass and text == "no rows" and #found == 2, "no columns: " .. text)
  t.error(function() checker_of(args):check(args.d, { relativ = 1 }) end, "did you mean 'relative'", "a misspelt bound")
end
t.error(function() grouped.checker { offsets = 1 } end, "no field 'offsets'", "a misspelt argument")

do -- groups of the reduction dimension
  local offsets = lab.tensor_from("cpu", "i32", { 0, 30, 30, 70 })
  local a = lab.tensor { dtype = "bf16", shape = { 73, 12 } }:normal { seed = 1 }
  local b = lab.tensor { dtype = "bf16", shape = { 73, 16 } }:normal { seed = 2 }
  local start = lab.tensor { shape = { 3, 12, 16 } }:normal { seed = 3 }
  for beta = 0, 1 do
    local d = start:clone()
    local args = { op = "k_grouped_gemm", a = a, b = b, group_offsets = offsets, beta = beta }
    local checker = grouped.checker(with(args, { start = beta == 1 and start or nil, scaled = 2 ^ -20 }))
    launch(args, { variant = "cpu_ragged", d = d })
    local pass, text, found = checker:check(d)
    t.ok(pass and #found == 3, ("k_grouped_gemm, beta %d: %s"):format(beta, text))
    d:set(d:get(3, 7, 8) + 0.01, 3, 7, 8)
    pass, text, found = checker:check(d)
    t.ok(not pass and found[3].row == 24 + 7 and found[3].column == 8 and found[2].violations == 0,
      "a wrong element: " .. text)
    d:copy(start)
    d:set(d:get(2, 1, 1) + 1, 2, 1, 1)
    launch(args, { variant = "cpu_ragged", d = d })
    t.is(checker:check(d), beta == 0, "the empty group of what was added to")
  end
end
t.done()
