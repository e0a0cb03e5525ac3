local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: how fast is causal attention at the shape of 30b-a3b, forward and backward, and what do gradients
-- with the same bits each time cost? Sequences of several lengths, as many tokens in each.

local HEADS, KV_HEADS, HEAD_DIM = 24, 4, 128
local VARIANTS = { { "attention", "cudnn_sdpa" }, { "attention_backward", "cudnn_sdpa" },
  { "attention_backward", "cudnn_ordered" } }

-- Arguments of both operations on one set of tensors.
local function tensors(device, batch, sequence)
  local function tensor(dtype, ...)
    return lab.check(lab.tensor { device = device, dtype = dtype, shape = { ... }, fill = 0 })
  end
  local packed = HEADS + 2 * KV_HEADS
  local x = { qkv = tensor("bf16", batch, sequence, packed, HEAD_DIM):normal { seed = 1 },
    o = tensor("bf16", batch, sequence, HEADS, HEAD_DIM), lse = tensor("fp32", batch, HEADS, sequence),
    dout = tensor("bf16", batch, sequence, HEADS, HEAD_DIM):normal { seed = 2 },
    dqkv = tensor("bf16", batch, sequence, packed, HEAD_DIM) }
  return function(op, variant)
    local backward = op == "attention_backward"
    return { op = op, variant = variant, qkv = x.qkv, o = x.o, lse = x.lse, dout = backward and x.dout or nil,
      dqkv = backward and x.dqkv or nil }
  end
end

-- Times what runs and is right, a row each. Returns how many rows, and how many variants are wrong.
local function measure(device, batch, sequence, opt, out)
  local check = require "tilelab.against_reference"
  local args, small = tensors(device, batch, sequence), tensors(device, 1, opt.check_sequence)
  local contenders, wrong = {}, 0
  for _, v in ipairs(VARIANTS) do
    local name = v[1] .. " " .. v[2]
    local plan, why = lab.plan(args(v[1], v[2]))
    local right, message
    if plan then right, message = check(small(v[1], v[2])) end
    if right then
      plan:launch() -- the gradients read what the forward pass wrote
      contenders[#contenders + 1] = { name = name, plan = plan }
    else
      wrong = wrong + (plan and 1 or 0)
      io.stderr:write(("%s, sequence %d: %s\n"):format(name, sequence, plan and ("wrong at %d tokens: %s"):format(
        opt.check_sequence, message) or "left out: " .. why))
    end
  end
  if #contenders == 0 then return 0, wrong end
  local timed = lab.measure { contenders = contenders, rounds = opt.rounds, seed = 1 }
  for i, item in ipairs(timed) do
    local plan, time_us = contenders[i].plan, item.stats.median
    local tflops = plan:flops() / time_us * 1e-6
    out:row { op = plan.op, variant = plan.variant, batch = batch, sequence = sequence, heads = HEADS,
      kv_heads = KV_HEADS, head_dim = HEAD_DIM, time_us = time_us, time_us_lo = item.stats.median_lo,
      time_us_hi = item.stats.median_hi, call_us = item.call_stats.median, tflops = tflops, rounds = timed.rounds,
      sm_clock_mhz = item.clock_stats and item.clock_stats.median or "-",
      power_w = item.state and item.state.power_w or "-", workspace_bytes = plan:workspace() }
    print(("%-36s %d x %-5d %9.1f us %7.1f TFLOP/s"):format(item.name, batch, sequence, time_us, tflops))
  end
  return #contenders, wrong
end

lab.main(function()
  local opt = lab.options {
    summary = "Causal attention, forward and backward.",
    { "device", "string", "cuda", "GPU" },
    { "sequences", "list", { 1024, 2048, 4096, 8192 }, "lengths", of = "integer" },
    { "tokens", "integer", 16384, "in all", min = 1 },
    { "check_sequence", "integer", 200, "of the launch that is held against the reference", min = 1 },
    { "rounds", "integer", 15, "rounds of the timing", min = 6 },
    { "out", "string", "out/attention", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the result under experiments/recorded" },
  }
  local device = lab.check(lab.gpu(opt.device))
  lab.plan(tensors(device, 1, 128)("attention", "cudnn_sdpa")) -- opens cuDNN, whose version the provenance has then
  local out = lab.recorded.open { experiment = "attention", device = device, out = opt.out,
    kernels = { "attention" }, record = opt.record, seed = 1, extra = { rounds = opt.rounds } }
  local written, wrong = 0, 0
  for _, sequence in ipairs(opt.sequences) do
    local rows, failed = measure(device, math.max(1, math.floor(opt.tokens / sequence)), sequence, opt, out)
    written, wrong = written + rows, wrong + failed
    collectgarbage()
  end
  if written == 0 and wrong == 0 then lab.check(nil, "no variant runs on " .. device.name) end
  if wrong > 0 then out:keep() end
  if written > 0 then lab.draw.print(lab.draw.record(out:close(), { folder = opt.out })) end
  return wrong == 0
end)
