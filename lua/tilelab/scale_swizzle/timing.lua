-- Kernel times of contenders side by side, by kernel records: in every round each contender runs once, in a
-- freshly shuffled order, L2 emptied before each.
--
--   timing.rounds{device =, contenders = {{launch = function, memcpy = false}, ...}, rounds =, flush = "dirty" |
--       "clean", seed =} -> list by contender of {samples_us = by round, stats =, record = of the last launch};
--       `memcpy` contenders are no kernels, and are false where the machine did not record all of them
--   timing.best(timed, positions) -> the position of the lowest median
--   timing.ratio(a, b) -> median of the rounds' ratios of a's time over b's
--   timing.calls(device, launches, rounds) -> by contender, median host time of a call and the wait for it
--
-- Two launches that are to be compared follow each other within milliseconds, so that drift falls on both.

local lab = require "tilelab"

local timing = {}

local FLUSH_KERNEL = "read_all" -- which leaves clean lines behind
local MOST_RECORDS = 16000      -- of one region

function timing.flush(device, kind)
  if kind == "clean" then device:flush_l2_clean() else device:flush_l2() end
end

local function refuse(format, ...) error(format:format(...), 0) end

-- Deals out the records of `orders` rounds to `times`; says whether those of copies are there.
local function deal(records, contenders, orders, times)
  local kernels, copies = {}, {}
  for _, record in ipairs(records) do
    if record.kind == "copy" then
      copies[#copies + 1] = record
    elseif record.kind == "kernel" and not record.name:find(FLUSH_KERNEL, 1, true) then
      kernels[#kernels + 1] = record
    end
  end
  local wanted, copied = 0, 0
  for _, contender in ipairs(contenders) do
    if contender.memcpy then copied = copied + #orders else wanted = wanted + #orders end
  end
  if #kernels ~= wanted then
    refuse("%d kernels were recorded in %d rounds of %d", #kernels, #orders, #contenders)
  end
  local next_kernel, next_copy = 0, 0
  for _, order in ipairs(orders) do
    for _, i in ipairs(order) do
      local record
      if contenders[i].memcpy then
        next_copy = next_copy + 1
        record = #copies == copied and copies[next_copy]
      else
        next_kernel = next_kernel + 1
        record = kernels[next_kernel]
      end
      if record then
        if not record.duration_us then refuse("the hardware gave no time stamps for %s", record.name) end
        local timed = times[i]
        timed.samples_us[#timed.samples_us + 1], timed.record = record.duration_us, record
      end
    end
  end
end

-- Without copies where the machine has no records of them.
local function record(device, run)
  local records = lab.activity_records(run, device)
  return records or lab.check(lab.kernel_records(run, device))
end

function timing.rounds(spec)
  local contenders, times, order = spec.contenders, {}, {}
  local random = lab.random(spec.seed or 0, #contenders)
  for i = 1, #contenders do times[i], order[i] = { samples_us = {} }, i end
  local at_once = math.max(1, MOST_RECORDS // (2 * #contenders))
  local done = 0
  while done < spec.rounds do
    local orders = {}
    for r = 1, math.min(at_once, spec.rounds - done) do
      random:shuffle(order)
      orders[r] = table.move(order, 1, #order, 1, {})
    end
    deal(record(spec.device, function()
      for _, one in ipairs(orders) do
        for _, i in ipairs(one) do
          timing.flush(spec.device, spec.flush)
          contenders[i].launch()
        end
        spec.device:synchronize()
      end
    end), contenders, orders, times)
    done = done + #orders
  end
  for i, timed in ipairs(times) do
    if #timed.samples_us == done then timed.stats = lab.stats(timed.samples_us) else times[i] = false end
  end
  return times
end

function timing.best(timed, positions)
  local best
  for _, i in ipairs(positions) do
    if timed[i] and (not best or timed[i].stats.median < timed[best].stats.median) then best = i end
  end
  return best
end

function timing.ratio(a, b)
  local ratios = {}
  for r, time in ipairs(a.samples_us) do ratios[r] = time / b.samples_us[r] end
  return lab.stats(ratios).median
end

function timing.calls(device, launches, rounds)
  local samples, medians = {}, {}
  for i = 1, #launches do samples[i] = {} end
  for r = 1, rounds do
    for i, launch in ipairs(launches) do
      device:synchronize()
      local start = lab.time_us()
      launch()
      device:synchronize()
      samples[i][r] = lab.time_us() - start
    end
  end
  for i, list in ipairs(samples) do medians[i] = lab.stats(list).median end
  return medians
end

return timing
