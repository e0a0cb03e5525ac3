local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: what limits each kernel, compute, device memory or L2? Kernels under ceilings that were
-- measured in the same run: copies, the vendor's GEMM, and the counter's peak at the measured clock.

local function kernels(device, tensor)
  local list = {}
  local function kernel(name, plan) list[#list + 1] = { name = name, plan = lab.check(lab.plan(plan)), args = plan } end
  for _, size in ipairs { 512, 1024, 2048, 8192 } do
    local plan = { op = "gemm", variant = "cublaslt_dense", a = tensor("bf16", size, size),
      b = tensor("bf16", size, size), d = tensor("bf16", size, size) }
    kernel(("cublaslt %d³"):format(size), plan)
    list[#list].plan:tune()
  end
  -- Products of an expert layer (w13, forward) with the same operands: two with many rows, and one whose
  -- weights are read for few.
  local grouped = require "tilelab.grouped"
  local function filled(seed, ...)
    return grouped.fill(lab.check(lab.tensor { device = device, dtype = "bf16", shape = { ... } }), seed)
  end
  local x, weights = filled(1, 32768, 3072), filled(2, 128, 2560, 3072)
  for _, problem in ipairs { { 32768, 32 }, { 32768, 128 }, { 1024, 32 } } do
    local rows, experts = problem[1], problem[2]
    local offsets = grouped.offsets(grouped.sizes("multinomial", rows, experts, 1))
    kernel(("fwd_w13, %d experts, %d rows"):format(experts, rows), { op = "m_grouped_gemm", variant = "sm90_ragged",
      a = x:view(0, { rows, 3072 }), b = weights:view(0, { experts, 2560, 3072 }),
      d = lab.check(lab.tensor { device = device, dtype = "bf16", shape = { rows, 2560 } }),
      group_offsets = lab.tensor_from(device, "i32", offsets) })
  end
  return list
end

lab.main(function()
  local opt = lab.options {
    summary = "Hierarchical roofline with measured ceilings.",
    { "device", "string", "cuda", "GPU" },
    { "rounds", "integer", 15, "rounds of the timing", min = 10 },
    { "out", "string", "out/roofline", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the result under experiments/recorded" },
  }
  local device = lab.check(lab.gpu(opt.device))
  local function tensor(dtype, ...)
    return lab.check(lab.tensor { device = device, dtype = dtype, shape = { ... } }):normal { seed = 1 }
  end
  local function copy(words)
    return { op = "probe_copy", variant = "smxx_vec16", src = tensor("fp32", words), dst = tensor("fp32", words) }
  end
  local roofline = require "tilelab.roofline"
  local list = kernels(device, tensor) -- before the provenance, which names the vendor's library once it is open
  local out = lab.recorded.open { experiment = "roofline", device = device, out = opt.out,
    kernels = { "gemm", "m_grouped_gemm", "probe" }, record = opt.record, seed = 1,
    extra = { rounds = opt.rounds } }
  roofline.measure { device = device, kernels = list, rounds = opt.rounds, out = out,
    copy = copy(536870912), near_copy = copy(4194304) }
  lab.draw.print(lab.draw.record(out:close(), { folder = opt.out }))
end)
