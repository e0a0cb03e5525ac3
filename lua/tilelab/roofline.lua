-- Rows of a hierarchical roofline: ceilings and kernels measured in the same rounds, then counted.
--
-- Ceilings are what was reached, not what a data sheet says: a large copy for device memory, a copy
-- that stays in L2 (timed hot), the fastest kernel for compute, and beside it the tensor cores' peak by
-- counter at the clock of the counted run (Yang, Kurth and Williams 2020 for the method).

local lab = require "tilelab"
local spot = require "tilelab.spot"

local roofline = {}

local EMPTY = { ai = "-", gflops = "-", gbps = "-", ceiling_gflops = "-", time_us = "-", time_us_lo = "-",
  time_us_hi = "-", sm_clock_mhz = "-" }

local function row(out, cells)
  for column, nothing in pairs(EMPTY) do
    if cells[column] == nil then cells[column] = nothing end
  end
  out:row(cells)
end

local function clock(timed) return timed.clock_stats and timed.clock_stats.median or "-" end

local function bandwidth(out, name, level, timed, bytes)
  local gbps = bytes / timed.stats.median * 1e-3
  row(out, { kind = "bandwidth", point = name, level = level, gbps = gbps, time_us = timed.stats.median,
    time_us_lo = timed.stats.median_lo, time_us_hi = timed.stats.median_hi, sm_clock_mhz = clock(timed),
    source = "timing" })
  print(("%-24s %-8s %9.0f GB/s"):format(name, level, gbps))
  return gbps
end

-- One row a level: intensity from the counters, performance from the descriptor's FLOPs and the time.
local function points(settings, kernel, timed, peak, rates)
  local counted = lab.check(lab.profile { device = settings.device, groups = { "ROOFLINE" },
    run = function() kernel.plan:launch() end })
  local derived = lab.metrics.derive(counted, { time_us = timed.stats.median })
  local gflops = kernel.plan:flops() / timed.stats.median * 1e-3
  for _, level in ipairs { { "dram", derived.dram_intensity, derived.dram_gbps },
    { "l2", derived.l2_intensity, derived.l2_to_sm_gbps } } do
    local ai = level[2]
    if ai then
      row(settings.out, { kind = "point", point = kernel.name, level = level[1], ai = ai, gflops = gflops,
        gbps = level[3], ceiling_gflops = math.min(peak, rates[level[1]] * ai), time_us = timed.stats.median,
        time_us_lo = timed.stats.median_lo, time_us_hi = timed.stats.median_hi, sm_clock_mhz = clock(timed),
        source = "timing" })
    end
  end
  print(("%-24s %9.0f GFLOP/s, %6.1f FLOP/B of DRAM, %6.1f of L2"):format(kernel.name, gflops,
    derived.dram_intensity or 0, derived.l2_intensity or 0))
  return derived
end

-- settings: device, kernels = {{name, plan, args}}, copy and near_copy = arguments of lab.plan (one far larger
-- than L2, one that stays in it), rounds, out = a record.
function roofline.measure(settings)
  local copy, near = lab.check(lab.plan(settings.copy)), lab.check(lab.plan(settings.near_copy))
  local contenders = { spot.contender("copy", copy, settings.copy) }
  for _, kernel in ipairs(settings.kernels) do
    contenders[#contenders + 1] = spot.contender(kernel.name, kernel.plan, kernel.args)
  end
  local timed = lab.measure { contenders = contenders, rounds = settings.rounds, mode = "cold", seed = 1 }
  local hot = lab.measure { contenders = { spot.contender("copy in L2", near, settings.near_copy) },
    rounds = settings.rounds, mode = "hot", seed = 1 }
  local rates = { dram = bandwidth(settings.out, "copy", "dram", timed.by_name.copy, copy:bytes()),
    l2 = bandwidth(settings.out, "copy in L2", "l2", hot[1], near:bytes()) }
  local peak, fastest = 0, nil
  for _, kernel in ipairs(settings.kernels) do
    local gflops = kernel.plan:flops() / timed.by_name[kernel.name].stats.median * 1e-3
    if gflops > peak then peak, fastest = gflops, kernel.name end
  end
  local best = timed.by_name[fastest]
  row(settings.out, { kind = "peak", point = fastest, level = "compute", gflops = peak, sm_clock_mhz = clock(best),
    time_us = best.stats.median, time_us_lo = best.stats.median_lo, time_us_hi = best.stats.median_hi,
    source = "timing" })
  local fastest_clock
  for _, kernel in ipairs(settings.kernels) do
    local derived = points(settings, kernel, timed.by_name[kernel.name], peak, rates)
    if kernel.name == fastest then fastest_clock = derived end
  end
  if fastest_clock.tensor_peak_tflops then -- at the clock of the fastest kernel's counted run
    row(settings.out, { kind = "peak", point = "tensor cores, by counter", level = "compute",
      gflops = fastest_clock.tensor_peak_tflops * 1e3, sm_clock_mhz = fastest_clock.sm_clock_mhz,
      source = "counter" })
    row(settings.out, { kind = "bandwidth", point = "by counter", level = "l2",
      gbps = fastest_clock.l2_peak_gbps, sm_clock_mhz = fastest_clock.sm_clock_mhz, source = "counter" })
  end
end

return roofline
