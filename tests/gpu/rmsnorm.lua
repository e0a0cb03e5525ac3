-- rmsnorm and rmsnorm_backward on the GPU against the CPU in fp64.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local against = dofile("tests/lua/against_cpu.lua")
local host, normal, near = against.host, against.normal, against.near

-- Sums of squares take 8 to 45 roundings in fp32, whose root halves them.
local ACCUMULATION = 2 ^ -18

local function forward(dtype, tokens, d, residual)
  local name = ("rmsnorm: %s, %d x %d%s"):format(dtype, tokens, d, residual and ", residual" or "")
  local inputs = { x = normal(dtype, 1, tokens, d), weight = normal("fp32", 2, d) }
  local outputs = { y = host(dtype, tokens, d), rstd = host("fp32", tokens) }
  if residual then inputs.residual, outputs.sum = normal(dtype, 3, tokens, d), host(dtype, tokens, d) end
  local gpu, reference, steady = against.both { op = "rmsnorm", inputs = inputs, outputs = outputs,
    params = { eps = 1e-3 } }
  if residual then
    local good, text = near(gpu.sum, reference.sum)
    t.ok(good, name .. ": sum" .. text)
    -- What is normalised is the sum as it was rounded.
    local _, of_sum = against.both { op = "rmsnorm", inputs = { x = gpu.sum, weight = inputs.weight },
      outputs = { y = outputs.y, rstd = outputs.rstd }, params = { eps = 1e-3 } }
    reference = of_sum
  end
  local good, text = near(gpu.y, reference.y, 0, ACCUMULATION)
  t.ok(good and steady, name .. ": y" .. text)
  good, text = near(gpu.rstd, reference.rstd, 0, ACCUMULATION)
  t.ok(good, name .. ": rstd" .. text)
end

local function backward(dtype, tokens, d, dsum)
  local name = ("rmsnorm_backward: %s, %d x %d%s"):format(dtype, tokens, d, dsum and ", dsum" or "")
  local inputs = { dy = normal(dtype, 4, tokens, d), x = normal(dtype, 5, tokens, d), weight = normal("fp32", 6, d),
    rstd = host("fp32", tokens):uniform { low = 0.5, high = 1.5, seed = 7 } }
  if dsum then inputs.dsum = normal(dtype, 8, tokens, d) end
  local gpu, reference, steady = against.both { op = "rmsnorm_backward", inputs = inputs,
    outputs = { dx = host(dtype, tokens, d), dweight = normal("fp32", 9, d) } }
  -- The mean of dy weight x is below 2 but for few columns; its sum takes up to 45 roundings.
  local good, text = near(gpu.dx, reference.dx, 2 ^ -14)
  t.ok(good and steady, name .. ": dx" .. text)
  good, text = near(gpu.dweight, reference.dweight, (tokens + 1) * 2 ^ -20)
  t.ok(good, name .. ": dweight" .. text)
end

local SHAPES = { { 1, 8 }, { 5, 8 }, { 7, 192 }, { 33, 264 }, { 129, 1536 }, { 63, 3072 }, { 31, 3080 }, { 9, 4096 },
  { 0, 64 }, { 3001, 72 } }
for _, shape in ipairs(SHAPES) do
  for _, dtype in ipairs { "bf16", "fp32" } do
    for _, also in ipairs { false, true } do
      forward(dtype, shape[1], shape[2], also)
      backward(dtype, shape[1], shape[2], also)
    end
  end
end
forward("bf16", 3, 8192, true)
backward("bf16", 3, 8192, true)
forward("fp32", 6, 4, false)
forward("bf16", 2050, 3072, true)
backward("bf16", 2050, 3072, true)

-- --- in place ----------------------------------------------------------------------------------

local function gpu(dtype, ...)
  return lab.check(lab.tensor { device = against.device, dtype = dtype, shape = { ... } })
end

do
  local x, residual, weight = normal("bf16", 1, 37, 3072), normal("bf16", 2, 37, 3072), normal("fp32", 3, 3072)
  local apart = against.gpu { op = "rmsnorm", inputs = { x = x, residual = residual, weight = weight },
    outputs = { y = host("bf16", 37, 3072), rstd = host("fp32", 37), sum = host("bf16", 37, 3072) } }
  local y, sum = gpu("bf16", 37, 3072), gpu("bf16", 37, 3072):copy(residual)
  lab.check(lab.plan { op = "rmsnorm", variant = against.variant, x = gpu("bf16", 37, 3072):copy(x), residual = sum,
    weight = gpu("fp32", 3072):copy(weight), y = y, rstd = gpu("fp32", 37), sum = sum }):launch()
  t.ok(against.same(y, apart.y) and against.same(sum, apart.sum), "sum may be residual itself")
end

-- --- what it refuses ---------------------------------------------------------------------------

local function forward_args(dtype, d)
  return { op = "rmsnorm", variant = against.variant, x = gpu(dtype, 2, d), weight = gpu("fp32", d),
    y = gpu(dtype, 2, d), rstd = gpu("fp32", 2) }
end
local legal, reason = lab.legal(forward_args("bf16", 12))
t.ok(not legal, "rows of 24 bytes")
t.like(reason, "need a multiple of 8", "with the remedy")
legal, reason = lab.legal(forward_args("fp32", 4100))
t.ok(not legal and reason:find "a block holds rows of 4096", "rows that are too long")
local args = forward_args("bf16", 8)
args.weight = gpu("bf16", 8)
t.error(function() lab.plan(args) end, "must be fp64 or fp32", "weights in bf16")
t.done()
