-- Problems of the grouped GEMM benchmark: group sizes and widths, the memory that they share, and for each
-- variant a contender that is checked, timed and counted.
--
--   problem.new{op =, experts =, rows =, distribution =, exponent = of zipf, shrink =, seed = 0} -> {op, experts,
--       rows, distribution, exponent, sizes, layout, n, k, padded_rows}
--   problem.grid{ops =, experts =, distributions =, rows =, shrink =, seed = 0} -> list of them
--   problem.size_columns, problem.size_row(p): a problem as a row of a file
--   local pool = problem.pool(device, list)
--   pool:contender(variant, p[, tunables]) -> contender | nil, why the variant cannot run here
--   contender:check() -> whether the result agrees, and in words where it agrees least
--
-- A contender: name (the variant's unless changed), variant, problem, beta, plan (what is timed), flops (of
-- real rows), and where rows are padded padded_flops and parts = {pad =, unpad =}: functions that launch what
-- comes before and after the plan.
--
-- All problems use one buffer for each operand, filled once: a view of it for each problem. The reference
-- of a problem is computed when first needed and dropped with the next problem's.

local lab = require "tilelab"
local grouped = require "tilelab.grouped"

local problem = {}

local ALIGNMENT = 128
local GEMM = { nt = true, nn = true }

local function product(...)
  local result = 1
  for _, factor in ipairs { ... } do result = result * factor end
  return result
end

local function sum(list)
  local total = 0
  for _, value in ipairs(list) do total = total + value end
  return total
end

-- --- what is measured -------------------------------------------------------------------------

-- Widths are those of grouped.shapes over `shrink`; sizes depend on the distribution, the rows, the experts
-- and the seed only, so that all ops see the same.
function problem.new(spec)
  local shape = grouped.shapes[spec.op]
  assert(shape and GEMM[shape.layout], spec.op .. " is no product of the forward pass or of a data gradient")
  local sizes = grouped.sizes(spec.distribution, spec.rows, spec.experts, spec.seed, spec.exponent)
  return { op = spec.op, experts = spec.experts, rows = spec.rows, distribution = spec.distribution,
    exponent = spec.exponent, sizes = sizes, layout = shape.layout, n = shape.n // spec.shrink,
    k = shape.k // spec.shrink, padded_rows = sum(grouped.padded(sizes, ALIGNMENT)) }
end

function problem.grid(spec)
  local list = {}
  for _, op in ipairs(spec.ops) do
    for _, experts in ipairs(spec.experts) do
      for _, distribution in ipairs(spec.distributions) do
        list[#list + 1] = problem.new { op = op, experts = experts, rows = spec.rows, distribution = distribution,
          shrink = spec.shrink, seed = spec.seed }
      end
    end
  end
  return list
end

-- Rows of the file that says the problems to others: sizes are separated by spaces.
problem.size_columns = { "op", "experts", "rows", "distribution", "layout", "n", "k", "sizes" }

function problem.size_row(p)
  local row = {}
  for _, column in ipairs(problem.size_columns) do row[column] = p[column] end
  row.sizes = table.concat(p.sizes, " ")
  return row
end

function problem.name(p)
  return ("%s, %d experts, %s%s"):format(p.op, p.experts, p.distribution, p.exponent and " " .. p.exponent or "")
end

-- --- shared memory ----------------------------------------------------------------------------

local Pool = {}
Pool.__index = Pool

local function largest(list, elements)
  local most = 0
  for _, p in ipairs(list) do most = math.max(most, elements(p)) end
  return most
end

function problem.pool(device, list)
  local function buffer(seed, elements)
    local tensor = lab.check(lab.tensor { device = device, dtype = "bf16", shape = { largest(list, elements) } })
    return seed and grouped.fill(tensor, seed) or tensor
  end
  return setmetatable({ device = device, dense = {},
    x = buffer(1, function(p) return p.rows * p.k end),
    weights = buffer(2, function(p) return product(p.experts, p.n, p.k) end),
    y = buffer(nil, function(p) return p.rows * p.n end),
    padded_x = buffer(nil, function(p) return p.padded_rows * p.k end),
    padded_y = buffer(nil, function(p) return p.padded_rows * p.n end),
  }, Pool)
end

local function view(buffer, ...) return buffer:view(0, { ... }) end

-- [experts, n, k] of nt, [experts, k, n] of nn; without experts of one product.
local function weights(pool, p, ...)
  local shape = { ... }
  shape[#shape + 1], shape[#shape + 2] = p.layout == "nt" and p.n or p.k, p.layout == "nt" and p.k or p.n
  return pool.weights:view(0, shape)
end

local function i32(device, values) return lab.check(lab.tensor_from(device, "i32", values)) end

-- Operands of a problem that its contenders share, kept until another problem comes.
function Pool:operands(p)
  if self.problem ~= p then
    if self.current and self.current.checker then self.current.checker:close() end
    self.problem = p
    self.current = { x = view(self.x, p.rows, p.k), b = weights(self, p, p.experts), y = view(self.y, p.rows, p.n),
      offsets = i32(self.device, grouped.offsets(p.sizes)) }
  end
  return self.current
end

local function checker_of(current, p)
  current.checker = current.checker or grouped.checker { a = current.x, b = current.b,
    group_offsets = current.offsets, layout = p.layout }
  return current.checker
end

-- --- contenders -------------------------------------------------------------------------------

local Contender = {}
Contender.__index = Contender

local function contender(fields)
  fields.name, fields.beta, fields.parts = fields.variant, 0, fields.parts or {}
  fields.flops = 2 * product(fields.problem.rows, fields.problem.n, fields.problem.k)
  return setmetatable(fields, Contender)
end

-- Launches the variant as its user would, into a poisoned output.
function Contender:check()
  self.y:poison()
  if self.parts.pad then self.parts.pad() end
  self.plan:launch()
  if self.parts.unpad then self.parts.unpad() end
  return self.checker():check(self.y)
end

-- lab.plan, or nil and the reason; what this build has no kernel of is a reason, too.
local function plan_of(args)
  for _, kernel in ipairs(lab.kernels(args.op)) do
    if kernel.variant == args.variant then return lab.plan(args) end
  end
  return nil, ("this build has no %s/%s"):format(args.op, args.variant)
end

local function grouped_args(p, variant, current, tunables)
  return { op = "m_grouped_gemm", variant = variant, layout = p.layout, a = current.x, b = current.b, d = current.y,
    group_offsets = current.offsets, tunables = tunables }
end

local function ragged(pool, variant, p, tunables)
  local current = pool:operands(p)
  local plan, message = plan_of(grouped_args(p, variant, current, tunables))
  if not plan then return nil, message end
  return contender { variant = variant, problem = p, plan = plan, y = current.y,
    checker = function() return checker_of(current, p) end }
end

-- A product for each expert: the host has to know the sizes.
local function loop(pool, variant, p)
  local current = pool:operands(p)
  local args = grouped_args(p, variant, current)
  args.counts_host = i32("cpu", p.sizes)
  local plan, message = plan_of(args)
  if not plan then return nil, message end
  return contender { variant = variant, problem = p, plan = plan, y = current.y,
    checker = function() return checker_of(current, p) end }
end

-- The variant of an operation that has one for the CPU and one for GPUs.
local function only_variant(op, device)
  for _, kernel in ipairs(lab.kernels(op)) do
    if (kernel.arch == "cpu") == (device.arch == 0) then return kernel.variant end
  end
  return lab.kernels(op)[1].variant -- whose refusal says the rest
end

-- Plans of the kernels around a padded product: pad_index, pad_rows, unpad_rows; or nil and why not.
local function padding_plans(pool, current, own)
  local plans = {}
  for i, args in ipairs {
    { op = "pad_index", row_experts = own.experts },
    { op = "pad_rows", x = current.x, y = own.x },
    { op = "unpad_rows", x = own.y, y = current.y } } do
    args.variant = only_variant(args.op, pool.device)
    args.group_offsets, args.padded_offsets = current.offsets, own.offsets
    local plan, message = lab.plan(args)
    if not plan then return nil, message end
    plans[i] = plan
  end
  return plans
end

local function padded(pool, variant, p, tunables)
  local current, m = pool:operands(p), p.padded_rows
  local function index(count)
    return lab.check(lab.tensor { device = pool.device, dtype = "i32", shape = { count }, fill = 0 })
  end
  local own = { x = view(pool.padded_x, m, p.k), y = view(pool.padded_y, m, p.n), offsets = index(p.experts + 1),
    experts = index(m) }
  local around, message = padding_plans(pool, current, own)
  if not around then return nil, message end
  local plan, reason = plan_of { op = "m_grouped_gemm", variant = variant, layout = p.layout, a = own.x, b = current.b,
    d = own.y, group_offsets = own.offsets, row_experts = own.experts, tunables = tunables }
  if not plan then return nil, reason end
  return contender { variant = variant, problem = p, plan = plan, y = current.y,
    padded_flops = 2 * product(m, p.n, p.k), checker = function() return checker_of(current, p) end,
    parts = {
      pad = function()
        around[1]:launch()
        around[2]:launch()
      end,
      unpad = function() around[3]:launch() end,
    } }
end

-- One product of all rows with one expert's weights, the fastest of the vendor's suggestions. It is the
-- same for all problems of an op and a number of rows, so it is tuned once.
local function dense(pool, variant, p)
  local key = ("%s %d"):format(p.op, p.rows)
  local known = pool.dense[key]
  if not known then
    local x, b, y = view(pool.x, p.rows, p.k), weights(pool, p), view(pool.y, p.rows, p.n)
    local plan, message = plan_of { op = "gemm", variant = variant, a = x, b = b, d = y, layout = p.layout }
    if not plan then return nil, message end
    plan:tune()
    for _, other in pairs(pool.dense) do other.checker:close() end
    known = { plan = plan, y = y, checker = grouped.checker { a = x, b = weights(pool, p, 1), layout = p.layout,
      group_offsets = i32(pool.device, { 0, p.rows }) } }
    pool.dense = { [key] = known }
  end
  return contender { variant = variant, problem = p, plan = known.plan, y = known.y,
    checker = function() return known.checker end }
end

local builders = { cublaslt_dense = dense, cublaslt_loop = loop, sm90_ragged = ragged, sm90_padded = padded,
  smxx_plain = ragged, cpu_ragged = ragged, cpu_padded = padded }

-- Variants that a device can have, in the order of the record.
problem.variants = { gpu = { "cublaslt_dense", "sm90_ragged", "sm90_padded", "cublaslt_loop" },
  cpu = { "cpu_ragged", "cpu_padded" } }

function Pool:contender(variant, p, tunables) return builders[variant](self, variant, p, tunables) end

return problem
