local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: what was the GPU doing, microsecond by microsecond? A dense product, the same product in
-- 32 ragged groups, and a copy, after each other, sampled by the hardware.

lab.main(function()
  local opt = lab.options {
    summary = "Multiprocessors, tensor cores and memory over time.",
    { "device", "string", "cuda", "GPU" },
    { "interval_us", "number", 10, "between samples", min = 5 },
    { "out", "string", "out/timeline", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the result under experiments/recorded" },
  }
  local device = lab.check(lab.gpu(opt.device))
  local function tensor(dtype, ...)
    return lab.check(lab.tensor { device = device, dtype = dtype, shape = { ... } }):normal { seed = 1 }
  end
  local offsets, random = { 0 }, lab.random(1, 2)
  for e = 1, 32 do offsets[e + 1] = offsets[e] + 256 + random:below(512) end
  local rows = offsets[33]
  local x, y = tensor("bf16", rows, 3072), tensor("bf16", rows, 2560)
  local plans = {
    lab.check(lab.plan { op = "gemm", variant = "cublaslt_dense", a = x, b = tensor("bf16", 2560, 3072), d = y }),
    lab.check(lab.plan { op = "m_grouped_gemm", variant = "sm90_ragged", a = x, b = tensor("bf16", 32, 2560, 3072),
      d = y, group_offsets = lab.tensor_from(device, "i32", offsets) }),
    lab.check(lab.plan { op = "probe_copy", variant = "smxx_vec16", src = tensor("fp32", 134217728),
      dst = tensor("fp32", 134217728) }),
  }
  local function run()
    for _, plan in ipairs(plans) do plan:launch() end
    device:synchronize()
  end
  run()
  local module = require "tilelab.draw.timeline"
  local out = lab.recorded.open { experiment = "timeline", device = device, out = opt.out,
    kernels = { "gemm", "m_grouped_gemm", "probe" }, record = opt.record, seed = 1 }
  local line = lab.check(lab.timeline { device = device, interval_us = opt.interval_us, run = run })
  for _, row in ipairs(module.rows(line)) do out:row(row) end
  lab.draw.print(lab.draw.record(out:close(), { folder = opt.out }))
end)
