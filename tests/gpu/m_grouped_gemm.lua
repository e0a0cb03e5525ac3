-- m_grouped_gemm on the GPU against the CPU reference in fp64, element by element.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local device = lab.device "cuda"

local function on_gpu(host)
  return lab.tensor { device = device, dtype = host.dtype, shape = host.shape }:copy(host)
end

-- sizes: rows of each group; tail: rows beyond the last offset.
local function check(name, sizes, n, k, layout, tail)
  local offsets, rows = { 0 }, 0
  for i, size in ipairs(sizes) do
    rows = rows + size
    offsets[i + 1] = rows
  end
  local m, groups = rows + (tail or 0), #sizes
  local a = lab.tensor { dtype = "bf16", shape = { m, k } }:normal { seed = 1 }
  local b = lab.tensor { dtype = "bf16", shape = layout == "nt" and { groups, n, k } or { groups, k, n } }
    :normal { seed = 2 }
  local group_offsets = lab.tensor_from("cpu", "i32", offsets)
  local exact = lab.tensor { dtype = "fp64", shape = { m, n }, fill = 0 }
  local magnitude = lab.tensor { dtype = "fp64", shape = { m, n }, fill = 0 }
  local function reference(x, w, d)
    lab.check(lab.plan { op = "m_grouped_gemm", variant = "cpu_ragged", a = x, b = w, d = d,
      group_offsets = group_offsets, layout = layout }):launch()
  end
  local function absolute(x)
    local values = x:totable()
    for i = 1, #values do values[i] = math.abs(values[i]) end
    return lab.tensor { dtype = "bf16", shape = x.shape }:assign(values)
  end
  reference(a, b, exact)
  reference(absolute(a), absolute(b), magnitude)
  local d = lab.tensor { device = device, dtype = "bf16", shape = { m, n } } -- poisoned
  local plan = lab.check(lab.plan { op = "m_grouped_gemm", variant = "sm90_ragged", a = on_gpu(a), b = on_gpu(b),
    d = d, group_offsets = on_gpu(group_offsets), layout = layout })
  plan:launch()
  device:synchronize()
  if rows > 0 then
    local result = lab.compare(d:rows(1, rows), exact:rows(1, rows), { relative = 2 ^ -8,
      scaled = 2 ^ -22 * math.max(1, k / 4096), scale = magnitude:rows(1, rows) })
    t.ok(result.pass, ("%s, %s, n %d, k %d (worst %.3g at row %d, column %d; %d violations)"):format(name, layout,
      n, k, result.worst_ratio, result.worst_coord[1], result.worst_coord[2], result.violations))
  end
  if (tail or 0) > 0 then
    local untouched = true
    for _, value in ipairs(d:rows(rows + 1, m):totable()) do untouched = untouched and value ~= value end
    t.ok(untouched, name .. ": rows beyond the last offset stay untouched")
  end
end

for _, layout in ipairs { "nt", "nn" } do
  check("one group", { 128 }, 256, 64, layout)
  check("two tiles each way", { 256 }, 512, 256, layout)
  check("ragged", { 0, 1, 63, 64, 65, 129, 300, 0, 7, 193 }, 264, 136, layout, 5)
  check("narrow", { 5, 0, 70, 130 }, 8, 72, layout, 3)
  check("odd widths", { 33, 257, 100 }, 768, 1408, layout)
  check("all empty", { 0, 0, 0 }, 64, 64, layout, 9)
  local sizes = {}
  for i = 1, 40 do sizes[i] = i * 7 % 97 end
  check("forty groups", sizes, 320, 200, layout)
end

t.done()
