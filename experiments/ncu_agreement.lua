local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: does Nsight Compute read the same? The same launches, counted here and by `ncu`, which
-- runs this file again with --only. Clocks are nobody's to set, so rates are reported, not held.

-- Each kernel with the counters that its size makes repeatable: bytes of device memory only where they
-- are many times L2, bank conflicts only where arbitration does not decide them.
local function launches(device)
  local function tensor(dtype, ...)
    return lab.check(lab.tensor { device = device, dtype = dtype, shape = { ... } }):normal { seed = 1 }
  end
  local offsets = {}
  for e = 0, 32 do offsets[e + 1] = 4096 * e end
  return {
    copy_kernel = { groups = { "PAPER", "COALESCE" }, plan = { op = "probe_copy", variant = "smxx_vec16",
      src = tensor("fp32", 268435456), dst = tensor("fp32", 268435456) } },
    stride_kernel = { groups = { "COALESCE" }, plan = { op = "probe_stride", variant = "smxx_plain",
      src = tensor("fp32", 7340032), dst = tensor("fp32", 1048576), stride = 7 } },
    conflict_kernel = { groups = { "SMEM" }, plan = { op = "probe_conflict", variant = "smxx_plain",
      dst = tensor("fp32", 32), ways = 8, loads = 1000 } },
    mma_kernel = { metrics = { "achieved_occupancy", "tensor_active", "wgmma_bf16_flops" },
      plan = { op = "probe_mma", variant = "sm90_wgmma", a = tensor("bf16", 64, 64), b = tensor("bf16", 256, 64),
        d = tensor("fp32", 528, 64, 256), repeats = 2000 } },
    stay_kernel = { metrics = { "achieved_occupancy" }, plan = { op = "probe_occupancy", variant = "smxx_stay",
      dst = lab.tensor { device = device, dtype = "i32", shape = { 4 * device.multiprocessors }, fill = 0 },
      registers = "many", threads = 256, cycles = 2000000 } },
    ragged_kernel = { groups = { "PAPER" }, plan = { op = "m_grouped_gemm", variant = "sm90_ragged",
      a = tensor("bf16", 131072, 3072), b = tensor("bf16", 32, 2560, 3072), d = tensor("bf16", 131072, 2560),
      group_offsets = lab.tensor_from(device, "i32", offsets) } },
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
  local device = lab.check(lab.gpu(opt.device))
  local list = launches(device)
  if opt.only then
    local launch = lab.check(list[opt.only], "--only: there is no kernel " .. opt.only)
    lab.check(lab.plan(launch.plan)):launch()
    return device:synchronize()
  end
  local out = lab.recorded.open { experiment = "ncu_agreement", device = device, out = opt.out,
    kernels = { "m_grouped_gemm", "probe" }, record = opt.record, seed = 1 }
  require("tilelab.ncu").compare { device = device, launches = list, ncu = opt.ncu, out = out }
  lab.draw.print(lab.draw.record(out:close(), { folder = opt.out }))
end)
