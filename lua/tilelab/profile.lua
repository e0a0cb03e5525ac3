-- Counters of what a function launches, and records of its kernels.
--
--   lab.profile{device = "cuda", groups = {"PAPER"}, metrics = {...}, run = function() ... end,
--       flush = true, warmup = true, max_passes = 0, optional = false, quiet = false}
--       -> {metric = value} | nil, message, code where the machine refuses counters
--     The function runs once a pass and must launch the same each time; `warmup` is one run before,
--     not counted, which loads the kernels. `flush`: true empties the L2 cache before every pass,
--     false leaves it, a function is called instead. A ratio without a denominator is absent. With
--     `optional`, a refusal is told once on standard error, and every value is "-", so that timing
--     goes on. More than one pass is announced, with the time it will take, unless `quiet`.
--   lab.profile_kernels{the same without flush, max_kernels = 256} -> list of {name, record, values},
--       one for each kernel in launch order; the function runs twice, and CUPTI replays each kernel
--   lab.profile_passes{device =, groups =, metrics =} -> how often `run` will run
--   lab.profile_close()            ends the session that is kept for the next call; lab.measure does
--   lab.counters(device) -> the chip's name | nil, message, code
--   lab.kernel_records(fn[, device = "cuda"[, copies = false]]) -> list as of core.recording, each with
--       `occupancy` and its `blocks`; durations are of the kernel alone | nil, message, code. With `copies`
--       also those of cudaMemcpyAsync, named "memcpy"
--   lab.timeline{device = "cuda", groups = {"TIMELINE"}, metrics = {...}, run = function() ... end,
--       interval_us = 20, max_samples = 10000} -> {time_us = {...}, values = {metric = {...}},
--       series = {{name = label, unit =, points = {{x = time_us, y =}, ...}}, ...}}: what the whole GPU
--       did every interval while the function and its kernels ran; series is for lab.figure
--       | nil, message, code
--
-- A session stays open between calls for the same device and metrics, which makes the next call
-- cheap. It may slow launches down: lab.profile_close() before anything is timed by hand. Values are
-- counters: the time of the same work is measured elsewhere, without them.

local core = require "tilelab_core"
local fields = require "tilelab.fields"
local metrics = require "tilelab.metrics"
local progress = require "tilelab.progress"

local profile = {}

local kept      -- the open session: {key, session}
local told = {} -- refusals that were printed

local function say(format, ...)
  progress.break_line()
  io.stderr:write(format:format(...), "\n")
end

-- --- sessions ---------------------------------------------------------------------------------

function profile.close()
  if kept then kept.session:close() end
  kept = nil
end

local function device_name(device) return type(device) == "string" and device or device.name end

-- Calls fn(...) as the one call that may have the counters. Regions run before they are counted, too,
-- so CUPTI's own refusal would come too late: after the outer session was closed for the inner one.
local active = false

local function alone(fn, ...)
  if active then
    error("profiling inside a profiled region: each pass of the outer one would repeat all passes of "
      .. "the inner one", 0)
  end
  active = true
  local results = table.pack(pcall(fn, ...))
  active = false
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

-- The session for these metrics: the kept one, or a new one in its place.
local function session_for(device, names, kernels, max_passes)
  local key = table.concat({ device_name(device), kernels, table.concat(names, " ") }, "\n")
  if kept and kept.key == key and kept.session.passes > 0 then
    if max_passes == 0 or kept.session.passes <= max_passes then return kept.session end
  end
  profile.close()
  local session, message, code = core.profiler { device = device, metrics = names, kernels = kernels,
    max_passes = max_passes }
  if not session then return nil, message, code end
  kept = { key = key, session = session }
  return session
end

-- --- options ----------------------------------------------------------------------------------

local common = { "device", "groups", "metrics", "run", "max_passes", "optional", "quiet" }

local function names_with(...)
  return table.move({ ... }, 1, select("#", ...), #common + 1, table.move(common, 1, #common, 1, {}))
end

local region_fields, kernel_fields = names_with("flush", "warmup"), names_with "max_kernels"

local function read(what, spec, names)
  fields.check(what, spec, names, 3)
  if type(spec.run) ~= "function" then error(("%s takes run = a function"):format(what), 3) end
  local wanted = metrics.collect(spec)
  if #wanted == 0 then error(("%s takes groups or metrics"):format(what), 3) end
  return wanted
end

-- Passes on a refusal, or tells it once and gives "-" for every metric.
local function refused(spec, wanted, message, code)
  if not spec.optional then return nil, message, code end
  if not told[message] then say("no counters: %s", message) end
  told[message] = true
  local values = {}
  for _, name in ipairs(wanted) do values[name] = "-" end
  return values
end

local function synchronize(device)
  if type(device) == "string" then device = assert(core.device(device)) end
  device:synchronize()
end

-- Says how long a run of several passes will take, by one run without counters.
local function announce(spec, device, passes, what)
  if passes == 1 or spec.quiet then return end
  synchronize(device)
  local start = core.time_us()
  spec.run()
  synchronize(device)
  local seconds = (core.time_us() - start) * 1e-6 * passes
  say("counting takes %d passes of the %s, %s", passes, what,
    seconds < 1 and "below a second by its own time" or ("about %.0f s by its own time"):format(seconds))
end

-- --- regions ----------------------------------------------------------------------------------

local function count_region(spec, wanted)
  local device = spec.device or "cuda"
  local same = kept
  local session, message, code = session_for(device, wanted, 0, spec.max_passes or 0)
  if not session then return refused(spec, wanted, message, code) end
  if spec.warmup ~= false then spec.run() end
  if kept ~= same then announce(spec, device, session.passes, "region") end
  local flush = spec.flush
  if flush == nil then flush = true end
  return session:run(spec.run, flush)[1]
end

function profile.profile(spec)
  return alone(count_region, spec, read("lab.profile", spec, region_fields))
end

function profile.passes(spec)
  fields.check("lab.profile_passes", spec, { "device", "groups", "metrics" }, 2)
  local chip, message, code = core.counters(spec.device or "cuda")
  if not chip then return nil, message, code end
  return core.metric_passes(chip, metrics.collect(spec))
end

-- --- kernels ----------------------------------------------------------------------------------

local function occupancy_of(record, device)
  local function volume(size) return size[1] * size[2] * size[3] end
  return core.occupancy { arch = device.arch, multiprocessors = device.multiprocessors,
    blocks = volume(record.grid), threads = volume(record.block), registers = record.registers,
    shared_bytes = record.static_shared_bytes + record.dynamic_shared_bytes,
    cluster = volume(record.cluster), max_active_clusters = record.max_active_clusters }
end

function profile.kernel_records(fn, device, copies)
  if type(fn) ~= "function" then error("lab.kernel_records takes a function", 2) end
  local opened, message, code = core.device(device and device_name(device) or "cuda")
  if not opened then return nil, message, code end
  local recording <close>, reason, reason_code = core.recording(opened, copies)
  if not recording then return nil, reason, reason_code end
  fn()
  local records = recording:finish()
  for _, record in ipairs(records) do
    record.blocks = record.grid[1] * record.grid[2] * record.grid[3]
    if record.blocks > 0 then record.occupancy = occupancy_of(record, opened) end
  end
  return records
end

local function count_kernels(spec, wanted, most)
  local device = spec.device or "cuda"
  local session, message, code = session_for(device, wanted, most, spec.max_passes or 0)
  if not session then
    local values, reason, reason_code = refused(spec, wanted, message, code)
    return values and {}, reason, reason_code
  end
  -- CUPTI only numbers its ranges; the names are those of the same launches recorded before.
  local records, reason, reason_code = profile.kernel_records(spec.run, device)
  if not records then return nil, reason, reason_code end
  announce(spec, device, session.passes, "kernels")
  if #records > most then
    error(("the function launches %d kernels, more than max_kernels = %d"):format(#records, most), 2)
  end
  local ranges = session:run(spec.run)
  if #ranges ~= #records then
    error(("%d kernels were recorded and %d counted: the function does not launch the same each time")
      :format(#records, #ranges), 2)
  end
  local result = {}
  for i, record in ipairs(records) do
    result[i] = { name = record.name, record = record, values = ranges[i] }
  end
  return result
end

function profile.kernels(spec)
  local wanted = read("lab.profile_kernels", spec, kernel_fields)
  local most = spec.max_kernels or 256
  fields.check_integer("max_kernels", most, 1, 2)
  return alone(count_kernels, spec, wanted, most)
end

-- --- over time --------------------------------------------------------------------------------

local timeline_fields = { "device", "groups", "metrics", "run", "interval_us", "max_samples" }

-- One series a metric, in the order asked for; an interval without a value is a gap.
local function series_of(wanted, time_us, values)
  local list = {}
  for i, name in ipairs(wanted) do
    local metric, points = metrics.find(name), {}
    for k, x in ipairs(time_us) do points[k] = { x = x, y = values[name][k] } end
    list[i] = { name = metric and metric.label or name, unit = metric and metric.unit, points = points }
  end
  return list
end

-- CUPTI 13.0 samples the throughputs of device memory as shares of 1 under a name that says percent
-- (a copy at 93 % of the peak reads 0.46 for its reads); here percent is percent.
local function to_percent(wanted, values)
  for _, name in ipairs(wanted) do
    if name:find("^dramc__%a+_throughput%.%a+%.pct_of_peak") then
      for k, value in pairs(values[name]) do values[name][k] = 100 * value end
    end
  end
end

function profile.timeline(spec)
  fields.check("lab.timeline", spec, timeline_fields, 2)
  if type(spec.run) ~= "function" then error("lab.timeline takes run = a function", 2) end
  local groups = spec.groups or not spec.metrics and { "TIMELINE" } or nil
  local wanted = metrics.collect { groups = groups, metrics = spec.metrics }
  profile.close() -- both want the counters
  local sampler <close>, message, code = core.sampler { device = spec.device or "cuda", metrics = wanted,
    interval_us = spec.interval_us, max_samples = spec.max_samples }
  if not sampler then return nil, message, code end
  local samples, time_us = sampler:run(spec.run), {}
  to_percent(wanted, samples.values)
  for i, start in ipairs(samples.start_ns) do time_us[i] = (start - samples.start_ns[1]) / 1e3 end
  return { time_us = time_us, values = samples.values, series = series_of(wanted, time_us, samples.values) }
end

return profile
