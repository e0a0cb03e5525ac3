-- m_grouped_gemm/cublaslt_loop against the CPU reference in fp64: sizes far from the mean, which take an
-- algorithm that was found for more rows, any number of streams, and a graph.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local device = lab.device "cuda"

local function on_gpu(host)
  return lab.tensor { device = device, dtype = host.dtype, shape = host.shape }:copy(host)
end

local function absolute(x)
  local values = x:totable()
  for i = 1, #values do values[i] = math.abs(values[i]) end
  return lab.tensor { dtype = x.dtype, shape = x.shape }:assign(values)
end

-- Operands of a problem, its plan, and check(name) of what the plan's d holds.
local function problem(sizes, n, k, layout, tail, tunables)
  local offsets, rows = { 0 }, 0
  for g, size in ipairs(sizes) do
    rows = rows + size
    offsets[g + 1] = rows
  end
  local a = lab.tensor { dtype = "bf16", shape = { rows + tail, k } }:normal { seed = 1 }
  local b = lab.tensor { dtype = "bf16", shape = layout == "nt" and { #sizes, n, k } or { #sizes, k, n } }
    :normal { seed = 2 }
  local group_offsets = lab.tensor_from("cpu", "i32", offsets)
  local function product(x, y)
    local d = lab.tensor { dtype = "fp64", shape = { rows + tail, n }, fill = 0 }
    lab.check(lab.plan { op = "m_grouped_gemm", variant = "cpu_ragged", a = x, b = y, d = d, layout = layout,
      group_offsets = group_offsets }):launch()
    return d
  end
  local d = lab.tensor { device = device, dtype = "bf16", shape = { rows + tail, n } } -- poisoned
  local plan = lab.check(lab.plan { op = "m_grouped_gemm", variant = "cublaslt_loop", a = on_gpu(a), b = on_gpu(b),
    d = d, layout = layout, group_offsets = on_gpu(group_offsets), counts_host = lab.tensor_from("cpu", "i32", sizes),
    tunables = tunables })
  local exact, magnitude
  return plan, d, function(name)
    exact, magnitude = exact or product(a, b), magnitude or product(absolute(a), absolute(b))
    if rows > 0 then
      local result = lab.compare(d:rows(1, rows), exact:rows(1, rows), { relative = 2 ^ -8, scaled = 2 ^ -22,
        scale = magnitude:rows(1, rows) })
      t.ok(result.pass, ("%s: %d violations"):format(name, result.violations))
    end
    local untouched = true
    for _, value in ipairs(d:rows(rows + 1, rows + tail):totable()) do untouched = untouched and value ~= value end
    t.ok(untouched, name .. ": rows beyond the last count stay untouched")
  end
end

local function check(name, ...)
  local plan, _, agrees = problem(...)
  plan:launch()
  device:synchronize()
  agrees(name)
end

local uneven = { 0, 1, 3, 700, 8, 0, 64, 65, 129, 12, 300, 2, 256 }
for _, layout in ipairs { "nt", "nn" } do
  check(layout .. ", uneven", uneven, 264, 136, layout, 5)
  check(layout .. ", one group", { 77 }, 8, 8, layout, 1)
  check(layout .. ", all empty", { 0, 0, 0 }, 64, 64, layout, 3)
  for _, streams in ipairs { 1, 2, 8 } do
    check(("%s, %d streams"):format(layout, streams), uneven, 72, 64, layout, 2, { streams = streams })
  end
end

do
  local plan, d, agrees = problem(uneven, 128, 64, "nt", 4)
  local graph = lab.check(device:graph(function() plan:launch() end))
  for _ = 1, 2 do
    d:poison()
    graph:launch()
    device:synchronize()
    agrees "a graph, replayed"
  end
end

-- --- what it refuses ---------------------------------------------------------------------------

local function gpu(dtype, ...) return lab.tensor { device = device, dtype = dtype, shape = { ... } } end
local args = { op = "m_grouped_gemm", variant = "cublaslt_loop", a = gpu("bf16", 24, 16), b = gpu("bf16", 2, 8, 16),
  d = gpu("bf16", 24, 8), group_offsets = lab.tensor_from(device, "i32", { 0, 8, 16 }) }
local legal, reason = lab.legal(args)
t.ok(not legal, "no counts")
t.like(reason, "'counts_host' %[num_groups%] is missing: the host starts one product a group", "with the reason")
args.counts_host = lab.tensor_from(device, "i32", { 8, 8 })
t.error(function() lab.plan(args) end, "'counts_host' is on cuda:%d; the host reads it, so it must be on the cpu",
  "counts on the device")
for _, case in ipairs { { { 8, -1 }, "counts_host%[1%] is %-1, below 0" },
  { { 20, 5 }, "counts_host%[0%] to %[1%] add up to 25, beyond the 24 rows" } } do
  args.counts_host = lab.tensor_from("cpu", "i32", case[1])
  args.d:poison()
  local plan = lab.check(lab.plan(args))
  t.error(function() plan:launch() end, case[2], case[2])
  local untouched = true
  for _, value in ipairs(args.d:totable()) do untouched = untouched and value ~= value end
  t.ok(untouched, "and nothing is written")
end
t.done()
