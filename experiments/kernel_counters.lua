local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: what holds each kernel back? Occupancy beside what the launch allows, why warps did not
-- issue, and the bytes that were moved beside those the equation needs.

local function kernels(device)
  local function tensor(dtype, ...)
    return lab.check(lab.tensor { device = device, dtype = dtype, shape = { ... } }):normal { seed = 1 }
  end
  local offsets = {}
  for e = 0, 32 do offsets[e + 1] = 512 * e end
  local x, y = tensor("bf16", 16384, 3072), tensor("bf16", 16384, 2560)
  local dense = { op = "gemm", variant = "cublaslt_dense", a = x, b = tensor("bf16", 2560, 3072), d = y }
  local ragged = { op = "m_grouped_gemm", variant = "sm90_ragged", a = x, b = tensor("bf16", 32, 2560, 3072), d = y,
    group_offsets = lab.tensor_from(device, "i32", offsets) }
  return {
    { "copy, 2 GiB", { op = "probe_copy", variant = "smxx_vec16", src = tensor("fp32", 268435456),
      dst = tensor("fp32", 268435456) } },
    { "loads, stride 8", { op = "probe_stride", variant = "smxx_plain", src = tensor("fp32", 134217728),
      dst = tensor("fp32", 16777216), stride = 8 } },
    { "16-way conflict", { op = "probe_conflict", variant = "smxx_plain", dst = tensor("fp32", 32), ways = 16,
      loads = 60000 } },
    { "cublaslt dense", dense },
    { "ragged, 32 experts", ragged },
  }
end

lab.main(function()
  local opt = lab.options {
    summary = "Occupancy, stall reasons and bytes of a few kernels, by counters.",
    { "device", "string", "cuda", "GPU" },
    { "out", "string", "out/kernel_counters", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the result under experiments/recorded" },
  }
  local device = lab.check(lab.gpu(opt.device))
  local module = require "tilelab.draw.kernel_counters"
  local list = kernels(device)
  for _, kernel in ipairs(list) do kernel.plan = lab.check(lab.plan(kernel[2])) end -- opens the vendor's library
  local out = lab.recorded.open { experiment = "kernel_counters", device = device, out = opt.out,
    kernels = { "gemm", "m_grouped_gemm", "probe" }, record = opt.record, seed = 1 }
  for _, kernel in ipairs(list) do
    for _, row in ipairs(module.rows(kernel[1], kernel.plan)) do
      out:row(row)
      print(("%-20s %-28s %16.6g %s"):format(row.kernel, row.quantity, row.value, row.unit))
    end
  end
  lab.draw.print(lab.draw.record(out:close(), { folder = opt.out }))
end)
