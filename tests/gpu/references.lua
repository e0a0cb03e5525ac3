-- The references on the GPU against those on the CPU: smxx_plain of the grouped products, bit by bit
-- where the products of two elements are exact in fp64, and agreement.

local lab = require "tilelab"
local grouped = require "tilelab.grouped"
local t = dofile("tests/lua/tap.lua")
local device = lab.device "cuda"

local function on_gpu(host)
  return lab.check(lab.tensor { device = device, dtype = host.dtype, shape = host.shape }):copy(host)
end

local function same(a, b) return lab.compare(a, b).mismatched_bits == 0 end

local function poison(on, dtype, ...) return lab.check(lab.tensor { device = on, dtype = dtype, shape = { ... } }) end

-- The same launch on both devices, outputs in `outs` (host tensors, as they are before); returns
-- the outputs of both.
local function both(args, outs, cpu_variant)
  local host, gpu = {}, {}
  for key, value in pairs(args) do host[key], gpu[key] = value, type(value) == "userdata" and on_gpu(value) or value end
  for key, value in pairs(outs) do host[key], gpu[key] = value:clone(), on_gpu(value) end
  host.variant, gpu.variant = cpu_variant, "smxx_plain"
  lab.check(lab.plan(host)):launch()
  lab.check(lab.plan(gpu)):launch()
  return host, gpu
end

local function m_grouped(name, sizes, n, k, layout, dtype, out)
  local case = grouped.operands { sizes = sizes, n = n, k = k, layout = layout, tail = 3, dtype = dtype, seed = n + k }
  local m = case.a.shape[1]
  local host, gpu = both({ op = "m_grouped_gemm", a = case.a, b = case.b, group_offsets = case.group_offsets,
    layout = layout }, { d = poison("cpu", out, m, n), magnitude = poison("cpu", "fp64", m, n) }, "cpu_ragged")
  local equal = out ~= "fp64" or same(gpu.d, host.d)
  if out ~= "fp64" then -- the CPU sums in fp32 there: one rounding of the fp64 sums instead
    local exact = poison("cpu", "fp64", m, n)
    lab.check(lab.plan { op = "m_grouped_gemm", variant = "cpu_ragged", a = case.a, b = case.b, d = exact,
      group_offsets = case.group_offsets, layout = layout }):launch()
    local used = m - 3
    equal = same(gpu.d:rows(1, used), poison("cpu", out, m, n):convert(exact):rows(1, used))
      and same(gpu.d:rows(used + 1, m), poison("cpu", out, 3, n))
  end
  t.ok(equal, ("m_grouped_gemm, %s, %s, n %d, k %d, %s to %s"):format(name, layout, n, k, dtype, out))
  t.ok(same(gpu.magnitude, host.magnitude), "its magnitude")
end

for _, layout in ipairs { "nt", "nn" } do
  for _, dtypes in ipairs { { "bf16", "fp64" }, { "fp32", "fp64" }, { "bf16", "bf16" }, { "fp32", "fp32" } } do
    local dtype, out = dtypes[1], dtypes[2]
    m_grouped("ragged", { 0, 1, 15, 16, 17, 33, 0, 0, 129, 2 }, 70, 72, layout, dtype, out)
    m_grouped("one element", { 0, 0, 1 }, 1, 1, layout, dtype, out)
    m_grouped("all empty", { 0, 0, 0 }, 40, 40, layout, dtype, out)
    m_grouped("many groups", grouped.sizes("multinomial", 2000, 1025, 1), 33, 31, layout, dtype, out)
    m_grouped("wide", { 300, 29 }, 768, 1408, layout, dtype, out)
    m_grouped("no k", { 5, 0, 70 }, 40, 0, layout, dtype, out)
  end
end

local function k_grouped(name, sizes, m, n, beta, out)
  local offsets = grouped.offsets(sizes)
  local rows = offsets[#offsets]
  local function operand(columns, seed)
    local x = poison("cpu", "bf16", rows + 3, columns)
    x:rows(1, rows):normal { seed = seed }
    return x
  end
  local d = poison("cpu", out, #sizes, m, n)
  if beta == 1 then d:normal { seed = 3 }:view(0, { math.min(d.numel, 7) }):fill(-0.0) end
  local host, gpu = both({ op = "k_grouped_gemm", a = operand(m, 1), b = operand(n, 2), beta = beta,
    group_offsets = lab.tensor_from("cpu", "i32", offsets) },
    { d = d, magnitude = poison("cpu", "fp64", #sizes, m, n) }, "cpu_ragged")
  local equal
  if out == "fp64" then
    equal = same(gpu.d, host.d)
  else
    equal = lab.compare(gpu.d, host.d, { relative = 2 ^ -23, scaled = 2 ^ -18, scale = host.magnitude }).pass
  end
  t.ok(equal, ("k_grouped_gemm, %s, m %d, n %d, beta %d, %s"):format(name, m, n, beta, out))
  t.ok(same(gpu.magnitude, host.magnitude), "its magnitude")
end

for beta = 0, 1 do
  for _, out in ipairs { "fp64", "fp32" } do
    k_grouped("ragged", { 0, 1, 31, 32, 33, 0, 200, 5 }, 40, 70, beta, out)
    k_grouped("one element", { 0, 1 }, 1, 1, beta, out)
    k_grouped("all empty", { 0, 0, 0 }, 17, 33, beta, out)
    k_grouped("many groups", grouped.sizes("zipf", 1500, 500, 1), 19, 35, beta, out)
    k_grouped("wide", { 100, 300 }, 264, 520, beta, out)
  end
end

-- Verdicts on both devices, with everything that is not a number.
local function agreement(name, sizes, n, dtype)
  local offsets = grouped.offsets(sizes)
  local m = offsets[#offsets] + 3
  local value = poison("cpu", dtype, m, n):normal { seed = 1 }
  local reference = poison("cpu", "fp64", m, n):convert(value)
  local noise = poison("cpu", "fp64", m, n):normal { seed = 2, std = 1e-3 }:totable()
  local values = reference:totable()
  for i = 1, #values do values[i] = values[i] + (i % 3 == 0 and 0 or noise[i]) end
  reference:assign(values)
  local random = lab.random(5)
  for _, odd in ipairs { 0 / 0, math.huge, -math.huge } do
    if m > 200 and n > 0 then
      value:set(odd, random:below(200) + 1, random:below(n) + 1)
      reference:set(odd, random:below(200) + 1, random:below(n) + 1)
    end
  end
  local magnitude = poison("cpu", "fp64", m, n):uniform { seed = 4 }
  local groups = #sizes
  local host, gpu = both({ op = "agreement", value = value, reference = reference, magnitude = magnitude,
    group_offsets = lab.tensor_from("cpu", "i32", offsets), relative = 2 ^ -10, scaled = 2 ^ -10 },
    { worst = poison("cpu", "fp64", groups), worst_row = poison("cpu", "i32", groups),
      worst_column = poison("cpu", "i32", groups), violations = poison("cpu", "fp64", groups) }, "cpu_plain")
  local equal = same(gpu.worst_row, host.worst_row) and same(gpu.worst_column, host.worst_column)
    and same(gpu.violations, host.violations)
    and lab.compare(gpu.worst, host.worst, { relative = 1e-14 }).pass -- the GPU fuses the bound's sum
  t.ok(equal, ("agreement, %s, n %d, %s"):format(name, n, dtype))
end

for _, dtype in ipairs { "bf16", "fp32", "fp64" } do
  agreement("ragged", { 0, 1, 300, 64, 0, 200 }, 70, dtype)
  agreement("one column", { 300, 2 }, 1, dtype)
  agreement("all empty", { 0, 0 }, 8, dtype)
  agreement("many groups", grouped.sizes("multinomial", 5000, 1025, 2), 17, dtype)
  agreement("one group of many elements", { 3000 }, 520, dtype)
end
do
  local x = poison(device, "bf16", 4, 0)
  local y, z = poison(device, "fp64", 4, 0), poison(device, "fp64", 4, 0)
  local worst = poison(device, "fp64", 1)
  lab.check(lab.plan { op = "agreement", variant = "smxx_plain", value = x, reference = y, magnitude = z,
    group_offsets = on_gpu(lab.tensor_from("cpu", "i32", { 0, 4 })), worst = worst,
    worst_row = poison(device, "i32", 1), worst_column = poison(device, "i32", 1),
    violations = poison(device, "fp64", 1) }):launch()
  t.is(worst:totable()[1], 0.0, "agreement of no columns")
end

t.done()
