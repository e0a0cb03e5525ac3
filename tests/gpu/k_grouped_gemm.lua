-- Every variant of k_grouped_gemm that this build has on a GPU, over the shared cases and what else
-- can go wrong, held against smxx_plain (which tests/gpu/references.lua holds against the CPU).

local lab = require "tilelab"
local grouped = require "tilelab.grouped"
local t = dofile("tests/lua/tap.lua")
local on_gpu = dofile("tests/lua/gpu.lua")
local device, gpu, on_host, same, with = on_gpu.device, on_gpu.tensor, on_gpu.on_host, on_gpu.same, on_gpu.with

local KNOWN = {
  sm90_ragged = { alignment = 1, betas = { 0, 1 }, tensor_maps = true },
  sm90_cooperative = { alignment = 1, betas = { 0, 1 }, tensor_maps = true },
  sm90_padded = { alignment = 128, betas = { 1 }, tensor_maps = true, counts = true },
  cublaslt_loop = { alignment = 1, betas = { 0, 1 }, counts = true },
}
local variants = on_gpu.variants("k_grouped_gemm", KNOWN)

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

-- `counts`: the sizes, or a tensor of them that is read at each launch.
local function plan_of(variant, args, counts, beta)
  if type(counts) == "table" then counts = lab.tensor_from("cpu", "i32", counts) end
  return lab.check(lab.plan(with(args, { op = "k_grouped_gemm", variant = variant.name, beta = beta,
    counts_host = variant.counts and counts or nil })))
end

-- beta 1 starts from `start`, and beta 0 from poison.
local function begin(args, beta, start)
  if beta == 1 then args.d:copy(start) else args.d:poison() end
end

-- `start`: the seed of what beta 1 adds to.
local function checker_of(args, sizes, beta, start)
  return grouped.checker { op = "k_grouped_gemm", a = args.a, b = args.b, group_offsets = args.group_offsets,
    beta = beta, start = beta == 1 and start or nil, relative = 0,
    scaled = grouped.wgrad_scaled(math.max(0, table.unpack(sizes))) }
end

local function start_of(args, seed) return grouped.fill(gpu("fp32", table.unpack(args.d.shape)), seed) end

-- Variants that take groups of this alignment and add so.
local function takers(alignment, beta)
  local list = {}
  for _, variant in ipairs(variants) do
    if variant.alignment == alignment and (beta == 1 or variant.betas[1] == 0) then list[#list + 1] = variant end
  end
  return list
end

local function close_all(tensors)
  for _, tensor in pairs(tensors) do tensor:close() end
end

-- --- correctness -------------------------------------------------------------------------------

-- Whether group g, which is empty, holds zeros, or at beta 1 every bit of before; and what is wrong.
local function empty_is_right(args, g, beta, start)
  local shape = args.d.shape
  local wanted = beta == 1 and group_of(start, g) or gpu("fp32", shape[2], shape[3]):fill(0)
  if same(group_of(args.d, g), wanted) then return true end
  return false, ("group %d is empty, and not %s"):format(g, beta == 1 and "untouched" or "zeros")
end

-- The case with each variant and beta, on the same operands.
local function each(case)
  t.note(case.name)
  for _, alignment in ipairs { 1, 128 } do
    local args, sizes = operands(case, alignment)
    local start = start_of(args, case.seed)
    for beta = 0, 1 do
      local list = takers(alignment, beta)
      local checker = #list > 0 and checker_of(args, sizes, beta, case.seed)
      for _, variant in ipairs(list) do
        begin(args, beta, start)
        plan_of(variant, args, sizes, beta):launch()
        local pass, text = checker:check(args.d)
        for g = 1, pass and #sizes <= 16 and #sizes or 0 do
          if pass and sizes[g] == 0 then
            local right, reason = empty_is_right(args, g, beta, start)
            pass, text = right, reason or text
          end
        end
        t.ok(pass, ("%s, beta %d, %s: %s"):format(variant.name, beta, case.name, text))
      end
      if checker then checker:close() end
    end
    close_all(with(args, { start = start }))
  end
end

-- 0 to MOST rows in one group, on the same memory from the largest down: a row that leaves the group
-- becomes zeros where it pads it, and poison where it does not.
local MOST = 300
local function sweep(m, n)
  t.note(("0 to %d rows in one group, %d x %d"):format(MOST, m, n))
  for _, alignment in ipairs { 1, 128 } do
    local args, sizes = operands({ sizes = { MOST }, m = m, n = n, seed = n }, alignment)
    local start, counts = start_of(args, n), lab.tensor_from("cpu", "i32", sizes)
    for beta = 0, 1 do
      local entries, rows = {}, args.a.shape[1]
      for i, variant in ipairs(takers(alignment, beta)) do
        entries[i] = { name = ("%s, beta %d, %d x %d"):format(variant.name, beta, m, n), passed = 0,
          plan = plan_of(variant, args, counts, beta) }
      end
      for i, name in ipairs { "a", "b" } do grouped.fill(args[name]:rows(1, MOST), i) end
      local checker = #entries > 0 and checker_of(args, sizes, beta, n)
      for size = MOST, #entries > 0 and 0 or MOST + 1, -1 do
        local padded = grouped.padded({ size }, alignment)[1]
        for _, operand in ipairs { args.a, args.b } do
          if size < padded then operand:rows(size + 1, padded):fill(0) end
          operand:rows(padded + 1, rows):poison()
        end
        args.group_offsets:copy(lab.tensor_from("cpu", "i32", { 0, padded }))
        counts:assign { padded }
        checker:refresh(beta == 1 and n or nil)
        for _, entry in ipairs(entries) do
          begin(args, beta, start)
          entry.plan:launch()
          local pass, text = checker:check(args.d)
          if pass and size == 0 then pass, text = empty_is_right(args, 1, beta, start) end
          entry.passed = entry.passed + (pass and 1 or 0)
          if not pass then t.ok(false, ("%s, %d rows: %s"):format(entry.name, size, text)) end
        end
      end
      for _, entry in ipairs(entries) do
        t.is(entry.passed, MOST + 1, ("%s: 0 to %d rows in one group"):format(entry.name, MOST))
        entry.plan:close()
      end
      if checker then checker:close() end
    end
    close_all(with(args, { start = start }))
  end
end

sweep(72, 264)
sweep(128, 320) -- whole panels of 64 columns

for i, case in ipairs(grouped.cases()) do
  if case.layout == "nt" and not (#case.sizes == 1 and case.sizes[1] <= MOST) then
    each { name = case.name:gsub("^nt, ", ""), sizes = case.sizes, m = case.k, n = case.n, seed = i,
      tail = case.tail }
  end
end

for i, case in ipairs {
  { name = "all kinds of tails", sizes = { 0, 1, 7, 8, 9, 63, 64, 65 }, m = 136, n = 264 },
  { name = "all kinds of tails, whole panels", sizes = { 65, 0, 64, 1, 63, 7, 9, 8 }, m = 192, n = 448 },
  { name = "two groups of 1408 x 1408", sizes = { 384, 256 }, m = 1408, n = 1408 },
  { name = "m 768", sizes = { 300, 0, 129 }, m = 768, n = 1408 },
  { name = "n 768", sizes = { 300, 0, 129 }, m = 1408, n = 768 },
  { name = "more tiles than blocks", sizes = { 1024, 0, 700, 1 }, m = 1280, n = 1536 },
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
for _, shape in ipairs { { 320, 832 }, { 328, 264 } } do
  local case = { sizes = { 128, 129, 384, 0, 65, 640, 1, 700, 193 }, m = shape[1], n = shape[2], seed = 3 }
  t.note(("tunables, %d x %d"):format(shape[1], shape[2]))
  for _, alignment in ipairs { 1, 128 } do
    local args, sizes = operands(case, alignment)
    local start = start_of(args, 4)
    for beta = 0, 1 do
      local checker = checker_of(args, sizes, beta, 4)
      for _, variant in ipairs(takers(alignment, beta)) do
        local plan = plan_of(variant, args, sizes, beta)
        for _, tunable in ipairs(variant.tunables) do
          for _, choice in ipairs(beta == 0 and tunable.name == "load_below" and {} or tunable.choices) do
            begin(args, beta, start)
            plan:set_tunable(tunable.name, choice):launch()
            local pass, text = checker:check(args.d)
            t.ok(pass, ("%s, beta %d, %d x %d, %s %d: %s"):format(variant.name, beta, case.m, case.n, tunable.name,
              choice, text))
          end
          plan:set_tunable(tunable.name, tunable.default)
        end
      end
      checker:close()
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
    plan_of(KNOWN.sm90_cooperative, args, sizes, 1):set_tunable("load_below", below):launch()
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
    local case = { sizes = grouped.sizes("zipf", 16000, 33, 9), m = 384, n = 768, seed = 11 }
    local args, sizes = operands(case, variant.alignment)
    local start = start_of(args, 12)
    for _, beta in ipairs(variant.betas) do
      local plan, equal, first = plan_of(variant, args, sizes, beta), true, nil
      t.note(variant.name .. ": the same launch again")
      for _ = 1, 5 do
        begin(args, beta, start)
        plan:launch()
        first = first or on_host(args.d)
        equal = equal and same(args.d, first)
      end
      t.ok(equal, ("%s, beta %d: five launches give the same bits"):format(variant.name, beta))
    end
  end
end

-- One graph for all sizes that fit into its rows.
for _, shape in ipairs { { 192, 320 }, { 136, 264 } } do
  for beta = 0, 1 do
    local args = operands({ sizes = { 1024, 0, 0, 0, 0, 0 }, m = shape[1], n = shape[2], tail = 0, seed = 13 }, 1)
    local start = start_of(args, 14)
    local checker = checker_of(args, { 1024 }, beta, 14)
    local plan = plan_of(KNOWN.sm90_ragged, args, nil, beta)
    t.note(("a graph, beta %d, %d x %d"):format(beta, shape[1], shape[2]))
    local graph = lab.check(device:graph(function() plan:launch() end))
    for i, sizes in ipairs { { 0, 0, 900, 0, 0, 0 }, { 1, 200, 3, 128, 129, 300 }, { 0, 0, 0, 0, 0, 0 },
      { 300, 0, 64, 0, 65, 1 } } do
      args.group_offsets:copy(lab.tensor_from("cpu", "i32", grouped.offsets(sizes)))
      begin(args, beta, start)
      graph:launch()
      device:synchronize()
      checker:refresh(beta == 1 and 14 or nil)
      local pass, text = checker:check(args.d)
      t.ok(pass, ("sm90_ragged, beta %d, %d x %d, replay %d of a graph: %s"):format(beta, shape[1], shape[2], i, text))
    end
  end
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

-- --- more than 2^31 elements -------------------------------------------------------------------

-- The reference takes twice as much memory for each of its parts, so nothing else is kept.
local function large(what, case)
  t.note(("more than 2^31 elements in %s"):format(what))
  local args, sizes = operands(case, 1)
  for beta = 0, 1 do
    if beta == 1 then grouped.fill(args.d, case.seed) else args.d:poison() end
    plan_of(KNOWN.sm90_ragged, args, sizes, beta):launch()
    local checker = checker_of(args, sizes, beta, case.seed)
    local pass, text = checker:check(args.d)
    t.ok(pass, ("sm90_ragged, beta %d, more than 2^31 elements in %s: %s"):format(beta, what, text))
    checker:close()
  end
  close_all(args)
  collectgarbage()
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

t.done()
