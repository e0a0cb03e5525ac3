-- What tests and benchmarks of the grouped GEMMs share: group sizes, shapes, correctness cases,
-- operands, and the check of a result against its reference, on any device.
--
--   grouped.sizes(distribution, rows, experts, seed[, exponent]) -> list
--   grouped.offsets(sizes) -> list that begins with 0
--   grouped.padded(sizes, alignment) -> list, each rounded up to a multiple
--   grouped.cases() -> list of {name, sizes, n, k, layout, tail}
--   grouped.operands{sizes =, n =, k =, ...} -> arguments of m_grouped_gemm, their last offset
--   grouped.fill(tensor, seed) -> tensor, of normal values
--   grouped.checker{a =, b =, group_offsets =, ...} -> checker
--   checker:check(d[, bound]) -> pass, text, groups
--   checker:refresh([start])                                 checker:close()
--   grouped.wgrad_scaled(longest group) -> bound of an fp32 weight gradient, of sum |a||b|
--   grouped.shapes, grouped.distributions, grouped.ALIGNMENT

local lab = require "tilelab"
local fields = require "tilelab.fields"

local grouped = {}

local ZIPF_EXPONENT = 0.8
local STREAM = 0x67726f757073 -- "groups": apart from the streams of operands
-- Elements after which drawn operands repeat: 16-byte aligned, and no multiple of rows of any length
-- that is used here, so that no two rows of a group are the same.
local PERIOD = (1 << 24) - 72

-- The products of an expert layer, d_model 3072 and expert FFN 1280: w13 is gate and up in one.
-- m_grouped_gemm d [rows, n] for fwd and dgrad, k_grouped_gemm d [experts, m, n] for wgrad.
grouped.shapes = {
  fwd_w13 = { layout = "nt", n = 2560, k = 3072 },
  fwd_w2 = { layout = "nt", n = 3072, k = 1280 },
  dgrad_w2 = { layout = "nn", n = 1280, k = 3072 },
  dgrad_w13 = { layout = "nn", n = 3072, k = 2560 },
  wgrad_w13 = { m = 2560, n = 3072 },
  wgrad_w2 = { m = 3072, n = 1280 },
}

grouped.distributions = { "uniform", "multinomial", "zipf" }

grouped.ALIGNMENT = 128 -- of groups in the padded layout, in rows; the default of pad_index

-- --- sizes ---------------------------------------------------------------------------------------

local function uniform(rows, experts)
  local sizes = {}
  for e = 1, experts do sizes[e] = rows // experts + (e <= rows % experts and 1 or 0) end
  return sizes
end

-- Draws an expert for each row, with probability proportional to its weight.
local function draw(random, rows, weights)
  local cumulative, sizes, total = {}, {}, 0
  for e, weight in ipairs(weights) do
    total = total + weight
    cumulative[e], sizes[e] = total, 0
  end
  for _ = 1, rows do
    local value, low, high = random:uniform() * total, 1, #weights
    while low < high do
      local middle = (low + high) // 2
      if value < cumulative[middle] then high = middle else low = middle + 1 end
    end
    sizes[low] = sizes[low] + 1
  end
  return sizes
end

-- Rows of each expert: "uniform", equal but for a remainder; "multinomial", each row to any expert;
-- "zipf", with probability proportional to rank^-exponent (0.8), ranks in random order.
function grouped.sizes(distribution, rows, experts, seed, exponent)
  fields.check_integer("rows of grouped.sizes", rows, 0, 2)
  fields.check_integer("experts of grouped.sizes", experts, 1, 2)
  if exponent and not (exponent >= 0 and exponent < math.huge) then
    error(("exponent of grouped.sizes must be a number from 0 on, not %s"):format(exponent), 2)
  end
  local random, weights = lab.random(seed or 0, STREAM), {}
  if distribution == "uniform" then return uniform(rows, experts) end
  if distribution ~= "multinomial" and distribution ~= "zipf" then
    error(("unknown distribution '%s'; there are: %s"):format(tostring(distribution),
      table.concat(grouped.distributions, " ")), 2)
  end
  for e = 1, experts do weights[e] = distribution == "zipf" and e ^ -(exponent or ZIPF_EXPONENT) or 1 end
  return draw(random, rows, random:shuffle(weights))
end

function grouped.offsets(sizes)
  local offsets = { 0 }
  for e, size in ipairs(sizes) do offsets[e + 1] = offsets[e] + size end
  return offsets
end

function grouped.padded(sizes, alignment)
  local padded = {}
  for e, size in ipairs(sizes) do padded[e] = (size + alignment - 1) // alignment * alignment end
  return padded
end

-- --- cases ---------------------------------------------------------------------------------------

-- {name, sizes[, n, k]}; n and k are those of a narrow problem by default, both no tile's multiple.
local function case_list()
  local list = {}
  for rows = 0, 300 do list[#list + 1] = { ("%d rows in one group"):format(rows), { rows } } end
  local function add(...) list[#list + 1] = { ... } end
  add("the first group empty", { 0, 70, 130 })
  add("a middle group empty", { 70, 0, 130 })
  add("the last group empty", { 70, 130, 0 })
  add("all groups empty", { 0, 0, 0 })
  add("runs of empty groups", { 0, 0, 5, 0, 0, 0, 129, 0 })
  add("one expert takes all", { 0, 0, 0, 0, 0, 517, 0, 0 })
  add("one group of many tiles", { 1500 }, 520, 136)
  add("odd tile counts", { 128, 129, 384, 65, 640, 1, 700, 193 }, 1288, 136)
  add("3 groups", { 100, 300, 29 })
  add("33 groups, multinomial", grouped.sizes("multinomial", 1020, 33, 5))
  add("33 groups, zipf", grouped.sizes("zipf", 4000, 33, 5))
  add("128 groups, zipf", grouped.sizes("zipf", 8000, 128, 6))
  add("1025 groups", grouped.sizes("multinomial", 3000, 1025, 7))
  for _, n in ipairs { 8, 768, 1408 } do
    for _, k in ipairs { 8, 72 } do
      add(("n %d, k %d"):format(n, k), { 5, 0, 70, 130, 257 }, n, k)
    end
  end
  add("wide and deep", { 33, 257, 100 }, 768, 1408)
  add("long sums", { 90, 0, 201 }, 136, 8192)
  return list
end

-- What every variant is tested with, in both layouts: three rows lie past the last offset.
function grouped.cases()
  local cases = {}
  for _, layout in ipairs { "nt", "nn" } do
    for _, case in ipairs(case_list()) do
      cases[#cases + 1] = { name = ("%s, %s"):format(layout, case[1]), sizes = case[2],
        n = case[3] or 264, k = case[4] or 72, layout = layout, tail = 3 }
    end
  end
  return cases
end

-- --- operands ------------------------------------------------------------------------------------

-- Normal values that repeat after PERIOD elements, since each is drawn on the host.
function grouped.fill(tensor, seed)
  local numel = tensor.numel
  local flat = tensor:view(0, { numel })
  local filled = math.min(numel, PERIOD)
  flat:view(0, { filled }):normal { seed = seed }
  while filled < numel do
    local count = math.min(filled, numel - filled)
    flat:view(filled, { count }):copy(flat:view(0, { count }))
    filled = filled + count
  end
  return tensor
end

-- The group of each row, from 0, and -1 for the rows that pad a group and those past the last.
local function row_experts(sizes, offsets, rows)
  local experts = {}
  for row = 1, rows do experts[row] = -1 end
  for e, size in ipairs(sizes) do
    for row = offsets[e] + 1, offsets[e] + size do experts[row] = e - 1 end
  end
  return experts
end

-- Arguments of m_grouped_gemm: a, b, d, group_offsets, layout; d poisoned, as are the rows of a past
-- the last offset. `alignment` other than 1 pads the groups, with normal values too, and adds
-- row_experts. `rows` is the last offset.
--   {sizes =, n =, k =, device = "cpu", layout = "nt", tail = 0, alignment = 1, seed = 0,
--    dtype = "bf16"}
function grouped.operands(settings)
  fields.check("grouped.operands", settings, { "sizes", "n", "k", "device", "layout", "tail", "alignment",
    "seed", "dtype", "name" }, 2)
  local device, n, k, seed = settings.device or "cpu", settings.n, settings.k, settings.seed or 0
  local alignment, layout = settings.alignment or 1, settings.layout or "nt"
  local offsets = grouped.offsets(grouped.padded(settings.sizes, alignment))
  local groups, rows = #settings.sizes, offsets[#offsets]
  local m = rows + (settings.tail or 0)
  local function tensor(...)
    return lab.check(lab.tensor { device = device, dtype = settings.dtype or "bf16", shape = { ... } })
  end
  local args = { layout = layout, a = tensor(m, k), d = tensor(m, n),
    b = layout == "nt" and tensor(groups, n, k) or tensor(groups, k, n),
    group_offsets = lab.check(lab.tensor_from(device, "i32", offsets)) }
  grouped.fill(args.a:rows(1, rows), 2 * seed)
  grouped.fill(args.b, 2 * seed + 1)
  if alignment > 1 then
    args.row_experts = lab.check(lab.tensor_from(device, "i32", row_experts(settings.sizes, offsets, m), { m }))
  end
  return args, rows
end

-- --- checks --------------------------------------------------------------------------------------

local Checker = {}
Checker.__index = Checker

-- One rounding of the result; fp64 results are checked for what a sum of doubles loses.
local RELATIVE = { bf16 = 2 ^ -8, fp32 = 2 ^ -22, fp64 = 2 ^ -50 }
-- Of sum |a||b|. Tensor cores truncate, so the error of a sum grows with its length.
local function scaled(length) return 2 ^ -22 * math.max(1, length / 4096) end
-- The same for weight gradients, whose bound has no part relative to the sum itself.
function grouped.wgrad_scaled(longest) return 2 ^ -20 * math.max(1, math.sqrt(longest / 4096)) end

local function totable(tensor) return lab.check(lab.tensor { dtype = tensor.dtype, shape = tensor.shape })
  :copy(tensor):totable() end

-- What a k-grouped output is cut into: num_groups times m rows of it.
local function equal_groups(device, groups, m)
  local sizes = {}
  for g = 1, groups do sizes[g] = m end
  return lab.check(lab.tensor_from(device, "i32", grouped.offsets(sizes)))
end

local function longest(offsets)
  local most = 0
  for g = 1, #offsets - 1 do most = math.max(most, offsets[g + 1] - offsets[g]) end
  return most
end

-- Shape of the output, its groups of rows, and the length of a sum, the longest where they differ.
local function output_of(op, settings)
  local a, b, offsets = settings.a.shape, settings.b.shape, settings.group_offsets
  if op == "m_grouped_gemm" then return { a[1], settings.layout == "nn" and b[3] or b[2] }, offsets, a[2] end
  local groups = offsets.shape[1] - 1
  return { groups, a[2], b[2] }, equal_groups(offsets.device, groups, a[2]), longest(totable(offsets))
end

-- Computes the reference of a problem, which stays good as long as its operands do:
--   {a =, b =, group_offsets =, op = "m_grouped_gemm" or "k_grouped_gemm", layout =, beta =,
--    start = d before it is added to (beta 1; zeros where it is absent), or the seed that grouped.fill
--    filled it from, which is much faster for a large one on a GPU, relative =, scaled =}
-- An element agrees when |d - reference| <= relative |reference| + scaled sum |a||b|; by default
-- 2^-8 (bf16 results) and 2^-22 max(1, k / 4096). The reference is smxx_plain's, on the CPU
-- cpu_ragged's, both with sums in fp64.
function grouped.checker(settings)
  fields.check("grouped.checker", settings, { "a", "b", "group_offsets", "op", "layout", "beta", "start",
    "relative", "scaled" }, 2)
  local self = setmetatable({ op = settings.op or "m_grouped_gemm", relative = settings.relative }, Checker)
  local device = settings.a.device
  local shape, groups, length = output_of(self.op, settings)
  local function fp64() return lab.check(lab.tensor { device = device, dtype = "fp64", shape = shape }) end
  self.on_cpu, self.groups = device.arch == 0, groups
  self.scaled = settings.scaled or scaled(length)
  self.reference, self.magnitude, self.beta = fp64(), fp64(), settings.beta
  self.plan = lab.check(lab.plan { op = self.op, variant = self.on_cpu and "cpu_ragged" or "smxx_plain",
    a = settings.a, b = settings.b, d = self.reference, magnitude = self.magnitude,
    group_offsets = settings.group_offsets, layout = settings.layout, beta = settings.beta })
  self:refresh(settings.start)
  return self
end

-- The reference again, after operands or offsets have changed, or from another start; shapes and
-- bounds stay.
function Checker:refresh(start)
  if math.type(start) then
    grouped.fill(self.reference, start)
  elseif start then
    self.reference:convert(start)
  elseif self.beta == 1 then
    self.reference:fill(0)
  end
  self.plan:launch()
end

-- All but the innermost dimension in one.
local function flat(tensor)
  local shape, rows = tensor.shape, 1
  for i = 1, #shape - 1 do rows = rows * shape[i] end
  return tensor:view(0, { rows, shape[#shape] })
end

local function element(tensor, row, column)
  local columns = tensor.shape[2]
  return totable(tensor:view((row - 1) * columns + column - 1, { 1 }))[1]
end

-- The worst group, the wrong elements of all groups, and how many groups have some.
local function summary(groups)
  local worst, wrong, wrong_groups = nil, 0, 0
  for g, group in ipairs(groups) do
    if group.row and (not worst or group.worst > groups[worst].worst) then worst = g end
    wrong = wrong + group.violations
    wrong_groups = wrong_groups + (group.violations == 0 and 0 or 1)
  end
  return worst, wrong, wrong_groups
end

-- Whether d agrees; a sentence with the worst place; and for each group {worst, violations, row,
-- column}: the largest error over its bound and where it is, in the flattened output, from 1 (absent
-- in an empty group). `bound` {relative =, scaled =} takes the place of the checker's. d must be
-- complete: launches on other streams than the default one are waited for by the caller.
function Checker:check(d, bound)
  bound = bound or {}
  fields.check("the bound of a check", bound, { "relative", "scaled" }, 2)
  local value, reference = flat(d), flat(self.reference)
  local count = self.groups.shape[1] - 1
  local function out(dtype)
    return lab.check(lab.tensor { device = d.device, dtype = dtype, shape = { count } })
  end
  local found = { worst = out "fp64", violations = out "fp64", worst_row = out "i32", worst_column = out "i32" }
  lab.check(lab.plan { op = "agreement", variant = self.on_cpu and "cpu_plain" or "smxx_plain",
    value = value, reference = reference, magnitude = flat(self.magnitude), group_offsets = self.groups,
    relative = bound.relative or self.relative or RELATIVE[d.dtype], scaled = bound.scaled or self.scaled,
    worst = found.worst, worst_row = found.worst_row, worst_column = found.worst_column,
    violations = found.violations }):launch()
  for name, tensor in pairs(found) do found[name] = totable(tensor) end
  local groups = {}
  for g = 1, count do
    local row = found.worst_row[g]
    groups[g] = { worst = found.worst[g], violations = found.violations[g],
      row = row >= 0 and row + 1 or nil, column = row >= 0 and found.worst_column[g] + 1 or nil }
  end
  local worst, wrong, wrong_groups = summary(groups)
  if not worst then return true, "no rows", groups end
  local at = groups[worst]
  local place = ("%.3g of the bound in group %d, row %d, column %d"):format(at.worst, worst, at.row, at.column)
  if wrong == 0 then return true, "worst " .. place, groups end
  return false, ("%d elements in %d of %d groups are wrong; worst %s: %g, reference %g"):format(wrong,
    wrong_groups, count, place, element(value, at.row, at.column), element(reference, at.row, at.column)), groups
end

-- Gives the memory of the reference back before the collector would.
function Checker:close()
  self.plan:close()
  self.reference:close()
  self.magnitude:close()
end

return grouped
