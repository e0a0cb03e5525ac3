-- Contenders of weight gradients (k_grouped_gemm): d[e] (+)= a^T b over the rows of e, a [rows, m] the
-- gradients of outputs, b [rows, n] the inputs, d fp32.
--
-- wgrad.builders[variant](pool, variant, p, {tunables =, beta =, zeroed =}) -> list of contenders | nil, why the
-- variant cannot run here
--
-- A ragged variant is two contenders, beta 0 and beta 1, where options.beta does not say which; with
-- options.zeroed a memset of the output is timed with it. A padded one always adds: the memset of its output
-- is a part of its own, and so is the padding of both operands. The variants "store" and "zero" multiply
-- nothing: TMA stores over the output, and its memset. Beta 1 is checked on an output that was
-- drawn before; while it is timed it adds to whatever the contender before it left.

local contender = require "tilelab.grouped_gemm.contender"
local grouped = require "tilelab.grouped"

local wgrad = { builders = {} }

local i32, plan_of, view = contender.i32, contender.plan_of, contender.view
local START = 3 -- seed of what beta 1 adds to, apart from the operands'

local function operands(pool, p)
  return pool:operands(p, function()
    return { a = view(pool.weights, p.rows, p.m), b = view(pool.x, p.rows, p.n),
      d = view(pool.gradients, p.experts, p.m, p.n), offsets = i32(pool.device, grouped.offsets(p.sizes)) }
  end)
end

-- The reference of a problem fills as much memory as four outputs, so that there is one, which is
-- computed again when the other beta comes.
local function checker_of(current, p, beta)
  local start = beta == 1 and START or nil
  if not current.checker then
    current.checker = grouped.checker { op = "k_grouped_gemm", a = current.a, b = current.b,
      group_offsets = current.offsets, beta = 1, start = start, relative = 0,
      scaled = grouped.wgrad_scaled(math.max(table.unpack(p.sizes))) }
  elseif current.checked_beta ~= beta then
    current.checker:refresh(start)
  end
  current.checked_beta = beta
  return current.checker
end

-- What it takes to write the output at all, once for all contenders of a problem; nil where the device
-- has no such kernel.
local function store_of(current)
  if current.store == nil then
    current.store = plan_of { op = "probe_store", variant = "sm90_tma", dst = current.d } or false
  end
  return current.store or nil
end

local function added(fields, current, p)
  local d, adds = current.d, fields.beta == 1 and not fields.run -- what is zeroed first is as if written
  fields.problem, fields.y, fields.store = p, d, store_of(current)
  fields.name = ("%s beta %d"):format(fields.variant, fields.beta)
  fields.begin = function()
    if adds then grouped.fill(d, START) else d:poison() end
  end
  fields.checker = function() return checker_of(current, p, adds and 1 or 0) end
  return contender.new(fields)
end

local function ragged(pool, variant, p, options)
  local current, list = operands(pool, p), {}
  local betas = options.beta and { options.beta } or variant == "cublaslt_loop" and { 0 } or { 0, 1 }
  for i, beta in ipairs(betas) do
    local plan, message = plan_of { op = "k_grouped_gemm", variant = variant, a = current.a, b = current.b,
      d = current.d, group_offsets = current.offsets, beta = beta, tunables = options.tunables,
      counts_host = variant == "cublaslt_loop" and i32("cpu", p.sizes) or nil }
    if not plan then return nil, message end
    local function zero_and_add()
      current.d:fill(0)
      plan:launch()
    end
    list[i] = added({ variant = variant, beta = beta, plan = plan, run = options.zeroed and zero_and_add or nil },
      current, p)
  end
  return list
end

local function padded(pool, variant, p, options)
  local current, rows = operands(pool, p), p.padded_rows
  local own = { a = view(pool.padded_y, rows, p.m), b = view(pool.padded_x, rows, p.n),
    offsets = contender.index(pool.device, p.experts + 1), experts = contender.index(pool.device, rows) }
  local around, message = contender.around(pool.device, current.offsets, own.offsets, {
    { op = "pad_index", row_experts = own.experts },
    { op = "pad_rows", x = current.a, y = own.a },
    { op = "pad_rows", x = current.b, y = own.b } })
  if not around then return nil, message end
  local plan, reason = plan_of { op = "k_grouped_gemm", variant = variant, a = own.a, b = own.b, d = current.d,
    group_offsets = own.offsets, row_experts = own.experts, beta = 1,
    tunables = options.tunables, counts_host = i32("cpu", grouped.padded(p.sizes, grouped.ALIGNMENT)) }
  if not plan then return nil, reason end
  local parts = {
    pad = function()
      for _, each in ipairs(around) do each:launch() end
    end,
    zero = function() current.d:fill(0) end,
  }
  return { added({ variant = variant, beta = 1, plan = plan, padded = true, parts = parts }, current, p) }
end

-- One product over all rows, with the output of one expert.
local function dense(pool, variant, p)
  local known, message = pool:dense_of(p, function()
    local a, b, d = view(pool.weights, p.rows, p.m), view(pool.x, p.rows, p.n), view(pool.gradients, p.m, p.n)
    local plan, reason = plan_of { op = "gemm", variant = variant, a = a, b = b, d = d, layout = "tn" }
    if not plan then return nil, reason end
    plan:tune()
    return { plan = plan, y = view(pool.gradients, 1, p.m, p.n), checker = grouped.checker { op = "k_grouped_gemm",
      a = a, b = b, group_offsets = i32(pool.device, { 0, p.rows }), relative = 0,
      scaled = grouped.wgrad_scaled(p.rows) } }
  end)
  if not known then return nil, message end
  return { contender.new { variant = variant, problem = p, plan = known.plan, y = known.y,
    checker = function() return known.checker end } }
end

local function without_product(variant, p, current, plan, run)
  return { contender.new { variant = variant, problem = p, plan = plan, run = run, y = current.d, flops = false,
    store = store_of(current), check = function() return true end } }
end

function wgrad.builders.store(pool, variant, p)
  local current = operands(pool, p)
  local plan = store_of(current)
  if not plan then return nil, "the device has no stream of TMA stores" end
  return without_product(variant, p, current, plan)
end

function wgrad.builders.zero(pool, variant, p)
  local current = operands(pool, p)
  return without_product(variant, p, current, nil, function() current.d:fill(0) end)
end

for _, variant in ipairs { "sm90_ragged", "sm90_cooperative", "cpu_ragged", "cublaslt_loop" } do
  wgrad.builders[variant] = ragged
end
for _, variant in ipairs { "sm90_padded", "cpu_padded" } do wgrad.builders[variant] = padded end
wgrad.builders.cublaslt_dense = dense

return wgrad
