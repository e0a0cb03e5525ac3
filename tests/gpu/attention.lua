-- attention and attention_backward: every variant for the GPU against cpu_plain in fp64, with heads that
-- share keys, odd sequences where the variant takes them, one key that takes all, and a graph.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local against = dofile("tests/lua/against_cpu.lua")
local device = against.device

-- Variants whose sums come in any order.
local UNSTEADY = { ["attention_backward/cudnn_sdpa"] = true }

-- Of one rounding of an operand: p is one in the second product, and so is ds. TF32 keeps 11 bits.
local OPERAND = { bf16 = 2 ^ -8, fp32 = 2 ^ -10 }
-- Of a score; products of bf16 are exact in fp32.
local SCORE = { bf16 = 2 ^ -10, fp32 = 2 ^ -6 }
-- A gradient's error in all, as a share of its norm, and that of one element as a share of the largest:
-- p and ds, the head's share of dk and dv, and the result are rounded.
local NORM = { bf16 = 2 ^ -7, fp32 = 2 ^ -9 }
local LARGEST = { bf16 = 2 ^ -6, fp32 = 2 ^ -8 }

local function variants(op)
  local list = {}
  for _, kernel in ipairs(lab.kernels(op)) do
    if kernel.arch ~= "cpu" then list[#list + 1] = kernel.variant end
  end
  return list
end

local function widened(source)
  return against.host("fp64", table.unpack(source.shape)):convert(source)
end

-- Values of `source` as its dtype holds them, with each element passed through `change(value, head)`.
local function changed(source, change)
  local values, shape = source:totable(), source.shape
  for i = 1, #values do values[i] = change(values[i], (i - 1) // shape[4] % shape[3] + 1) end
  return against.host(source.dtype, table.unpack(shape)):assign(values)
end

local function forward_reference(qkv, case)
  local o = against.host("fp64", case.batch, case.sequence, case.heads, case.head_dim)
  local lse = against.host("fp64", case.batch, case.heads, case.sequence)
  lab.check(lab.plan { op = "attention", variant = "cpu_plain", qkv = widened(qkv), o = o, lse = lse }):launch()
  return o, lse
end

local function name_of(op, variant, dtype, case)
  return ("%s/%s %s, %d x %d, %d/%d heads x %d%s"):format(op, variant, dtype, case.batch, case.sequence, case.heads,
    case.kv_heads, case.head_dim, case.sharp and ", sharp" or "")
end

local function qkv_of(case, dtype)
  local qkv = against.normal(dtype, case.sequence + case.heads, case.batch, case.sequence,
    case.heads + 2 * case.kv_heads, case.head_dim)
  if not case.sharp then return qkv end
  return changed(qkv, function(value, head) return head <= case.heads and 4 * value or value end)
end

-- Whether the variant takes it; says so where it does not.
local function taken(spec, name)
  local args = { op = spec.op, variant = spec.variant }
  for _, list in ipairs { spec.inputs, spec.outputs } do
    for key, tensor in pairs(list) do
      args[key] = lab.check(lab.tensor { device = device, dtype = tensor.dtype, shape = tensor.shape })
    end
  end
  local legal, reason = lab.legal(args)
  if not legal then t.skip(name .. ": " .. reason) end
  return legal
end

local function steady(spec)
  local first, second = against.gpu(spec), against.gpu(spec)
  local same = true
  for key, tensor in pairs(first) do same = same and against.same(tensor, second[key]) end
  return first, same or UNSTEADY[spec.op .. "/" .. spec.variant]
end

local function check_forward(variant, dtype, case)
  local name = name_of("attention", variant, dtype, case)
  local qkv = qkv_of(case, dtype)
  local spec = { op = "attention", variant = variant, inputs = { qkv = qkv },
    outputs = { o = against.host(dtype, case.batch, case.sequence, case.heads, case.head_dim),
      lse = against.host("fp32", case.batch, case.heads, case.sequence) } }
  if not taken(spec, name) then return end
  local gpu, same = steady(spec)
  local o, lse = forward_reference(qkv, case)
  local magnitude = forward_reference(changed(qkv, function(value, head)
    return head > case.heads + case.kv_heads and math.abs(value) or value
  end), case)
  local found = lab.compare(gpu.o, o, { relative = against.rounding[dtype], scaled = OPERAND[dtype],
    scale = magnitude })
  t.ok(found.pass and same, ("%s: o (worst %.2g of the bound)"):format(name, found.worst_ratio))
  found = lab.compare(gpu.lse, lse, { absolute = SCORE[dtype], relative = 2 ^ -20 })
  t.ok(found.pass, ("%s: lse (worst %.2g of the bound)"):format(name, found.worst_ratio))
end

-- The heads first .. last of [batch, sequence, heads, head_dim] as a list.
local function heads_of(tensor, first, last)
  local list, values, shape = {}, tensor:totable(), tensor.shape
  for row = 0, shape[1] * shape[2] - 1 do
    for i = ((row * shape[3]) + first - 1) * shape[4] + 1, ((row * shape[3]) + last) * shape[4] do
      list[#list + 1] = values[i]
    end
  end
  return list
end

-- The error of one gradient: of the norm, and the largest of an element; NaN fails both.
local function errors_of(gpu, reference)
  local square, norm, worst, largest = 0, 0, 0, 0
  for i, want in ipairs(reference) do
    local difference = math.abs(gpu[i] - want)
    square, norm = square + difference ^ 2, norm + want ^ 2
    if not (difference <= worst) then worst = difference end
    largest = math.max(largest, math.abs(want))
  end
  return math.sqrt(square / norm), worst / largest
end

local function check_backward(variant, dtype, case)
  local name = name_of("attention_backward", variant, dtype, case)
  local qkv = qkv_of(case, dtype)
  local o, lse = forward_reference(qkv, case)
  local shape = { case.batch, case.sequence, case.heads, case.head_dim }
  local inputs = { qkv = qkv, dout = against.normal(dtype, 3, table.unpack(shape)),
    o = against.host(dtype, table.unpack(shape)):convert(o),
    lse = against.host("fp32", case.batch, case.heads, case.sequence):convert(lse) }
  local spec = { op = "attention_backward", variant = variant, inputs = inputs,
    outputs = { dqkv = against.host(dtype, table.unpack(qkv.shape)) } }
  if not taken(spec, name) then return end
  local gpu, same = steady(spec)
  local dqkv = against.host("fp64", table.unpack(qkv.shape))
  lab.check(lab.plan { op = "attention_backward", variant = "cpu_plain", qkv = widened(qkv),
    dout = widened(inputs.dout),
    o = widened(inputs.o), lse = widened(inputs.lse), dqkv = dqkv }):launch()
  local q, kv = case.heads, case.kv_heads
  for _, part in ipairs { { "dq", 1, q }, { "dk", q + 1, q + kv }, { "dv", q + kv + 1, q + 2 * kv } } do
    local norm, worst = errors_of(heads_of(gpu.dqkv, part[2], part[3]), heads_of(dqkv, part[2], part[3]))
    t.ok(norm <= NORM[dtype] and worst <= LARGEST[dtype] and same,
      ("%s: %s (%.2g of the norm, %.2g of the largest%s)"):format(name, part[1], norm, worst,
        same and "" or ", not the same bits again"))
  end
end

-- A graph gives the bits that launches give.
local function check_graph(op, variant, dtype)
  local qkv = against.normal(dtype, 1, 2, 256, 8, 128)
  local function gpu(kind, ...) return lab.check(lab.tensor { device = device, dtype = kind, shape = { ... } }) end
  local args = { op = op, variant = variant, qkv = gpu(dtype, 2, 256, 8, 128):copy(qkv), o = gpu(dtype, 2, 256, 4, 128),
    lse = gpu("fp32", 2, 4, 256) }
  local output = args.o
  if op == "attention_backward" then
    args.o:normal { seed = 2 }
    args.lse:fill(20)
    args.dout, output = gpu(dtype, 2, 256, 4, 128):normal { seed = 3 }, gpu(dtype, 2, 256, 8, 128)
    args.dqkv = output
  end
  local plan, reason = lab.plan(args)
  if not plan then return t.skip(("%s/%s in a graph: %s"):format(op, variant, reason)) end
  plan:launch()
  local direct = output:clone()
  local graph = lab.check(device:graph(function() plan:launch() end))
  output:poison()
  graph:launch()
  device:synchronize()
  local found = lab.compare(output, direct)
  local near = UNSTEADY[op .. "/" .. variant] and found.nonfinite == 0 and found.relative_frobenius < 2 ^ -8
  t.ok(found.mismatched_bits == 0 or near, ("%s/%s in a graph"):format(op, variant))
end

local function case(batch, sequence, heads, kv_heads, head_dim, sharp)
  return { batch = batch, sequence = sequence, heads = heads, kv_heads = kv_heads, head_dim = head_dim, sharp = sharp }
end

local CASES = { case(1, 128, 2, 2, 128), case(2, 256, 6, 1, 128), case(1, 384, 24, 4, 128), case(2, 128, 4, 2, 64),
  case(1, 256, 4, 1, 128, true), case(2, 100, 4, 2, 128), case(1, 129, 6, 3, 128), case(3, 77, 8, 8, 64),
  case(1, 1000, 2, 1, 128), case(1, 2, 2, 1, 128), case(1, 1, 2, 1, 128) }

for _, dtype in ipairs { "bf16", "fp32" } do
  for _, one in ipairs(CASES) do
    for _, variant in ipairs(variants "attention") do check_forward(variant, dtype, one) end
    if one.sequence > 1 then -- a single position has gradients of 0 but for dv
      for _, variant in ipairs(variants "attention_backward") do check_backward(variant, dtype, one) end
    end
  end
end
for _, op in ipairs { "attention", "attention_backward" } do
  for _, variant in ipairs(variants(op)) do check_graph(op, variant, "bf16") end
end
t.done()
