-- gemm/cublaslt_dense against the CPU reference in fp64, element by element.

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

local function reference(a, b, start, layout, beta)
  local d = lab.tensor { dtype = "fp64", shape = start.shape }:convert(start)
  lab.check(lab.plan { op = "gemm", variant = "cpu_plain", a = a, b = b, d = d, layout = layout, beta = beta }):launch()
  return d
end

-- Of one rounding to the output, and of inputs (TF32 keeps 11 bits) and sums relative to sum |a||b|.
local OUTPUT = { bf16 = 2 ^ -8, fp32 = 2 ^ -22 }
local INPUT = { bf16 = 0, fp32 = 2 ^ -10 }

local function inputs(m, n, k, layout, dtype, out)
  return {
    a = lab.tensor { dtype = dtype, shape = layout == "tn" and { k, m } or { m, k } }:normal { seed = m },
    b = lab.tensor { dtype = dtype, shape = layout == "nt" and { n, k } or { k, n } }:normal { seed = n },
    d = lab.tensor { dtype = out, shape = { m, n } }:normal { seed = k },
  }
end

local function bound(host, layout, beta, dtype, out, k)
  -- At beta 1 and bf16 out cuBLASLt rounds the product before it adds d, and then the sum.
  local product = out == "bf16" and beta == 1 and 2 ^ -8 or 0
  -- Tensor cores truncate, so the error of a sum grows with its length (cuBLASLt: 1.3 * 2^-22 at 1408).
  local sums = (out == "fp32" and 2 ^ -20 or 2 ^ -22) * math.max(1, k / 4096)
  return { relative = OUTPUT[out], scaled = INPUT[dtype] + product + sums,
    scale = reference(absolute(host.a), absolute(host.b), absolute(host.d), layout, beta) }
end

local function check(m, n, k, layout, beta, dtype, out)
  local name = ("%s %s to %s, m %d n %d k %d, beta %d"):format(layout, dtype, out, m, n, k, beta)
  local host = inputs(m, n, k, layout, dtype, out)
  local d = on_gpu(host.d)
  if beta == 0 then d:poison() end
  local plan, reason = lab.plan { op = "gemm", variant = "cublaslt_dense", a = on_gpu(host.a), b = on_gpu(host.b),
    d = d, layout = layout, beta = beta }
  if not plan then return t.ok(false, name .. ": " .. reason) end
  plan:launch()
  local exact = reference(host.a, host.b, host.d, layout, beta)
  local result = lab.compare(d, exact, bound(host, layout, beta, dtype, out, k))
  t.ok(result.pass, ("%s (worst %.3g of the bound; relative error %.2g)"):format(name, result.worst_ratio,
    result.relative_frobenius))
end

local SHAPES = { { 8, 8, 8 }, { 24, 40, 56 }, { 136, 264, 72 }, { 1000, 24, 520 }, { 56, 1032, 8 }, { 384, 512, 1408 } }
for _, layout in ipairs { "nt", "nn", "tn" } do
  for _, beta in ipairs { 0, 1 } do
    for _, shape in ipairs(SHAPES) do
      local m, n, k = table.unpack(shape)
      check(m, n, k, layout, beta, "bf16", "bf16")
      check(m, n, k, layout, beta, "bf16", "fp32")
      check(m, n, k, layout, beta, "fp32", "fp32")
    end
  end
end

-- --- what it refuses ---------------------------------------------------------------------------

local function plan_of(a, b, d, more)
  local args = { op = "gemm", variant = "cublaslt_dense", a = a, b = b, d = d }
  for key, value in pairs(more or {}) do args[key] = value end
  return args
end
local function gpu(dtype, ...) return lab.tensor { device = device, dtype = dtype, shape = { ... } } end

local legal, reason = lab.legal(plan_of(gpu("fp32", 8, 8), gpu("fp32", 8, 8), gpu("bf16", 8, 8)))
t.ok(not legal, "fp32 to bf16")
t.like(reason, "fp32 inputs give fp32 only", "with the reason")
legal, reason = lab.legal(plan_of(gpu("fp64", 8, 8), gpu("fp64", 8, 8), gpu("fp64", 8, 8)))
t.ok(not legal and reason:find "fp64", "fp64 is left to the CPU")
local odd = gpu("bf16", 65):normal {}
local plan = lab.check(lab.plan(plan_of(odd:view(1, { 8, 8 }), gpu("bf16", 8, 8):normal {}, gpu("fp32", 8, 8))))
t.error(function() plan:launch() end, "aligned", "an operand at an odd address")
t.ok(plan:workspace() == 32 << 20, "a workspace of 32 MiB")

-- --- sums of nothing ---------------------------------------------------------------------------

local zeros = gpu("fp32", 8, 16)
lab.check(lab.plan(plan_of(gpu("bf16", 8, 0), gpu("bf16", 16, 0), zeros))):launch()
t.ok(lab.compare(zeros, lab.tensor { shape = { 8, 16 }, fill = 0 }).mismatched_bits == 0, "k = 0 gives zeros")
zeros:fill(3)
lab.check(lab.plan(plan_of(gpu("bf16", 8, 0), gpu("bf16", 16, 0), zeros, { beta = 1 }))):launch()
t.is(zeros:totable()[1], 3.0, "or leaves d as it is")
lab.check(lab.plan(plan_of(gpu("bf16", 0, 8), gpu("bf16", 16, 8), gpu("fp32", 0, 16)))):launch()
device:synchronize()
t.ok(true, "m = 0 does nothing")

-- --- tuning ------------------------------------------------------------------------------------

do
  local m, n, k = 1024, 768, 2048
  local host = inputs(m, n, k, "nt", "bf16", "bf16")
  local a, b, d = on_gpu(host.a), on_gpu(host.b), on_gpu(host.d)
  local tuned = lab.check(lab.plan(plan_of(a, b, d)))
  local pick = tuned:tune().heuristic
  t.ok(pick >= 1 and pick <= 8, ("tuned to heuristic %d"):format(pick))
  t.is(tuned:tunables().heuristic, pick, "which the plan keeps")
  local exact, limit = reference(host.a, host.b, host.d, "nt", 0), bound(host, "nt", 0, "bf16", "bf16", k)
  local agree, tried = true, 0
  for heuristic = 1, 8 do
    d:poison()
    tuned:set_tunable("heuristic", heuristic)
    local ok, message = pcall(tuned.launch, tuned)
    if ok then
      tried = tried + 1
      agree = agree and lab.compare(d, exact, limit).pass
    else
      message = tostring(message)
      t.ok(message:find "suggests only" or message:find "NOT_SUPPORTED", message)
    end
  end
  t.ok(agree and tried >= 1, ("all %d suggestions compute the same"):format(tried))
end
t.done()
