-- lab.measure on the GPU: cold and hot, clocks, time per call, and numbers that can be true.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local device = lab.device "cuda"
local MIB = 1 << 20

local function gpu(dtype, ...)
  return lab.check(lab.tensor { device = device, dtype = dtype, shape = { ... } })
end

-- --- a copy that fits into L2 -------------------------------------------------------------------

local src, dst = gpu("fp32", 2 * MIB):normal {}, gpu("fp32", 2 * MIB)
local plan = lab.check(lab.plan { op = "probe_copy", variant = "smxx_vec16", src = src, dst = dst })
local function is_right() return lab.compare(dst, src).mismatched_bits == 0, "the copy differs" end
local function contenders()
  return { { name = "copy", plan = plan, prepare = function() dst:poison() end, check = is_right } }
end
local cold = lab.measure { contenders = contenders(), rounds = 30 }
local clean = lab.measure { contenders = contenders(), rounds = 30, flush = "clean" }
local hot = lab.measure { contenders = contenders(), rounds = 30, mode = "hot" }
local function median(result) return result[1].stats.median end
print(("# copy of 8 MiB: cold %.2f us, clean %.2f us, hot %.2f us, a call %.2f us"):format(median(cold),
  median(clean), median(hot), cold[1].call_stats.median))
t.is(cold[1].mode, "cold", "cold is the default on a GPU")
t.is(cold[1].batch, 1, "one call a sample")
t.ok(hot[1].batch > 10, "hot samples are batches")
t.ok(median(hot) < median(cold), "hot is faster than cold")
t.ok(median(clean) <= 1.1 * median(cold), "clean lines cost no write-back")
t.ok(median(cold) > 16 * MIB / 20e6 and median(cold) < 200, "the flush is not timed")
t.ok(cold[1].call_stats.median > median(hot), "a call takes longer than the kernel")
for _, result in ipairs { cold, hot } do
  local clock = result[1].clock_stats
  t.ok(clock.min > 200 and clock.max < 3000, ("%s: SM clock %.0f to %.0f MHz"):format(result[1].mode, clock.min,
    clock.max))
  t.is(#result[1].sm_clock_mhz, result.rounds, "one for each sample")
  t.ok(result.discarded <= 10, ("%d rounds discarded"):format(result.discarded))
end
local state = cold[1].state
if state then
  t.ok(state.power_w > 10, ("%.0f W, %.0f C, throttle: %s"):format(state.power_w, state.temperature_c,
    table.concat(state.throttle, " ")))
else
  t.skip((select(2, device:state())))
end

-- --- a copy that does not -----------------------------------------------------------------------

local big, target = gpu("fp32", 256 * MIB):normal {}, gpu("fp32", 256 * MIB)
local large = lab.check(lab.plan { op = "probe_copy", variant = "smxx_vec16", src = big, dst = target })
local result = lab.measure { contenders = { { name = "copy", plan = large } }, rounds = 10, interval = 0.02,
  timeout_s = 10 }
local tbps = 2048 * MIB / median(result) / 1e6
t.ok(tbps > 1 and tbps < 5.5, ("copy of 1 GiB: %.2f TB/s, stopped by %s after %d rounds"):format(tbps,
  result.stopped, result.rounds))
big:close()
target:close()

-- --- a dense product ----------------------------------------------------------------------------

local size = 8192
local a, b, d = gpu("bf16", size, size):normal { seed = 1 }, gpu("bf16", size, size):normal { seed = 2 },
  gpu("bf16", size, size)
local dense = lab.check(lab.plan { op = "gemm", variant = "cublaslt_dense", a = a, b = b, d = d })
dense:tune()
local graph = device:graph(function() dense:launch() end)
result = lab.measure { contenders = { { name = "launch", plan = dense },
  { name = "graph", run = function() graph:launch() end, device = device } }, rounds = 10 }
for _, item in ipairs(result) do
  local tflops = dense:flops() / item.stats.median / 1e6
  t.ok(tflops > 300 and tflops < 1100, ("%s: %.0f TFLOP/s at %.0f MHz"):format(item.name, tflops,
    item.clock_stats.median))
end
local ratio = result:ratio("graph", "launch")
t.ok(ratio.median > 0.8 and ratio.median < 1.25, ("a graph of one launch takes %.3f of its time"):format(ratio.median))
t.done()
