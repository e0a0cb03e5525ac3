-- Every variant of k_grouped_gemm that this build has on a GPU, over the shared cases and what else
-- can go wrong, held against smxx_plain (which tests/gpu/references.lua holds against the CPU).

local lab = require "tilelab"
local grouped = require "tilelab.grouped"
local t = dofile("tests/lua/tap.lua")
local device = lab.device "cuda"

local KNOWN = {
  sm90_ragged = { alignment = 1, betas = { 0, 1 }, tensor_maps = true },
  sm90_padded = { alignment = 128, betas = { 1 }, tensor_maps = true, counts = true },
  cublaslt_loop = { alignment = 1, betas = { 0, 1 }, counts = true },
}
local variants = {}
for _, kernel in ipairs(lab.kernels "k_grouped_gemm") do
  local known = KNOWN[kernel.variant]
  if known then
    known.name, known.tunables = kernel.variant, kernel.tunables
    variants[#variants + 1] = known
  end
end

local function with(args, more)
  local copy = {}
  for key, value in pairs(args) do copy[key] = value end
  for key, value in pairs(more) do copy[key] = value end
  return copy
end

local function gpu(dtype, ...) return lab.check(lab.tensor { device = device, dtype = dtype, shape = { ... } }) end
local function on_host(source) return lab.tensor { dtype = source.dtype, shape = source.shape }:copy(source) end
local function same(a, b) return lab.compare(a, b).mismatched_bits == 0 end

-- Group g of d.
local function group_of(d, g)
  local shape = d.shape
  return d:view((g - 1) * shape[2] * shape[3], { shape[2], shape[3] })
end

-- Arguments of a case {sizes, m, n, tail, seed}: d poisoned, a and b normal, zero where they pad a
-- group and poison past the last offset. Also the sizes as they lie.
local function operands(case, alignment)
  local sizes = grouped.padded(case.sizes, alignment)
  local offsets = grouped.offsets(sizes)
  local rows, seed = offsets[#offsets], case.seed or 0
  local args = { d = gpu("fp32", #sizes, case.m, case.n), group_offsets = lab.tensor_from(device, "i32", offsets) }
  for i, name in ipairs { "a", "b" } do
    local operand = gpu("bf16", rows + (case.tail or 3), name == "a" and case.m or case.n)
    grouped.fill(operand:rows(1, rows), 3 * seed + i)
    for g, size in ipairs(sizes) do
      if case.sizes[g] < size then operand:rows(offsets[g] + case.sizes[g] + 1, offsets[g + 1]):fill(0) end
    end
    args[name] = operand
  end
  return args, sizes
end

-- beta 1 starts from `start`, and beta 0 from poison.
local function plan_of(variant, args, sizes, beta)
  local counts = variant.counts and lab.tensor_from("cpu", "i32", sizes) or nil
  return lab.check(lab.plan(with(args, { op = "k_grouped_gemm", variant = variant.name, beta = beta,
    counts_host = counts })))
end
local function begin(args, beta, start)
  if beta == 1 then args.d:copy(start) else args.d:poison() end
end

-- |d - reference| <= 2^-20 max(1, sqrt(rows / 4096)) sum|a||b|, nothing relative to the sum itself.
local function checker_of(args, sizes, beta, start)
  return grouped.checker { op = "k_grouped_gemm", a = args.a, b = args.b, group_offsets = args.group_offsets,
    beta = beta, start = beta == 1 and start or nil, relative = 0,
    scaled = 2 ^ -20 * math.max(1, math.sqrt(math.max(0, table.unpack(sizes)) / 4096)) }
end

local function start_of(args, seed) return grouped.fill(gpu("fp32", table.unpack(args.d.shape)), seed) end

-- --- correctness -------------------------------------------------------------------------------

-- The case with each variant and beta; calls found(variant, beta, pass, text).
local function try(case, found)
  for _, alignment in ipairs { 1, 128 } do
    local args, sizes = operands(case, alignment)
    local start = start_of(args, case.seed or 0)
    for beta = 0, 1 do
      local checker = checker_of(args, sizes, beta, start)
      for _, variant in ipairs(variants) do
        local takes = variant.alignment == alignment and (beta == 1 or variant.betas[1] == 0)
        if takes then
          begin(args, beta, start)
          plan_of(variant, args, sizes, beta):launch()
          local pass, text = checker:check(args.d)
          for g, size in ipairs(sizes) do -- an empty group: zeros, or every bit as it was
            if size == 0 and pass and #sizes <= 16 then
              local wanted = beta == 1 and group_of(start, g) or gpu("fp32", case.m, case.n):fill(0)
              if not same(group_of(args.d, g), wanted) then
                pass, text = false, ("group %d is empty, and not %s"):format(g, beta == 1 and "untouched" or "zeros")
              end
            end
          end
          found(variant, beta, pass, text)
        end
      end
      checker:close()
    end
    for _, tensor in pairs(with(args, { start = start })) do tensor:close() end
  end
end

local swept = {} -- how many sizes of one group passed, by variant, beta and shape
local function sweep(case)
  try(case, function(variant, beta, pass, text)
    local key = ("%s, beta %d, m %d, n %d"):format(variant.name, beta, case.m, case.n)
    swept[key] = swept[key] or 0
    if pass then
      swept[key] = swept[key] + 1
    else
      t.ok(false, ("%s, %s: %s"):format(key, case.name, text))
    end
  end)
end
local function each(case)
  try(case, function(variant, beta, pass, text)
    t.ok(pass, ("%s, beta %d, %s: %s"):format(variant.name, beta, case.name, text))
  end)
end

for i, case in ipairs(grouped.cases()) do
  if case.layout == "nt" then
    local settings = { name = case.name:gsub("^nt, ", ""), sizes = case.sizes, m = case.k, n = case.n, seed = i,
      tail = case.tail }
    if #case.sizes == 1 and case.sizes[1] <= 300 then
      sweep(settings)
      sweep(with(settings, { m = 128, n = 320 })) -- whole panels of 64 columns
    else
      each(settings)
    end
  end
end
for key, count in pairs(swept) do t.is(count, 301, key .. ": 0 to 300 rows in one group") end

for i, case in ipairs {
  { name = "all kinds of tails", sizes = { 0, 1, 7, 8, 9, 63, 64, 65 }, m = 136, n = 264 },
  { name = "all kinds of tails, whole panels", sizes = { 65, 0, 64, 1, 63, 7, 9, 8 }, m = 192, n = 448 },
  { name = "two groups of 1408 x 1408", sizes = { 384, 256 }, m = 1408, n = 1408 },
  { name = "m 768", sizes = { 300, 0, 129 }, m = 768, n = 1408 },
  { name = "n 768", sizes = { 300, 0, 129 }, m = 1408, n = 768 },
  { name = "more tiles than blocks", sizes = { 1024, 0, 700, 1 }, m = 2560, n = 3072 },
  { name = "long sums", sizes = { 9000, 100 }, m = 136, n = 264 },
  { name = "8 x 8", sizes = { 5, 0, 300 }, m = 8, n = 8 },
  { name = "more groups than are ranked", sizes = grouped.sizes("zipf", 4000, 2100, 25), m = 16, n = 24 },
} do
  case.seed = 1000 + i
  each(case)
end

-- Operands without a row.
for _, variant in ipairs(variants) do
  for _, beta in ipairs(variant.betas) do
    local args = { a = gpu("bf16", 0, 64), b = gpu("bf16", 0, 72), d = gpu("fp32", 2, 64, 72):fill(3),
      group_offsets = lab.tensor_from(device, "i32", { 0, 0, 0 }) }
    plan_of(variant, args, { 0, 0 }, beta):launch()
    t.ok(same(args.d, gpu("fp32", 2, 64, 72):fill(beta * 3)), ("%s, beta %d: k = 0"):format(variant.name, beta))
  end
end

-- All choices of all tunables, each alone, on maps with and without panels as a dimension.
for _, shape in ipairs { { 1408, 1280 }, { 328, 1288 } } do
  local case = { sizes = { 128, 129, 384, 0, 65, 640, 1, 700, 193 }, m = shape[1], n = shape[2], seed = 3 }
  for _, variant in ipairs(variants) do
    local args, sizes = operands(case, variant.alignment)
    local start = start_of(args, 4)
    for _, beta in ipairs(variant.betas) do
      local checker = checker_of(args, sizes, beta, start)
      for _, tunable in ipairs(variant.tunables) do
        for _, choice in ipairs(tunable.choices) do
          begin(args, beta, start)
          plan_of(variant, args, sizes, beta):set_tunable(tunable.name, choice):launch()
          local pass, text = checker:check(args.d)
          t.ok(pass, ("%s, beta %d, %d x %d, %s %d: %s"):format(variant.name, beta, case.m, case.n, tunable.name,
            choice, text))
        end
      end
    end
  end
end

-- Adding with TMA or here is the same sum, rounded once.
do
  local case = { sizes = { 700, 0, 65, 1, 200 }, m = 200, n = 328, seed = 5 }
  local args, sizes = operands(case, 1)
  local start, results = start_of(args, 6), {}
  for i, below in ipairs { 1, 1 << 30, 256 } do
    begin(args, 1, start)
    plan_of(KNOWN.sm90_ragged, args, sizes, 1):set_tunable("load_below", below):launch()
    results[i] = on_host(args.d)
  end
  t.ok(same(results[1], results[2]) and same(results[1], results[3]), "all ways to add give the same bits")
end

-- NaN and infinities in the rows of every other group: the groups between keep every bit.
for _, shape in ipairs { { 192, 320 }, { 136, 264 } } do
  local case = { sizes = { 40, 70, 1, 129, 200, 7, 64, 65, 128, 300, 3, 0 }, m = shape[1], n = shape[2], seed = 7 }
  for _, variant in ipairs(variants) do
    for _, beta in ipairs(variant.betas) do
      local args, sizes = operands(case, variant.alignment)
      local start, offsets = start_of(args, 8), grouped.offsets(sizes)
      local plan = plan_of(variant, args, sizes, beta)
      begin(args, beta, start)
      plan:launch()
      local clean = on_host(args.d)
      for g = 1, #sizes, 2 do
        for _, operand in ipairs { args.a, args.b } do
          operand:rows(offsets[g] + 1, offsets[g + 1]):fill(g % 4 == 1 and 0 / 0 or -math.huge)
        end
      end
      begin(args, beta, start)
      plan:launch()
      local kept = true
      for g = 2, #sizes, 2 do kept = kept and same(group_of(args.d, g), group_of(clean, g)) end
      t.ok(kept, ("%s, beta %d, %d x %d: NaN in neighbours does not leak"):format(variant.name, beta, case.m,
        case.n))
    end
  end
end

-- --- what the check must find ------------------------------------------------------------------

do
  local case = { sizes = { 100, 0, 1024, 29 }, m = 264, n = 328, seed = 9 }
  local args, sizes = operands(case, 1)
  local checker = checker_of(args, sizes, 0)
  local function launch() plan_of(KNOWN.sm90_ragged, args, sizes, 0):launch() end
  launch()
  t.ok(checker:check(args.d), "nothing planted passes")
  local offset = grouped.offsets(sizes)[3]
  local row = args.a:rows(offset + 777, offset + 777)
  local kept = on_host(row)
  for _, factor in ipairs { 0, 2 } do
    local values = kept:totable()
    for i = 1, #values do values[i] = factor * values[i] end
    row:assign(values)
    launch()
    row:copy(kept)
    local pass, text, groups = checker:check(args.d)
    t.ok(not pass and groups[3].violations > case.m * case.n / 2 and groups[1].violations == 0
      and groups[4].violations == 0, ("a k-row %s: %s"):format(factor == 0 and "dropped" or "doubled", text))
  end
  launch()
  t.ok(checker:check(args.d), "put back, it passes again")
end

-- --- the same from run to run, and in graphs ---------------------------------------------------

for _, variant in ipairs(variants) do
  if variant.tensor_maps then
    local case = { sizes = grouped.sizes("zipf", 16000, 33, 9), m = 1408, n = 1280, seed = 11 }
    local args, sizes = operands(case, variant.alignment)
    local start = start_of(args, 12)
    for _, beta in ipairs(variant.betas) do
      local plan, equal, first = plan_of(variant, args, sizes, beta), true, nil
      for _ = 1, 10 do
        begin(args, beta, start)
        plan:launch()
        first = first or on_host(args.d)
        equal = equal and same(args.d, first)
      end
      t.ok(equal, ("%s, beta %d: ten launches give the same bits"):format(variant.name, beta))
    end
  end
end

-- One graph for all sizes that fit into its rows.
for _, shape in ipairs { { 192, 320 }, { 136, 264 } } do
  for beta = 0, 1 do
    local args = operands({ sizes = { 1024, 0, 0, 0, 0, 0 }, m = shape[1], n = shape[2], tail = 0, seed = 13 }, 1)
    local start = start_of(args, 14)
    local plan = plan_of(KNOWN.sm90_ragged, args, nil, beta)
    local graph = lab.check(device:graph(function() plan:launch() end))
    for i, sizes in ipairs { { 0, 0, 900, 0, 0, 0 }, { 1, 200, 3, 128, 129, 300 }, { 0, 0, 0, 0, 0, 0 },
      { 300, 0, 64, 0, 65, 1 } } do
      args.group_offsets:copy(lab.tensor_from("cpu", "i32", grouped.offsets(sizes)))
      begin(args, beta, start)
      graph:launch()
      device:synchronize()
      local pass, text = checker_of(args, sizes, beta, start):check(args.d)
      t.ok(pass, ("sm90_ragged, beta %d, %d x %d, replay %d of a graph: %s"):format(beta, shape[1], shape[2], i, text))
    end
  end
end

-- --- more than 2^31 elements -------------------------------------------------------------------

local function large(what, case)
  for beta = 0, 1 do
    local args, sizes = operands(case, 1)
    local start = beta == 1 and start_of(args, case.seed) or nil
    begin(args, beta, start)
    plan_of(KNOWN.sm90_ragged, args, sizes, beta):launch()
    local checker = checker_of(args, sizes, beta, start)
    local pass, text = checker:check(args.d)
    t.ok(pass, ("sm90_ragged, beta %d, more than 2^31 elements in %s: %s"):format(beta, what, text))
    checker:close()
    for _, tensor in pairs(with(args, { start = start })) do tensor:close() end
    collectgarbage()
  end
end

local free = device:memory().free_bytes
if free < 80e9 then
  t.skip(("%.0f GB of GPU memory are free, the large cases need 80"):format(free / 1e9), 4)
else
  local some = grouped.sizes("multinomial", 2000, 280, 15)
  some[7], some[280] = 0, 70
  large("d", { sizes = some, m = 2560, n = 3072, seed = 17 })
  large("a", { sizes = { 550000, 0, 1, 549999 }, m = 2048, n = 64, seed = 19 })
end

-- --- what is refused ---------------------------------------------------------------------------

for _, variant in ipairs(variants) do
  local who = "k_grouped_gemm/" .. variant.name
  local function refused(settings, words, more)
    local case = with({ sizes = { 128, 128 }, m = 64, n = 64 }, settings)
    local args = operands(case, variant.alignment)
    local counts = variant.counts and lab.tensor_from("cpu", "i32", case.sizes) or nil
    local legal, reason = lab.legal(with(with(args, { op = "k_grouped_gemm", variant = variant.name, beta = 1,
      counts_host = counts }), more or {}))
    t.ok(not legal and reason:find(who, 1, true) and reason:find(words, 1, true), ("%s: %s"):format(variant.name,
      tostring(reason)))
  end
  refused({ m = 20 }, "multiples of 8")
  refused({ n = 12 }, "multiples of 8")
  refused({}, "'a' ", { a = gpu("fp32", 259, 64), b = gpu("fp32", 259, 64) })
  refused({}, "does not give 'magnitude'", { magnitude = gpu("fp64", 2, 64, 64) })
  if variant.betas[1] == 1 then refused({}, "beta is 0, and it always adds", { beta = 0 }) end
  if variant.counts then
    local args = operands({ sizes = { 128, 128 }, m = 64, n = 64 }, 1)
    local legal, reason = lab.legal(with(args, { op = "k_grouped_gemm", variant = variant.name, beta = 1 }))
    t.ok(not legal and reason:find("'counts_host' [num_groups] is missing", 1, true), tostring(reason))
    for _, bad in ipairs { { { 128, -128 }, "counts_host%[1%] is %-128, below 0" },
      { { 256, 128 }, "counts_host%[0%] to %[1%] add up to 384, beyond the 259 rows" } } do
      args.d:fill(1)
      t.error(function() plan_of(variant, args, bad[1], 1):launch() end, bad[2], variant.name .. ": " .. bad[2])
      t.ok(same(args.d, gpu("fp32", 2, 64, 64):fill(1)), "nothing is written")
    end
  end
  if variant.alignment == 128 then
    local args = operands({ sizes = { 100, 128 }, m = 64, n = 64 }, 1)
    t.error(function() plan_of(variant, args, { 100, 128 }, 1):launch() end,
      "counts_host%[0%] is 100, no multiple of 128", variant.name .. ": counts that are not padded")
    args.d:fill(1)
    plan_of(variant, args, { 128, 0 }, 1):launch()
    t.error(function() device:synchronize() end, "group_offsets%[1%] is 100, no multiple of 128",
      variant.name .. ": offsets that are not padded")
    t.ok(same(args.d, gpu("fp32", 2, 64, 64):fill(1)), "nothing is written")
  end
  for _, name in ipairs { "a", "b", "d" } do
    local args, sizes = operands({ sizes = { 128, 128 }, m = 64, n = 64 }, 1)
    local shape = args[name].shape
    local odd = gpu(args[name].dtype, args[name].numel + 1)
    local moved = with(args, { [name] = odd:view(1, shape) })
    moved.d:fill(1)
    t.error(function() plan_of(variant, moved, sizes, 1):launch() end, "aligned",
      ("%s: '%s' at an odd address"):format(variant.name, name))
    device:synchronize()
    t.ok(same(moved.d, gpu("fp32", 2, 64, 64):fill(1)), "nothing is written")
  end
end

t.done()
