-- swiglu and swiglu_backward on the GPU against the CPU in fp64.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local against = dofile("tests/lua/against_cpu.lua")
local host, normal = against.host, against.normal

-- exp and a quotient, in bf16 the short ones, whose error grows with the exponent: gates are below 32.
local SIGMOID = { bf16 = 2 ^ -16, fp32 = 2 ^ -21 }

local function wide(dtype, seed, ...) return host(dtype, ...):normal { seed = seed, std = 4 } end

-- Without `last` there are no group_offsets, else they end there.
local function check(dtype, rows, f, last)
  local name = ("%s, %d x %d%s"):format(dtype, rows, f, last and (", %d rows used"):format(last) or "")
  local offsets = last and against.i32 { 0, last // 3, last // 3, last } or nil
  local used = last or rows
  local x, y = wide(dtype, 1, rows, 2 * f), host(dtype, rows, f)
  local gpu, reference, steady = against.both { op = "swiglu", inputs = { x = x, group_offsets = offsets },
    outputs = { y = y } }
  local good, text = true, ""
  if used > 0 then good, text = against.near(gpu.y:rows(1, used), reference.y:rows(1, used), 0, SIGMOID[dtype]) end
  t.ok(good and steady, ("swiglu: %s%s"):format(name, text))
  t.ok(against.untouched(gpu.y, y, used), ("swiglu: %s, the rest as it was"):format(name))

  local dx = host(dtype, rows, 2 * f)
  gpu, reference, steady = against.both { op = "swiglu_backward",
    inputs = { x = x, dy = normal(dtype, 2, rows, f), group_offsets = offsets }, outputs = { dx = dx } }
  good, text = true, ""
  -- 1 + gate (1 - sigmoid) cancels near its zero: terms below 2^7.
  if used > 0 then
    good, text = against.near(gpu.dx:rows(1, used), reference.dx:rows(1, used), 2 ^ 7 * SIGMOID[dtype], SIGMOID[dtype])
  end
  t.ok(good and steady, ("swiglu_backward: %s%s"):format(name, text))
  t.ok(against.untouched(gpu.dx, dx, used), ("swiglu_backward: %s, the rest as it was"):format(name))
end

for _, dtype in ipairs { "bf16", "fp32" } do
  check(dtype, 1, 8)
  check(dtype, 37, 80)
  check(dtype, 37, 80, 31)
  check(dtype, 131, 1280)
  check(dtype, 131, 1280, 130)
  check(dtype, 131, 1280, 0)
  check(dtype, 5, 1288, 5)
  check(dtype, 0, 64)
  check(dtype, 0, 64, 0)
  check(dtype, 2000, 72, 1999)
end
check("bf16", 9001, 1280, 8191)

-- --- extremes and in place -----------------------------------------------------------------------

local function gpu(dtype, ...)
  return lab.check(lab.tensor { device = against.device, dtype = dtype, shape = { ... } })
end

for _, dtype in ipairs { "bf16", "fp32" } do
  local values = { 100, -100, 1000, -1000, 0, -0.0, 88, -88, 1, 1, 1, 1, 1, 1, 1, 1 }
  local got = against.gpu { op = "swiglu", inputs = { x = against.host(dtype, 1, 16):assign(values) },
    outputs = { y = host(dtype, 1, 8) } }.y:totable()
  local limits = { 100, 0, 1000, 0, 0, 0, 88, 0 }
  local good = true
  for i, want in ipairs(limits) do good = good and math.abs(got[i] - want) <= 1e-30 end
  t.ok(good, "swiglu: gates that saturate, " .. dtype)
end

do
  local x, dy = wide("bf16", 1, 37, 160), normal("bf16", 2, 37, 80)
  local apart = against.gpu { op = "swiglu_backward", inputs = { x = x, dy = dy },
    outputs = { dx = host("bf16", 37, 160) } }
  local together = gpu("bf16", 37, 160):copy(x)
  lab.check(lab.plan { op = "swiglu_backward", variant = against.variant, x = together, dx = together,
    dy = gpu("bf16", 37, 80):copy(dy) }):launch()
  t.ok(against.same(together, apart.dx), "dx may be x itself")
end

local legal, reason = lab.legal { op = "swiglu", variant = against.variant, x = gpu("bf16", 2, 40),
  y = gpu("bf16", 2, 20) }
t.ok(not legal and reason:find("f is 20", 1, true), "rows of 40 bytes")
t.done()
