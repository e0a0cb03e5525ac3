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
  for _, rows in ipairs { 16384, 1024 } do -- 32 experts, fprop of the 30B-A3B layout's w13
    local offsets = {}
    for e = 0, 32 do offsets[e + 1] = math.floor(rows * e / 32) end
    kernel(("sm90_ragged, %d rows"):format(rows), { op = "m_grouped_gemm", variant = "sm90_ragged",
      a = tensor("bf16", rows, 3072), b = tensor("bf16", 32, 2560, 3072), d = tensor("bf16", rows, 2560),
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
  require("tilelab.draw.roofline").draw(out:close(), { folder = opt.out })
end)
