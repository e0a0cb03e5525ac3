-- attention and attention_backward on the GPU against the CPU in fp64.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local against = dofile("tests/lua/against_cpu.lua")
local host, normal, near = against.host, against.normal, against.near

local VARIANTS = { "smxx_plain" }

local function gpu(...) return lab.check(lab.tensor { device = against.device, dtype = "fp32", shape = { ... } }) end

local function check(variant, dtype, batch, sequence, heads, kv_heads, head_dim)
  local packed = heads + 2 * kv_heads
  local name = ("%s, %s, %d x %d, %d/%d heads of %d"):format(variant, dtype, batch, sequence, heads, kv_heads, head_dim)
  local qkv = normal(dtype, 1, batch, sequence, packed, head_dim)
  local found, reference, steady = against.both { op = "attention", variant = variant, inputs = { qkv = qkv },
    outputs = { o = host(dtype, batch, sequence, heads, head_dim), lse = host("fp32", batch, heads, sequence) } }
  -- Weights that add up to 1, of values around 1; lse of scores of up to about 6.
  local good, text = near(found.o, reference.o, 2 ^ -19)
  t.ok(good and steady, "o: " .. name .. text)
  good, text = near(found.lse, reference.lse, 2 ^ -19)
  t.ok(good, "lse: " .. name .. text)

  local dout = normal(dtype, 2, batch, sequence, heads, head_dim)
  found, reference, steady = against.both { op = "attention_backward", variant = variant,
    inputs = { dout = dout, qkv = qkv, o = found.o, lse = found.lse },
    outputs = { dqkv = host(dtype, batch, sequence, packed, head_dim) } }
  -- dv and dk of the first keys add up one term for each query.
  good, text = near(found.dqkv, reference.dqkv, 2 ^ -16 * math.sqrt(sequence))
  t.ok(good and steady, "dqkv: " .. name .. text)
end

local SHAPES = { { 1, 1, 1, 1, 8 }, { 2, 5, 2, 1, 16 }, { 1, 64, 2, 2, 32 }, { 2, 65, 6, 1, 32 }, { 1, 130, 4, 2, 64 },
  { 1, 200, 3, 1, 40 }, { 1, 193, 6, 1, 128 }, { 1, 97, 2, 1, 104 } }
for _, variant in ipairs(VARIANTS) do
  for _, shape in ipairs(SHAPES) do
    for _, dtype in ipairs { "bf16", "fp32" } do check(variant, dtype, table.unpack(shape)) end
  end
  t.ok(not lab.legal { op = "attention", variant = variant, qkv = gpu(1, 1, 3, 136), o = gpu(1, 1, 1, 136),
    lse = gpu(1, 1, 1) }, variant .. ": head_dim 136 is refused")
end
t.done()
