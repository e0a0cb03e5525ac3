-- Contenders of the products of the forward pass and of data gradients (m_grouped_gemm): y = x b^T or x b.
--
-- forward.builders[variant](pool, variant, p, {tunables =}) -> list of contenders | nil, why the variant cannot
-- run here

local contender = require "tilelab.grouped_gemm.contender"
local grouped = require "tilelab.grouped"

local forward = { builders = {} }

local i32, plan_of, view = contender.i32, contender.plan_of, contender.view

-- [experts, n, k] of nt, [experts, k, n] of nn; without experts of one product.
local function weights(pool, p, ...)
  local shape = { ... }
  shape[#shape + 1], shape[#shape + 2] = p.layout == "nt" and p.n or p.k, p.layout == "nt" and p.k or p.n
  return pool.weights:view(0, shape)
end

-- What all variants of a problem share.
local function operands(pool, p)
  return pool:operands(p, function()
    return { x = view(pool.x, p.rows, p.k), b = weights(pool, p, p.experts), y = view(pool.y, p.rows, p.n),
      offsets = i32(pool.device, grouped.offsets(p.sizes)) }
  end)
end

local function checker_of(current, p)
  current.checker = current.checker or grouped.checker { a = current.x, b = current.b,
    group_offsets = current.offsets, layout = p.layout }
  return current.checker
end

local function grouped_args(p, variant, current, options)
  return { op = "m_grouped_gemm", variant = variant, layout = p.layout, a = current.x, b = current.b, d = current.y,
    group_offsets = current.offsets, tunables = options.tunables }
end

-- cublaslt_loop has a product for each expert: the host has to know the sizes.
local function ragged(pool, variant, p, options)
  local current = operands(pool, p)
  local args = grouped_args(p, variant, current, options)
  if variant == "cublaslt_loop" then args.counts_host = i32("cpu", p.sizes) end
  local plan, message = plan_of(args)
  if not plan then return nil, message end
  return { contender.new { variant = variant, problem = p, plan = plan, y = current.y,
    checker = function() return checker_of(current, p) end } }
end

local function padded(pool, variant, p, options)
  local current, m = operands(pool, p), p.padded_rows
  local own = { x = view(pool.padded_x, m, p.k), y = view(pool.padded_y, m, p.n),
    offsets = contender.index(pool.device, p.experts + 1), experts = contender.index(pool.device, m) }
  local around, message = contender.around(pool.device, current.offsets, own.offsets, {
    { op = "pad_index", row_experts = own.experts },
    { op = "pad_rows", x = current.x, y = own.x },
    { op = "unpad_rows", x = own.y, y = current.y } })
  if not around then return nil, message end
  local plan, reason = plan_of { op = "m_grouped_gemm", variant = variant, layout = p.layout, a = own.x, b = current.b,
    d = own.y, group_offsets = own.offsets, row_experts = own.experts, tunables = options.tunables }
  if not plan then return nil, reason end
  return { contender.new { variant = variant, problem = p, plan = plan, y = current.y, padded = true,
    checker = function() return checker_of(current, p) end,
    parts = {
      pad = function()
        around[1]:launch()
        around[2]:launch()
      end,
      unpad = function() around[3]:launch() end,
    } } }
end

-- One product of all rows with one expert's weights, the fastest of the vendor's suggestions. It is the
-- same for all problems of an op and a number of rows, so it is tuned once.
local function dense(pool, variant, p)
  local known, message = pool:dense_of(p, function()
    local x, b, y = view(pool.x, p.rows, p.k), weights(pool, p), view(pool.y, p.rows, p.n)
    local plan, reason = plan_of { op = "gemm", variant = variant, a = x, b = b, d = y, layout = p.layout }
    if not plan then return nil, reason end
    plan:tune()
    return { plan = plan, y = y, checker = grouped.checker { a = x, b = weights(pool, p, 1), layout = p.layout,
      group_offsets = i32(pool.device, { 0, p.rows }) } }
  end)
  if not known then return nil, message end
  return { contender.new { variant = variant, problem = p, plan = known.plan, y = known.y,
    checker = function() return known.checker end } }
end

for _, variant in ipairs { "sm90_ragged", "smxx_plain", "cpu_ragged", "cublaslt_loop" } do
  forward.builders[variant] = ragged
end
for _, variant in ipairs { "sm90_padded", "cpu_padded" } do forward.builders[variant] = padded end
forward.builders.cublaslt_dense = dense

return forward
