-- The scale-swizzle study: every variant in every setting on every problem, beside copies of as many bytes, then
-- one thing at a time on a few problems; two records, figures and a summary.
--
--   study.run{device =, problems =, series_problems =, rounds =, clean_rounds =, calls =, counted =, out =,
--       record =, preset =} -> whether all results were right
--
-- A setting that the machine or the kernel refuses is left out and counted. One that gives wrong results is told
-- and has no row; a problem that fails is told; then the run ends with exit code 1, and no record is published.

local lab = require "tilelab"
local core = require "tilelab_core"
local causes_module = require "tilelab.draw.scale_swizzle_causes"
local counters = require "tilelab.scale_swizzle.counters"
local draw = require "tilelab.draw"
local draw_module = require "tilelab.draw.scale_swizzle"
local problem = require "tilelab.scale_swizzle.problem"
local progress = require "tilelab.progress"
local settings = require "tilelab.scale_swizzle.settings"
local summary = require "tilelab.scale_swizzle.summary"
local timing = require "tilelab.scale_swizzle.timing"

local study = { SEED = 1 }

local HOST_CALLS = 3
local CLOCK_SAMPLES, CLOCK_LAUNCHES = 5, 100
local NULL_BLOCKS = { 1, 8 } -- of each multiprocessor

local Study = {}
Study.__index = Study

local function say(format, ...)
  progress.break_line()
  io.stderr:write("scale_swizzle_occupancy: ", format:format(...), "\n")
end

-- What fn(...) returns, or nil and the message of an error; Ctrl-C comes through.
local function attempt(fn, ...)
  local ok, value = pcall(fn, ...)
  if ok then return value end
  if core.error_kind(value) == "interrupted" then error(value, 0) end
  return nil, tostring(value)
end

-- --- rows -------------------------------------------------------------------------------------

-- A row with every column of a schema: "-" where nothing is known.
local function complete(schema, row)
  local whole = {}
  for _, column in ipairs(schema) do
    local value = row[column[1]]
    whole[column[1]] = value == nil and "-" or value
  end
  return whole
end

local function key_of(p)
  return { grouping = p.grouping, rows = p.rows, cols = p.columns, groups = p.groups }
end

-- Adds what a timing says: of a contender beside the best copy.
local function add_times(row, p, timed, copy)
  local stats = timed.stats
  row.time_us, row.time_us_lo, row.time_us_hi = stats.median, stats.median_lo, stats.median_hi
  row.copy_us, row.copy_ratio = copy.stats.median, timing.ratio(copy, timed)
  row.logical_gbps = p.bytes / stats.median * 1e-3
  local occupancy = timed.record and timed.record.occupancy
  if occupancy then
    row.occupancy_theoretical_pct, row.limiter, row.waves = occupancy.percent, occupancy.limiter, occupancy.waves
  end
  return row
end

local function add_counters(row, counted)
  for column, value in pairs(counted or {}) do row[column] = value end
  if counted and counted.dram_bytes then row.dram_gbps = counted.dram_bytes / row.time_us * 1e-3 end
  return row
end

-- --- one problem ------------------------------------------------------------------------------

function Study:admit(p, list)
  local admitted = {}
  for _, setting in ipairs(list) do
    local plan, reason, kind = settings.admit(self.pool, p, setting)
    if plan then
      admitted[#admitted + 1] = { setting = setting, variant = setting.variant, plan = plan, tunables = plan:tunables(),
        launch = function() plan:launch() end }
    else
      self[kind] = self[kind] + 1
      if kind == "wrong" or not self.told[setting.variant .. reason] then
        say("%s, %s %s: %s", problem.name(p), setting.variant, settings.text(setting.tunables), reason)
      end
      self.told[setting.variant .. reason] = true
    end
  end
  return admitted
end

-- Times the kernels beside the copies; adds to each kernel `field` = {timed, copy}.
function Study:time(kernels, copies, rounds, flush, field)
  local contenders, positions = {}, {}
  for i, copy in ipairs(copies) do contenders[i], positions[i] = copy, i end
  for _, kernel in ipairs(kernels) do contenders[#contenders + 1] = kernel end
  local timed = timing.rounds { device = self.device, contenders = contenders, rounds = rounds, flush = flush,
    seed = study.SEED }
  local best = timing.best(timed, positions)
  if flush == "dirty" then self.copies[copies[best].name] = (self.copies[copies[best].name] or 0) + 1 end
  for i, kernel in ipairs(kernels) do
    kernel[field] = { timed = timed[#copies + i], copy = timed[best] }
  end
end

-- The fastest of each variant, in the order of the list.
local function best_of(kernels)
  local by_variant, list = {}, {}
  for _, kernel in ipairs(kernels) do
    local best = by_variant[kernel.variant]
    if not best then list[#list + 1] = kernel.variant end
    if not best or kernel.dirty.timed.stats.median < best.dirty.timed.stats.median then
      by_variant[kernel.variant] = kernel
    end
  end
  for i, variant in ipairs(list) do list[i] = by_variant[variant] end
  return list
end

-- Counters of one kernel; none where the machine fails at it, which is told.
function Study:count(kernel, full)
  if not self.counted then return nil end
  local row, message = attempt(counters.read, self.device, kernel.plan, full)
  if not row then say("%s: no counters: %s", kernel.variant, message) end
  return row
end

-- What a caller pays who does it on the host: the ends and the scales are brought there, arranged by the
-- CPU reference, and brought back. Time per call.
function Study:host_row(p, copy)
  local device_args = self.pool:operands(p)
  local host = { op = "scale_swizzle", variant = "cpu_plain", grouping = p.grouping }
  for _, name in ipairs { "scales", "group_ends", "blocked" } do
    local x = device_args[name]
    host[name] = x and lab.check(lab.tensor { dtype = x.dtype, shape = x.shape })
  end
  local plan = lab.check(lab.plan(host))
  local calls = {}
  for r = 1, HOST_CALLS do
    self.device:synchronize()
    local start = lab.time_us()
    host.scales:copy(device_args.scales)
    if host.group_ends then host.group_ends:copy(device_args.group_ends) end
    plan:launch()
    device_args.blocked:copy(host.blocked)
    self.device:synchronize()
    calls[r] = lab.time_us() - start
  end
  local stats, row = lab.stats(calls), key_of(p)
  row.variant, row.flush, row.call_us = "host_loop", "none", stats.median
  row.time_us, row.time_us_lo, row.time_us_hi = stats.median, stats.min, stats.max
  row.copy_us, row.copy_ratio = copy.stats.median, copy.stats.median / stats.median
  row.logical_gbps = p.bytes / stats.median * 1e-3
  return row
end

local function main_row(p, kernel, timed, flush)
  local row = add_times(key_of(p), p, timed.timed, timed.copy)
  row.variant, row.flush, row.call_us = kernel.variant, flush, kernel.call_us
  row.block_threads = kernel.tunables.block_threads
  row.tiles_per_block = settings.tiles(p, kernel.variant, kernel.tunables)
  return row
end

function Study:cause_row(p, kernel, series)
  local row = add_times(key_of(p), p, kernel.dirty.timed, kernel.dirty.copy)
  local record = kernel.dirty.timed.record
  row.series, row.variant, row.setting = series, kernel.variant, settings.text(kernel.setting.tunables)
  row.registers = record.registers
  row.in_flight_kib = settings.in_flight_kib(record, self.device.multiprocessors, kernel.variant, kernel.tunables)
  return add_counters(row, kernel.counted)
end

function Study:problem(p)
  local kernels, copies = self:admit(p, settings.sweep(p)), self.pool:copies(p)
  if #kernels == 0 then error("no variant runs", 0) end
  self:time(kernels, copies, self.rounds, "dirty", "dirty")
  local best = best_of(kernels)
  self:time(best, copies, self.clean_rounds, "clean", "clean")
  local launches = {}
  for i, kernel in ipairs(kernels) do launches[i] = kernel.launch end
  for i, call_us in ipairs(timing.calls(self.device, launches, self.calls)) do kernels[i].call_us = call_us end
  if p.grouping == "k_groups" and p.groups == 8 then
    self.out:row(complete(draw_module.schema, self:host_row(p, kernels[1].dirty.copy)))
  end
  for _, kernel in ipairs(best) do kernel.counted = self:count(kernel, true) end
  lab.profile_close()
  for _, kernel in ipairs(kernels) do
    local right, where = true, nil
    if kernel.clean then -- once more, after all rounds
      local args = self.pool:operands(p)
      args.blocked:poison()
      kernel.launch()
      self.device:synchronize()
      right, where = self.pool:check(p, args.blocked)
    end
    if right then
      local row = add_counters(main_row(p, kernel, kernel.dirty, "dirty"), kernel.counted)
      self.out:row(complete(draw_module.schema, row))
      if kernel.clean then
        self.out:row(complete(draw_module.schema, main_row(p, kernel, kernel.clean, "clean")))
        self.causes:row(complete(causes_module.schema, self:cause_row(p, kernel, "variants")))
      end
      self.written = self.written + 1
    else
      self.wrong = self.wrong + 1
      say("%s, %s: wrong after it was timed, %s", problem.name(p), kernel.variant, where)
    end
  end
end

-- One thing at a time, with the counters that take a single pass.
function Study:series(p)
  local kernels, copies = self:admit(p, settings.series(p)), self.pool:copies(p)
  self:time(kernels, copies, self.rounds, "dirty", "dirty")
  for _, kernel in ipairs(kernels) do kernel.counted = self:count(kernel, false) end
  lab.profile_close()
  for _, kernel in ipairs(kernels) do
    self.causes:row(complete(causes_module.schema, self:cause_row(p, kernel, kernel.setting.series)))
  end
end

-- --- the run ----------------------------------------------------------------------------------

-- Kernels that do nothing: one block of 256 threads for each multiprocessor, and eight. Microseconds by the
-- names that the provenance has them under.
function study.null_times(device, rounds)
  local contenders, names, extra = {}, {}, {}
  for i, each in ipairs(NULL_BLOCKS) do
    local dst = lab.check(lab.tensor { device = device, dtype = "i32", shape = { each * device.multiprocessors } })
    local plan = lab.plan { op = "probe_occupancy", variant = "smxx_stay", dst = dst, registers = "few", threads = 256,
      shared_bytes = 0, cycles = 0 }
    if plan then
      names[#names + 1] = "null_us_" .. NULL_BLOCKS[i]
      contenders[#contenders + 1] = { launch = function() plan:launch() end }
    end
  end
  if #contenders == 0 then return extra end
  local timed = timing.rounds { device = device, contenders = contenders, rounds = rounds, flush = "dirty",
    seed = study.SEED }
  for i, name in ipairs(names) do extra[name] = ("%.4f"):format(timed[i].stats.median) end
  return extra
end

-- The SM clock while flushes and copies alternate, as they do in the rounds; nil on the CPU.
local function clock_of(run, p)
  local device, lo, hi = run.device, math.huge, 0
  if device.arch == 0 then return nil end
  local copy = run.pool:copies(p)[1]
  for _ = 1, CLOCK_SAMPLES do
    device:clock_mark(1)
    for _ = 1, CLOCK_LAUNCHES do
      timing.flush(device, "dirty")
      copy.launch()
    end
    device:clock_mark(2)
    local clock = device:clock_mhz(1, 2)
    lo, hi = math.min(lo, clock), math.max(hi, clock)
  end
  return draw.clock_range(lo, hi, "SM")
end

local function open(run, spec, name, extra)
  return lab.recorded.open { experiment = name, device = run.device, out = spec.out,
    kernels = { "scale_swizzle", "probe" }, record = spec.record, seed = study.SEED, extra = extra }
end

function Study:each(list, what, bar)
  for _, p in ipairs(list) do
    local name = problem.name(p)
    local done, message = attempt(function() what(self, p) return true end)
    if not done then
      self.failed = self.failed + 1
      say("%s: %s", name, message)
    end
    bar:step(1, name)
  end
end

function Study:verdict(spec)
  if self.illegal > 0 then say("%d settings do not run here and have no rows", self.illegal) end
  if self.wrong + self.failed == 0 then return true end
  say("%d wrong, %d problems failed: %s has the rows of the others%s", self.wrong, self.failed, self.out.path,
    spec.record and ", and nothing is recorded" or "")
  self.out:keep()
  self.causes:keep()
  return false
end

-- Which ways to copy were the fastest, and at how many problems.
function Study:tell_copies()
  local parts = {}
  for name, count in pairs(self.copies) do parts[#parts + 1] = ("%s at %d"):format(name, count) end
  table.sort(parts)
  say("fastest copies: %s", table.concat(parts, ", "))
end

function study.run(spec)
  if #spec.problems == 0 then lab.usage_error("no problem has that in its name") end
  local all = table.move(spec.series_problems, 1, #spec.series_problems, #spec.problems + 1,
    table.move(spec.problems, 1, #spec.problems, 1, {}))
  local self = setmetatable({ device = spec.device, pool = problem.pool(spec.device, all), rounds = spec.rounds,
    clean_rounds = spec.clean_rounds, calls = spec.calls, counted = spec.counted, illegal = 0, wrong = 0, failed = 0,
    written = 0, told = {}, copies = {} }, Study)
  local extra = study.null_times(spec.device, spec.rounds)
  extra.rounds, extra.mode, extra.clock = spec.rounds, "cold", clock_of(self, all[1])
  lab.check(lab.mkdir(spec.out))
  local out <close> = open(self, spec, "scale_swizzle", extra)
  local causes <close> = open(self, spec, "scale_swizzle_causes", extra)
  self.out, self.causes = out, causes
  do
    local bar <close> = lab.progress { total = #all, label = "scale_swizzle", unit = "problems" }
    self:each(spec.problems, Study.problem, bar)
    self:each(spec.series_problems, Study.series, bar)
  end
  if self.written == 0 then lab.check(nil, "no variant runs on " .. spec.device.name) end
  local right = self:verdict(spec)
  local data, why = out:close(), causes:close()
  self:tell_copies()
  print(summary.text(data, why))
  for _, each in ipairs { data, why } do
    lab.draw.print(lab.draw.record(each, { folder = spec.out, preset = spec.preset }))
  end
  return right
end

return study
