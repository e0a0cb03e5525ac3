-- rope on the GPU against the CPU in fp64.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local against = dofile("tests/lua/against_cpu.lua")

-- Sines are good to 2^-22, and elements below 8.
local SINES = 2 ^ -18

local function check(dtype, shape, rotated, inverse, theta)
  local name = ("rope: %s, %s, %d rotated%s"):format(dtype, table.concat(shape, " x "), rotated,
    inverse == 1 and ", inverse" or "")
  local qkv = against.normal(dtype, 1, table.unpack(shape))
  local gpu, reference, steady = against.both { op = "rope", inputs = {}, outputs = { qkv = qkv },
    params = { rotated_heads = rotated, inverse = inverse, theta = theta } }
  local good, text = against.near(gpu.qkv, reference.qkv, SINES)
  t.ok(good and steady, name .. text)
end

for _, dtype in ipairs { "bf16", "fp32" } do
  for inverse = 0, 1 do
    check(dtype, { 1, 1, 1, 16 }, 1, inverse)
    check(dtype, { 2, 37, 9, 32 }, 7, inverse)
    check(dtype, { 3, 5, 32, 128 }, 28, inverse)
    check(dtype, { 1, 300, 6, 48 }, 5, inverse, 500000)
    check(dtype, { 5, 3, 3, 2048 }, 2, inverse)
    check(dtype, { 40, 2, 33, 64 }, 31, inverse)
  end
  check(dtype, { 2, 3, 4, 64 }, 0, 0)
  check(dtype, { 0, 3, 4, 64 }, 2, 0)
  check(dtype, { 1, 0, 4, 64 }, 2, 0)
end
check("bf16", { 1, 4096, 3, 128 }, 2, 0)
check("bf16", { 4, 257, 32, 128 }, 28, 1)
check("fp32", { 1, 5000, 3, 128 }, 2, 0)

local function gpu(dtype, ...)
  return lab.check(lab.tensor { device = against.device, dtype = dtype, shape = { ... } })
end
local legal, reason = lab.legal { op = "rope", variant = against.variant, qkv = gpu("bf16", 1, 2, 3, 24),
  rotated_heads = 2 }
t.ok(not legal, "halves of 24 bytes")
t.like(reason, "half of head_dim is 12, but 16%-byte accesses to bf16 need a multiple of 8", "with the reason")
t.done()
