local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: does Nsight Compute read the same? The same launches, counted here and by `ncu`, which
-- runs this file again with --only. Clocks are nobody's to set, so rates are reported, not held.

local groups = { "PAPER", "SMEM", "COALESCE" }

local function plans(device)
  local function tensor(dtype, ...)
    return lab.check(lab.tensor { device = device, dtype = dtype, shape = { ... } }):normal { seed = 1 }
  end
  local dst = lab.check(lab.tensor { device = device, dtype = "i32", shape = { 4 * device.multiprocessors } }):fill(0)
  local offsets = {}
  for e = 0, 32 do offsets[e + 1] = 512 * e end
  return {
    copy_kernel = { op = "probe_copy", variant = "smxx_vec16", src = tensor("fp32", 268435456), dst = tensor("fp32", 268435456) },
    stride_kernel = { op = "probe_stride", variant = "smxx_plain", src = tensor("fp32", 7340032), dst = tensor("fp32", 1048576), stride = 7 },
    conflict_kernel = { op = "probe_conflict", variant = "smxx_plain", dst = tensor("fp32", 32), ways = 8, loads = 1000 },
    mma_kernel = { op = "probe_mma", variant = "sm90_wgmma", a = tensor("bf16", 64, 64), b = tensor("bf16", 256, 64),
      d = tensor("fp32", 528, 64, 256), repeats = 2000 },
    stay_kernel = { op = "probe_occupancy", variant = "smxx_stay", dst = dst, registers = "many", threads = 256, cycles = 2000000 },
    ragged_kernel = { op = "m_grouped_gemm", variant = "sm90_ragged", a = tensor("bf16", 16384, 3072),
      b = tensor("bf16", 32, 2560, 3072), d = tensor("bf16", 16384, 2560), group_offsets = lab.tensor_from(device, "i32", offsets) },
  }
end

lab.main(function()
  local opt = lab.options {
    summary = "The same launches counted by tilelab and by Nsight Compute.",
    { "device", "string", "cuda", "GPU" },
    { "ncu", "string", "ncu", "Nsight Compute's command line", value = "FILE" },
    { "only", "string", nil, "launch one kernel and nothing else, as ncu is to see it", value = "KERNEL" },
    { "out", "string", "out/ncu_agreement", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the result under experiments/recorded" },
  }
  local device = lab.check(lab.device(opt.device))
  local list = plans(device)
  if opt.only then
    lab.check(lab.plan(lab.check(list[opt.only], "no kernel " .. opt.only))):launch()
    return device:synchronize()
  end
  local agreement = require "tilelab.ncu"
  local out = lab.recorded.open { experiment = "ncu_agreement", device = device, out = opt.out,
    kernels = { "m_grouped_gemm", "probe" }, record = opt.record, seed = 1 }
  agreement.compare { device = device, plans = list, groups = groups, ncu = opt.ncu, out = out }
  require("tilelab.draw.ncu_agreement").draw(out:close(), { folder = opt.out })
end)
