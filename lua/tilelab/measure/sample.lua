-- One sample of one contender: the time from event to event, the SM clock meanwhile, and the time
-- that a caller waits.
--
-- hot   a batch of calls between two events, long enough to be measured; the batch is found during
--       the warm-up and is the same for all samples. Caches hold what the last call left.
-- cold  one call. A memset of several times the L2 runs before it, outside of the timed span; it
--       also keeps the GPU busy while the host enqueues, so that no launch gap is timed.
--
-- The time per call is another number: host clock around one call and the wait for it. Only this one
-- holds launch and wake-up, of which a kernel knows nothing. On the CPU both are the same.

local core = require "tilelab_core"

local sample = {}

-- Marks of the SM clock stand outside of the events, so that they cost the sample nothing.
local BEFORE, AFTER = 1, 2

-- Microseconds from event to event of `batch` calls; on a GPU also the mean SM clock.
local function time_batch(contender)
  local call, target, device = contender.call, contender.target, contender.device
  if contender.mode == "cold" then
    if contender.flush == "clean" then device:flush_l2_clean() else device:flush_l2() end
  end
  if contender.gpu then device:clock_mark(BEFORE) end
  contender.start:record()
  for _ = 1, contender.batch do call(target) end
  contender.stop:record()
  if not contender.gpu then return contender.start:elapsed_us(contender.stop) end
  device:clock_mark(AFTER)
  local time_us = contender.start:elapsed_us(contender.stop)
  return time_us, device:clock_mhz(BEFORE, AFTER)
end

-- Prepares for sampling: code is loaded, scratch allocated, and in hot mode the batch grows until it
-- takes `minimum_us`.
function sample.warm_up(contender, minimum_us)
  local time_us = time_batch(contender)
  while contender.mode == "hot" and time_us < minimum_us do
    local factor = math.min(10, math.max(1.5, 1.2 * minimum_us / math.max(time_us, 1e-3)))
    contender.batch = math.ceil(contender.batch * factor)
    time_us = time_batch(contender)
  end
end

local function time_call(contender)
  local device = contender.device
  device:synchronize()
  local start_us = core.time_us()
  contender.call(contender.target)
  device:synchronize()
  return core.time_us() - start_us
end

-- -> {time_us (of one call), call_us, clock_mhz (nil on the CPU)}
function sample.take(contender)
  local time_us, clock_mhz = time_batch(contender)
  time_us = time_us / contender.batch
  return { time_us = time_us, clock_mhz = clock_mhz,
    call_us = contender.gpu and time_call(contender) or time_us }
end

return sample
