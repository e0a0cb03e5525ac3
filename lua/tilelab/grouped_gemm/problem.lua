-- Problems of the grouped GEMM benchmark: group sizes and widths, and the memory that they share.
--
--   problem.new{op =, experts =, rows =, distribution =, exponent = of zipf, shrink =, seed = 0} -> {op, experts,
--       rows, distribution, exponent, sizes, layout, n, padded_rows, and k of nt and nn or m of tn, a weight
--       gradient}
--   problem.grid{ops =, experts =, distributions =, rows =, shrink =, seed = 0} -> list of them
--   problem.size_columns, problem.size_row(p): a problem as a row of a file
--   local pool = problem.pool(device, list)
--   pool:contenders(variant, p[, {tunables =, beta =, zeroed =}]) -> list (contender.lua) | nil, why the variant
--       cannot run here; beta and zeroed choose among weight gradients (wgrad.lua)
--
-- All problems use one buffer for each operand, filled once: a view of it for each problem. The reference
-- of a problem is computed when first needed and dropped with the next problem's.

local lab = require "tilelab"
local forward = require "tilelab.grouped_gemm.forward"
local grouped = require "tilelab.grouped"
local wgrad = require "tilelab.grouped_gemm.wgrad"

local problem = {}

local function sum(list)
  local total = 0
  for _, value in ipairs(list) do total = total + value end
  return total
end

-- --- what is measured -------------------------------------------------------------------------

-- Widths are those of grouped.shapes over `shrink`; sizes depend on the distribution, the rows, the experts
-- and the seed only, so that all ops see the same.
function problem.new(spec)
  local shape = assert(grouped.shapes[spec.op], spec.op)
  local sizes = grouped.sizes(spec.distribution, spec.rows, spec.experts, spec.seed, spec.exponent)
  return { op = spec.op, experts = spec.experts, rows = spec.rows, distribution = spec.distribution,
    exponent = spec.exponent, sizes = sizes, layout = shape.layout or "tn", m = shape.m and shape.m // spec.shrink,
    n = shape.n // spec.shrink, k = shape.k and shape.k // spec.shrink,
    padded_rows = sum(grouped.padded(sizes, grouped.ALIGNMENT)) }
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

-- Rows of the file that says the problems to others: sizes are separated by spaces. "-" is the dimension
-- that the groups cut.
problem.size_columns = { "op", "experts", "rows", "distribution", "layout", "m", "n", "k", "sizes" }

function problem.size_row(p)
  local row = {}
  for _, column in ipairs(problem.size_columns) do row[column] = p[column] or "-" end
  row.sizes = table.concat(p.sizes, " ")
  return row
end

function problem.name(p)
  return ("%s, %d experts, %s%s"):format(p.op, p.experts, p.distribution, p.exponent and " " .. p.exponent or "")
end

-- --- shared memory ----------------------------------------------------------------------------

local Pool = {}
Pool.__index = Pool

-- Elements that problems need of each buffer: those with k are forward's, those with m wgrad's.
local SIZES = {
  x = function(p) return p.rows * (p.k or p.n) end,
  weights = function(p) return p.k and p.experts * p.n * p.k or p.rows * p.m end,
  y = function(p) return p.k and p.rows * p.n or 0 end,
  gradients = function(p) return p.m and p.experts * p.m * p.n or 0 end,
  padded_x = function(p) return p.padded_rows * (p.k or p.n) end,
  padded_y = function(p) return p.padded_rows * (p.m or p.n) end,
}
local SEEDS = { x = 1, weights = 2 } -- the others are written first

function problem.pool(device, list)
  local pool = setmetatable({ device = device, dense = {} }, Pool)
  for name, elements in pairs(SIZES) do
    local most = 0
    for _, p in ipairs(list) do most = math.max(most, elements(p)) end
    pool[name] = lab.check(lab.tensor { device = device, dtype = name == "gradients" and "fp32" or "bf16",
      shape = { most } })
    if SEEDS[name] then grouped.fill(pool[name], SEEDS[name]) end
  end
  return pool
end

-- What make() returns for a problem, kept until another problem comes. Its field `checker`, if there is
-- one by then, is closed.
function Pool:operands(p, make)
  if self.problem ~= p then
    if self.current and self.current.checker then self.current.checker:close() end
    self.problem, self.current = p, make()
  end
  return self.current
end

-- What make() returns for an op and a number of rows, kept until another comes; or nil and why there is none.
function Pool:dense_of(p, make)
  local key = ("%s %d"):format(p.op, p.rows)
  if not self.dense[key] then
    local made, message = make()
    if not made then return nil, message end
    for _, other in pairs(self.dense) do other.checker:close() end
    self.dense = { [key] = made }
  end
  return self.dense[key]
end

function Pool:contenders(variant, p, options)
  return (p.k and forward or wgrad).builders[variant](self, variant, p, options or {})
end

return problem
