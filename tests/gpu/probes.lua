-- The probes compute what their contracts say, on inputs whose results are exact.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local device = lab.device "cuda"

local function tensor(dtype, ...)
  return lab.tensor { device = device, dtype = dtype, shape = { ... } }
end

local function to_host(source)
  return lab.tensor { dtype = source.dtype, shape = source.shape }:copy(source)
end

local function all(source, expected)
  for i, value in ipairs(to_host(source):totable()) do
    if value ~= expected(i - 1) then return false, i - 1, value end
  end
  return true
end

for _, count in ipairs { 4, 1024, 4096 + 4, 1 << 22 } do
  local src, dst = tensor("fp32", count):normal { seed = 5 }, tensor("fp32", count)
  lab.plan { op = "probe_copy", variant = "smxx_vec16", src = src, dst = dst }:launch()
  t.is(lab.compare(dst, src, { absolute = 0 }).mismatched_bits, 0, ("probe_copy of %d words"):format(count))
end

for _, shape in ipairs { { 1, 8, 8 }, { 3, 200, 332 }, { 2, 1408, 1280 } } do
  for _, columns in ipairs { 32, 64, 128, 256 } do
    local dst, wanted = tensor("fp32", table.unpack(shape)), tensor("fp32", table.unpack(shape)):fill(3)
    lab.plan { op = "probe_store", variant = "sm90_tma", dst = dst, value = 3, tunables = { box_columns = columns } }
      :launch()
    t.is(lab.compare(dst, wanted).mismatched_bits, 0,
      ("probe_store over %d x %d x %d, boxes of %d columns"):format(shape[1], shape[2], shape[3], columns))
  end
end

for _, stride in ipairs { 1, 7, 32 } do
  local threads = 512
  local src, dst = tensor("fp32", threads * stride):fill(0), tensor("fp32", threads)
  local values = {}
  for i = 1, threads * stride do values[i] = (i - 1) % 1021 end
  src:assign(values)
  lab.plan { op = "probe_stride", variant = "smxx_plain", src = src, dst = dst, stride = stride, loads = 3 }:launch()
  t.ok(all(dst, function(i) return 3.0 * (i * stride % 1021) end), ("probe_stride, stride %d"):format(stride))
end

for _, ways in ipairs { 1, 5, 32 } do
  local dst = tensor("fp32", 32)
  lab.plan { op = "probe_conflict", variant = "smxx_plain", dst = dst, ways = ways, loads = 8 }:launch()
  t.ok(all(dst, function(lane) return 8.0 * (lane < ways and 32 * lane or lane) end),
    ("probe_conflict, %d ways"):format(ways))
end

do -- small integers: products and sums are exact in fp32
  local function integers(seed, ...)
    local host = lab.tensor { dtype = "bf16", shape = { ... } }
    local random, values = lab.random(seed), {}
    for i = 1, host.numel do values[i] = random:below(9) - 4 end
    return host:assign(values)
  end
  local a, b = integers(1, 64, 64), integers(2, 256, 64)
  local exact = lab.tensor { dtype = "fp64", shape = { 64, 256 } }
  lab.plan { op = "gemm", variant = "cpu_plain", a = a, b = b, d = exact }:launch()
  local d = tensor("fp32", 3, 64, 256)
  lab.plan { op = "probe_mma", variant = "sm90_wgmma", a = tensor("bf16", 64, 64):copy(a),
    b = tensor("bf16", 256, 64):copy(b), d = d, repeats = 5 }:launch()
  local expected = exact:totable()
  t.ok(all(d, function(i) return 5.0 * expected[i % (64 * 256) + 1] end), "probe_mma, three blocks, five times")
end

do
  local dst = tensor("i32", 100)
  for _, registers in ipairs { "few", "many" } do
    lab.plan { op = "probe_occupancy", variant = "smxx_stay", dst = dst, registers = registers,
      threads = 96, shared_bytes = 100000, cycles = 5000 }:launch()
    local shortest = math.huge
    for _, cycles in ipairs(to_host(dst):totable()) do shortest = math.min(shortest, cycles) end
    t.ok(shortest >= 5000, "probe_occupancy stays its cycles, " .. registers .. " registers")
  end
end

t.done()
