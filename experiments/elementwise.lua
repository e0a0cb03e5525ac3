local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: how near do the step's memory-bound kernels come to a copy of as many bytes? Each beside that
-- copy in the same rounds, after a launch at a small size agreed with the CPU reference.

-- What was measured of a case, or nil and why not.
local function measure(pool, case, opt)
  local right, wrong = require("tilelab.against_reference")(case.make(pool, opt.check_tokens), case.without)
  if not right then return nil, "wrong at " .. opt.check_tokens .. " tokens: " .. tostring(wrong) end
  local args, largest = case.make(pool, opt.tokens), 0
  for _, value in pairs(args) do
    if type(value) == "userdata" then largest = math.max(largest, value.bytes) end
  end
  local plan = lab.check(lab.plan(args))
  local bytes = plan:bytes()
  local words = math.max(1024, math.floor(bytes / 8 / 1024) * 1024) -- read and written
  pool:reset()
  local copy = lab.check(lab.plan { op = "probe_copy", variant = "smxx_vec16", src = pool:normal("fp32", words),
    dst = pool:normal("fp32", words) })
  local timed = lab.measure { contenders = { { name = "kernel", plan = plan }, { name = "copy", plan = copy } },
    rounds = opt.rounds, warmup = 1, mode = "hot", seed = 1 }
  local kernel, ratio, scale = timed.by_name.kernel, timed:ratio("copy", "kernel"), bytes / (8 * words)
  return { op = case.op, case = case.case, precision = case.precision, variant = case.variant, largest_bytes = largest,
    logical_bytes = bytes, time_us = kernel.stats.median, time_us_lo = kernel.stats.median_lo,
    time_us_hi = kernel.stats.median_hi, copy_us = timed.by_name.copy.stats.median, copy_ratio = scale * ratio.median,
    copy_ratio_lo = scale * ratio.lo, copy_ratio_hi = scale * ratio.hi,
    logical_gbps = bytes / kernel.stats.median * 1e-3, rounds = timed.rounds,
    sm_clock_mhz = kernel.clock_stats and kernel.clock_stats.median or "-" }
end

lab.main(function()
  local opt = lab.options {
    summary = "Memory-bound kernels of the training step against a copy.",
    { "device", "string", "cuda", "GPU" },
    { "only", "list", {}, "operations; default: all" },
    { "tokens", "integer", 16384, "of a micro-batch", min = 64 },
    { "check_tokens", "integer", 192, "of the launch that is held against the reference", min = 1 },
    { "rounds", "integer", 11, "rounds of the timing", min = 6 },
    { "out", "string", "out/elementwise", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the result under experiments/recorded" },
  }
  local cases, ops, known, only, wrong = require "tilelab.elementwise.cases", {}, {}, {}, 0
  for _, case in ipairs(cases.list()) do
    if not known[case.op] then known[case.op], ops[#ops + 1] = true, case.op end
  end
  for _, op in ipairs(opt.only) do
    if not known[op] then
      lab.usage_error("--only: there is no '%s' among them; choose from %s", op, table.concat(ops, ", "))
    end
    only[op] = true
  end
  if opt.record and #opt.only > 0 then lab.usage_error("--only measures a part; --record keeps the whole") end
  local device = lab.check(lab.gpu(opt.device))
  local out = lab.recorded.open { experiment = "elementwise", device = device, out = opt.out, seed = 1,
    kernels = { "adamw", "combine", "cross_entropy", "embedding", "permute", "probe", "rmsnorm", "rope", "router",
      "swiglu" }, record = opt.record, extra = { rounds = opt.rounds, tokens = opt.tokens } }
  local pool = cases.pool(device, math.max(opt.tokens, opt.check_tokens))
  print(("%-24s %-20s %-5s %9s %9s %7s"):format("op", "case", "", "MB", "us", "share"))
  for _, case in ipairs(cases.list()) do
    if #opt.only == 0 or only[case.op] then
      local row, why = measure(pool, case, opt)
      if row then
        out:row(row)
        print(("%-24s %-20s %-5s %9.1f %9.2f %7.3f"):format(row.op, row.case, row.precision, row.logical_bytes / 1e6,
          row.time_us, row.copy_ratio))
      else
        wrong = wrong + 1
        io.stderr:write(("%s, %s, %s: %s\n"):format(case.op, case.case, case.precision, why))
      end
      collectgarbage()
    end
  end
  local data = (wrong > 0 and out:keep() or out):close()
  lab.draw.print(lab.draw.record(data, { folder = opt.out }))
  return wrong == 0
end)
