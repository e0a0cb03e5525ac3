-- Every variant of m_grouped_gemm that this build has on a GPU, over the shared cases and what else
-- can go wrong, held against smxx_plain (which tests/gpu/references.lua holds against the CPU).

local lab = require "tilelab"
local grouped = require "tilelab.grouped"
local t = dofile("tests/lua/tap.lua")
local on_gpu = dofile("tests/lua/gpu.lua")
local device, on_host, same, with = on_gpu.device, on_gpu.on_host, on_gpu.same, on_gpu.with

-- What a variant's arguments need beyond the ragged ones, and how much larger its sums' errors are.
local KNOWN = {
  sm90_ragged = { alignment = 1, tensor_maps = true, replays = true },
  sm90_padded = { alignment = 128, tensor_maps = true, replays = true },
  cublaslt_loop = { alignment = 1, counts = true, slack = 2 },
}
local variants = on_gpu.variants("m_grouped_gemm", KNOWN)

local function sum(sizes)
  local total = 0
  for _, size in ipairs(sizes) do total = total + size end
  return total
end

local function operands(case, alignment)
  return grouped.operands(with(case, { device = device, alignment = alignment }))
end

local function checker_of(args)
  return grouped.checker { a = args.a, b = args.b, group_offsets = args.group_offsets, layout = args.layout }
end

local function plan_of(variant, args, case)
  local counts = variant.counts and lab.tensor_from("cpu", "i32", case.sizes) or nil
  return lab.check(lab.plan(with(args, { op = "m_grouped_gemm", variant = variant.name, counts_host = counts })))
end

local function check(variant, checker, d)
  return checker:check(d, { scaled = (variant.slack or 1) * checker.scaled })
end

-- --- correctness -------------------------------------------------------------------------------

-- Whether rows past the last offset still hold poison: every bit, since a of those rows is NaN.
local function untouched(d, rows)
  local tail = d:rows(rows + 1, d.shape[1])
  return same(tail, lab.tensor { dtype = d.dtype, shape = tail.shape })
end

-- The case with each variant; calls found(variant, pass, text).
local function try(case, found)
  for _, alignment in ipairs { 1, 128 } do
    local args, rows, checker
    for _, variant in ipairs(variants) do
      if variant.alignment == alignment then
        if not args then
          args, rows = operands(case, alignment)
          checker = checker_of(args)
        end
        args.d:poison()
        plan_of(variant, args, case):launch()
        local pass, text = check(variant, checker, args.d)
        if not untouched(args.d, rows) then pass, text = false, "wrote rows past the last offset; " .. text end
        found(variant, pass, text)
      end
    end
  end
end

local swept = {} -- how many sizes of one group passed, by variant and layout
for i, case in ipairs(grouped.cases()) do
  case.seed = i
  try(case, function(variant, pass, text)
    local key = variant.name .. ", " .. case.layout
    if #case.sizes == 1 and case.sizes[1] <= 300 and pass then
      swept[key] = (swept[key] or 0) + 1
    else
      t.ok(pass, ("%s, %s: %s"):format(variant.name, case.name, text))
    end
  end)
end
for _, variant in ipairs(variants) do
  for _, layout in ipairs { "nt", "nn" } do
    local key = variant.name .. ", " .. layout
    t.is(swept[key], 301, key .. ": 0 to 300 rows in one group")
  end
end

-- All choices of all tunables, each alone.
local TUNED = { sizes = { 128, 129, 384, 0, 65, 640, 1, 700, 193 }, n = 1288, k = 264, tail = 3, seed = 3 }
for _, variant in ipairs(variants) do
  for _, layout in ipairs { "nt", "nn" } do
    local args, rows = operands(with(TUNED, { layout = layout }), variant.alignment)
    local checker = checker_of(args)
    for _, tunable in ipairs(variant.tunables) do
      for _, choice in ipairs(tunable.choices) do
        args.d:poison()
        plan_of(variant, args, TUNED):set_tunable(tunable.name, choice):launch()
        local pass, text = check(variant, checker, args.d)
        t.ok(pass and untouched(args.d, rows), ("%s, %s, %s %d: %s"):format(variant.name, layout, tunable.name,
          choice, text))
      end
    end
  end
end

-- NaN and infinities in rows and weights of every other group: the groups between keep every bit.
local LEAKY = { sizes = { 40, 70, 1, 129, 200, 7, 64, 65, 128, 300 }, n = 264, k = 136, tail = 3, seed = 5 }
for _, variant in ipairs(variants) do
  for _, layout in ipairs { "nt", "nn" } do
    local args = operands(with(LEAKY, { layout = layout }), variant.alignment)
    local offsets, plan = on_host(args.group_offsets):totable(), plan_of(variant, args, LEAKY)
    plan:launch()
    local clean = on_host(args.d)
    for g = 1, #LEAKY.sizes, 2 do
      args.a:rows(offsets[g] + 1, offsets[g + 1]):fill(g % 4 == 1 and 0 / 0 or -math.huge)
      args.b:rows(g, g):fill(0 / 0)
    end
    args.d:poison()
    plan:launch()
    local kept = true
    for g = 2, #LEAKY.sizes, 2 do
      kept = kept and same(args.d:rows(offsets[g] + 1, offsets[g + 1]), clean:rows(offsets[g] + 1, offsets[g + 1]))
    end
    t.ok(kept, ("%s, %s: NaN in neighbours does not leak"):format(variant.name, layout))
  end
end

-- --- what the check must find ------------------------------------------------------------------

do
  local case = { sizes = { 100, 0, 300, 29 }, n = 264, k = 3072, layout = "nn", seed = 7 }
  local args = operands(case, 1)
  local checker = checker_of(args)
  local function launch(more) plan_of(KNOWN.sm90_ragged, with(args, more or {}), case):launch() end
  -- What row `at` of group g's weights [k, n] becomes.
  local function weights(g, at) return args.b:view(((g - 1) * case.k + at - 1) * case.n, { case.n }) end

  launch()
  t.ok(checker:check(args.d), "nothing planted passes")
  args.d:rows(250, 250):copy(args.d:rows(251, 251))
  local pass, text, groups = checker:check(args.d)
  t.ok(not pass and groups[3].row == 250 and groups[1].violations == 0 and groups[4].violations == 0,
    "a planted wrong row: " .. text)

  local wrong = on_host(args.d)
  launch()
  local right = on_host(args.d)
  wrong:copy(right)
  for row = 1, 100 do wrong:set(right:get(row, 200), row, 201) end
  pass, text, groups = checker:check(args.d:copy(wrong))
  t.ok(not pass and groups[1].column == 201 and groups[1].violations > 90 and groups[3].violations == 0,
    "a planted wrong column: " .. text)

  local kept = weights(4, 1777):clone()
  weights(4, 1777):fill(0)
  launch()
  weights(4, 1777):copy(kept)
  pass, text, groups = checker:check(args.d)
  t.ok(not pass and groups[4].violations > 29 * 264 / 4 and groups[3].violations == 0,
    "a dropped k-row: " .. text)
  launch()
  t.ok(checker:check(args.d), "put back, it passes again")
end

-- --- the same from run to run, and in graphs ---------------------------------------------------

-- Groups of two token tiles share weights between the blocks of a pair, others tokens: here by turns, so
-- that loads change between what one block has read and what both have.
local BY_TURNS = {}
for i = 1, 48 do BY_TURNS[i] = i % 2 == 0 and 300 or 450 end
for _, variant in ipairs(variants) do
  for _, layout in ipairs { "nt", "nn" } do
    for name, case in pairs { zipf = { sizes = grouped.sizes("zipf", 6000, 33, 9), n = 1288, k = 1408 },
      ["by turns"] = { sizes = BY_TURNS, n = 1288, k = 768 } } do
      local args = operands(with(case, { layout = layout, seed = 11 }), variant.alignment)
      local plan, equal, first = plan_of(variant, args, case), true, nil
      for _ = 1, 10 do
        args.d:poison()
        plan:launch()
        first = first or on_host(args.d)
        equal = equal and same(args.d, first)
      end
      t.ok(equal, ("%s, %s, %s: ten launches give the same bits"):format(variant.name, layout, name))
    end
  end
end

-- One graph for all sizes that fit into its rows.
local REPLAYED = { { 0, 0, 900, 0, 0, 0 }, { 1, 200, 3, 128, 129, 300 }, { 0, 0, 0, 0, 0, 0 },
  { 300, 0, 64, 0, 65, 1 } }
for _, variant in ipairs(variants) do
  if variant.replays then
    local shape = { sizes = { 1024, 0, 0, 0, 0, 0 }, n = 264, k = 136, layout = "nt", tail = 256, seed = 13 }
    local args = operands(shape, variant.alignment)
    args.a:normal { seed = 14 }
    local plan = plan_of(variant, args, shape)
    local graph = lab.check(device:graph(function() plan:launch() end))
    for i, sizes in ipairs(REPLAYED) do
      local now, rows = grouped.operands { sizes = sizes, n = 8, k = 8, alignment = variant.alignment,
        tail = 1280 - sum(grouped.padded(sizes, variant.alignment)) }
      args.group_offsets:copy(now.group_offsets)
      if args.row_experts then args.row_experts:copy(now.row_experts) end
      args.d:poison()
      graph:launch()
      local pass, text = check(variant, checker_of(args), args.d)
      t.ok(pass and untouched(args.d, rows), ("%s, replay %d of a graph: %s"):format(variant.name, i, text))
    end
  end
end

-- --- more than 2^31 elements -------------------------------------------------------------------

-- The last `count` rows of the reference, recomputed on the CPU.
local function reference_is_right(args, checker, rows, group)
  local count = math.min(rows, 8)
  local shape = args.b.shape
  local d = lab.tensor { dtype = "fp64", shape = { count, args.d.shape[2] } }
  local b = on_host(args.b:rows(group, group))
  lab.check(lab.plan { op = "gemm", variant = "cpu_plain", layout = args.layout, d = d,
    a = on_host(args.a:rows(rows - count + 1, rows)), b = b:view(0, { shape[2], shape[3] }) }):launch()
  return same(checker.reference:rows(rows - count + 1, rows), d)
end

local function large(what, case)
  for _, variant in ipairs(variants) do
    local args, rows = operands(case, variant.alignment)
    local checker = checker_of(args)
    plan_of(variant, args, case):launch()
    local pass, text = check(variant, checker, args.d)
    t.ok(pass and untouched(args.d, rows), ("%s, %s, more than 2^31 elements in %s: %s"):format(variant.name,
      case.layout, what, text))
    if variant == variants[1] then
      t.ok(reference_is_right(args, checker, rows, #case.sizes), "there the reference is the CPU's, at the end")
    end
    checker:close()
    for _, tensor in ipairs { args.a, args.b, args.d } do tensor:close() end
    collectgarbage()
  end
end

local free = device:memory().free_bytes
if free < 80e9 then
  t.skip(("%.0f GB of GPU memory are free, the large cases need 80"):format(free / 1e9), 4)
else
  local some = grouped.sizes("multinomial", 900, 299, 15)
  some[300] = 20 -- rows that the CPU can check
  for _, layout in ipairs { "nt", "nn" } do
    large("w", { sizes = some, n = 2560, k = 3072, layout = layout, tail = 3, seed = 17 })
  end
  large("x", { sizes = { 550000, 0, 1, 549999 }, n = 8, k = 2048, layout = "nt", tail = 3, seed = 19 })
  large("d", { sizes = { 1, 500000, 0, 551000 }, n = 2056, k = 8, layout = "nn", tail = 3, seed = 21 })
end

-- --- what is refused ---------------------------------------------------------------------------

for _, variant in ipairs(variants) do
  if variant.tensor_maps then
    local who = "m_grouped_gemm/" .. variant.name
    local function refused(settings, words, more)
      local args = grouped.operands(with({ device = device, sizes = { 128, 128 }, n = 64, k = 64,
        alignment = variant.alignment }, settings))
      local legal, reason = lab.legal(with(args, with({ op = "m_grouped_gemm", variant = variant.name }, more or {})))
      t.ok(not legal and reason:find(who, 1, true) and reason:find(words, 1, true), ("%s: %s"):format(variant.name,
        tostring(reason)))
    end
    refused({ n = 20 }, "multiples of 8")
    refused({ k = 12 }, "multiples of 8")
    refused({ dtype = "fp32" }, "'a' is fp32; it takes bf16")
    refused({}, "does not give 'magnitude'",
      { magnitude = lab.tensor { device = device, dtype = "fp64", shape = { 256, 64 } } })

    for _, name in ipairs { "a", "b", "d" } do
      local case = { sizes = { 128, 128 }, n = 64, k = 64 }
      local args = operands(case, variant.alignment)
      local odd = lab.tensor { device = device, dtype = "bf16", shape = { args[name].numel + 1 } }
      local moved = with(args, { [name] = odd:view(1, args[name].shape) })
      t.error(function() plan_of(variant, moved, case):launch() end, "aligned",
        ("%s: '%s' at an odd address"):format(variant.name, name))
      device:synchronize()
      t.ok(untouched(moved.d, 0), "nothing is written")
    end
  end
end

t.done()
