-- The profiler against kernels whose counters are known beforehand (kernels/probe).

local lab = require "tilelab"

local selftest = {}

local ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"

local function ratio(measured, expected)
  if expected == 0 then return measured == 0 and 1 or measured end
  return measured / expected
end

local function counters(device, plan, names)
  return lab.check(lab.profile { device = device, metrics = names, run = function() plan:launch() end })
end

local function add(out, case, metric, expected, measured)
  out:row { case = case, metric = metric, expected = expected, measured = measured,
    ratio = ratio(measured, expected) }
  print(("%-34s %-72s %16.10g %16.10g"):format(case, metric, expected, measured))
end

-- cases: list of {name, plan = arguments of lab.plan, expected = {metric = value}}.
function selftest.counters(device, cases, out)
  for _, case in ipairs(cases) do
    local plan = lab.check(lab.plan(case.plan))
    for metric, expected in pairs(case.expected) do
      add(out, case.name, metric, expected, counters(device, plan, { metric })[metric])
    end
  end
end

-- limits: list of {by, registers, threads, shared_bytes}: what a block of the occupancy probe takes,
-- so that `by` limits how many fit. As many blocks as fit at once, staying long enough that
-- starting and ending do not count.
function selftest.occupancy(device, limits, out)
  local CYCLES = 20000000
  local function plan_of(limit, blocks)
    return lab.check(lab.plan { op = "probe_occupancy", variant = "smxx_stay", cycles = CYCLES,
      dst = lab.check(lab.tensor { device = device, dtype = "i32", shape = { blocks } }):fill(0),
      registers = limit.registers or "few", threads = limit.threads, shared_bytes = limit.shared_bytes or 0 })
  end
  for _, limit in ipairs(limits) do
    local one = plan_of(limit, 1)
    local record = lab.check(lab.kernel_records(function() one:launch() end, device))[1]
    local fits = record.occupancy
    if fits.limiter ~= limit.by then
      lab.usage_error("the occupancy case '%s' is limited by %s: the probe's registers or shared memory "
        .. "are not what it takes them for", limit.by, fits.limiter)
    end
    local plan = plan_of(limit, fits.blocks_per_multiprocessor * device.multiprocessors)
    add(out, "occupancy limited by " .. limit.by, ACHIEVED, fits.percent,
      counters(device, plan, { ACHIEVED })[ACHIEVED])
  end
end

return selftest
