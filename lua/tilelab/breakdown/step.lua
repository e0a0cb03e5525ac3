-- Runs a training step for its breakdown: with marks around each launch, recorded without them, counted,
-- and each grouped GEMM beside itself alone. What the records mean, attribute.lua and classes.lua say.

local lab = require "tilelab"
local attribute = require "tilelab.breakdown.attribute"
local classes = require "tilelab.breakdown.classes"
local presets = require "tilelab.model.presets"
local step = require "tilelab.model.step"

-- copy_bytes: what classes bound by memory are compared with, 1 GiB read and 1 GiB written.
local Step = { copy_bytes = 1 << 30 }
Step.__index = Step

-- Bytes of the memsets that mark a launch: of no buffer of the step.
local MARKS = { open = 4 * 1237, close = 4 * 2371 }
local COPIES = 7
local ALONE = 6 -- launches of a grouped GEMM after each other

-- settings: device, model, precision, routing, seed, micro_batch, text, choices (of dense GEMMs, which this model's
-- are added to); a model of that backend and depth.
-- Raises what the machine refuses.
function Step.new(settings, backend, layers)
  local config = lab.check(presets.config(settings.model, { layers = layers, micro_batch = settings.micro_batch }))
  local model = lab.check(step.build { device = settings.device, config = config, backend = backend,
    seed = settings.seed, routing = settings.routing, precision = settings.precision })
  local self = setmetatable({ device = settings.device, text = settings.text, config = config, model = model,
    backend = backend, layers = layers, label_of = {} }, Step)
  self.layout = { slots = model.t * config.top_k, rows = { [model.rows] = true, [model.padded_rows] = true } }
  model:choose_gemms(settings.choices, settings.text)
  self:label()
  return self
end

-- What each entry of the model's lists is: {entry, plan (nil: the host's), args, phase, class, pass}.
function Step:label()
  local model = self.model
  for _, name in ipairs { "first", "later", "optimiser" } do
    local passes = name ~= "optimiser" and classes.passes_of(model[name])
    for i, entry in ipairs(model[name]) do
      local args = model.arguments[entry.plan]
      local plan = args and entry.plan or nil
      self.label_of[entry] = { entry = entry, plan = plan, args = args, phase = entry.phase,
        class = classes.of(plan, args), pass = passes and passes[i] or "optimiser" }
    end
  end
end

-- Calls fn while each launch of the given lists goes through launch(label, plan).
function Step:through(lists, launch, fn)
  local real = {}
  for _, list in ipairs(lists) do
    for _, entry in ipairs(list) do
      local label, plan = self.label_of[entry], entry.plan
      real[entry] = plan
      entry.plan = { launch = function() launch(label, plan) end }
    end
  end
  local ok, message = pcall(fn)
  for entry, plan in pairs(real) do entry.plan = plan end
  if not ok then error(message, 0) end
end

function Step:update() return self.model:update(self.text) end

-- Seconds of updates by the host's clock, as the study takes them.
function Step:timed(count)
  local times = {}
  for i = 1, count do
    self.device:synchronize()
    local start = lab.time_us()
    self:update()
    self.device:synchronize()
    times[i] = lab.time_us() - start
  end
  return times
end

local function marker(device, bytes)
  return lab.check(lab.tensor { device = device, dtype = "i32", shape = { bytes // 4 }, fill = 0 })
end

-- Calls fn while the step launches one by one what it may replay from graphs otherwise.
function Step:without_graphs(fn)
  local model = self.model
  local graphs, may_capture = model.graphs, model.may_capture
  model.graphs, model.may_capture = nil, false
  local ok, message = pcall(fn)
  model.graphs, model.may_capture = graphs, may_capture
  if not ok then error(message, 0) end
end

-- One update with marks. Sets self.log (labels of its launches), self.pattern (its records without marks) and
-- self.labels (label of each, false outside).
function Step:learn()
  local model, log = self.model, {}
  local open, close = marker(self.device, MARKS.open), marker(self.device, MARKS.close)
  local records = lab.check(lab.activity_records(function()
    self:through({ model.first, model.later, model.optimiser }, function(label, plan)
      open:fill(0)
      plan:launch()
      close:fill(0)
      log[#log + 1] = label
    end, function() self:without_graphs(function() self:update() end) end)
  end, self.device))
  self.log = log
  if #log == 0 then lab.check(nil, "the step launched nothing of its lists") end
  self.pattern, self.labels = attribute.labels(records, log, MARKS)
  if not self.pattern then lab.check(nil, ("%s, %d layers: %s"):format(self.backend, self.layers, self.labels)) end
end

-- What the records of `updates` updates and of copies after them are: {records, labels, updates, copy_gbps}; or nil
-- and how they differ from what was learnt.
function Step:understand(all, updates)
  local length = #self.pattern
  local result = { records = {}, labels = {}, updates = updates }
  for u = 0, updates - 1 do
    local same, message = attribute.check(all, u * length + 1, self.pattern)
    if not same then return nil, message end
    table.move(all, u * length + 1, (u + 1) * length, u * length + 1, result.records)
    table.move(self.labels, 1, length, u * length + 1, result.labels)
  end
  if #all ~= updates * length + COPIES then
    return nil, ("%d records where %d updates and %d copies make %d"):format(#all, updates, COPIES,
      updates * length + COPIES)
  end
  local times = {}
  for i = 1, COPIES do times[i] = all[#all - COPIES + i].duration_us end
  result.copy_gbps = 2 * Step.copy_bytes / lab.stats(times).median * 1e-3
  return result
end

-- Records of `updates` whole updates as the study runs them, and what they are (understand). Where replayed graphs
-- leave other records than launches do, of updates that launch one by one: the second result says why.
function Step:record(updates)
  local words = Step.copy_bytes // 4
  local copy = lab.check(lab.plan { op = "probe_copy", variant = "smxx_vec16",
    src = lab.check(lab.tensor { device = self.device, dtype = "fp32", shape = { words }, fill = 0 }),
    dst = lab.check(lab.tensor { device = self.device, dtype = "fp32", shape = { words }, fill = 0 }) })
  copy:launch()
  local function run()
    for _ = 1, updates do self:update() end
    for _ = 1, COPIES do copy:launch() end
  end
  local result, message = self:understand(lab.check(lab.activity_records(run, self.device)), updates)
  if result or not self.model.graphs then return lab.check(result, message) end
  local again
  self:without_graphs(function()
    again = self:understand(lab.check(lab.activity_records(run, self.device)), updates)
  end)
  return lab.check(again, message), message
end

-- Counters of each launch of one later micro-batch and of the optimiser: {[label] = {achieved_occupancy,
-- tensor_active, ...}}; nil and a message where they are refused. They take one pass, so that nothing is
-- launched twice.
function Step:count()
  local chip, message = lab.counters(self.device)
  if not chip then return nil, message end
  local passes = lab.check(lab.profile_passes { device = self.device, groups = { "PAPER" } })
  if passes ~= 1 then return nil, ("the group PAPER takes %d passes here"):format(passes) end
  local counted, lists = {}, { self.model.later, self.model.optimiser }
  local ok, failure = pcall(self.through, self, lists, function(label, plan)
    if not label.plan then return plan:launch() end
    local values = lab.check(lab.profile { device = self.device, groups = { "PAPER" }, flush = false,
      warmup = false, quiet = true, run = function() plan:launch() end })
    counted[label] = lab.metrics.by_label(values)
  end, function()
    for _, list in ipairs(lists) do
      for _, entry in ipairs(list) do entry.plan:launch() end
    end
  end)
  lab.profile_close() -- an open session would slow down what is timed next
  if not ok then error(failure, 0) end
  return counted
end

-- The grouped GEMMs of a later micro-batch: list of {op, layer, variant, step = {}, alone = {}}, and by entry.
function Step:gemms()
  local list, by_entry, seen = {}, {}, {}
  for _, entry in ipairs(self.model.later) do
    local label = self.label_of[entry]
    if label.class:find "^grouped_" then
      local op = classes.product(label.plan, label.args, self.config.expert_ffn)
      seen[op] = (seen[op] or 0) + 1
      local item = { op = op, step = {}, alone = {}, variant = label.plan.variant,
        layer = label.pass == "forward" and seen[op] or self.layers + 1 - seen[op] }
      list[#list + 1], by_entry[entry] = item, item
    end
  end
  return list, by_entry
end

local function timers(device, count)
  local list = {}
  for i = 1, count do list[i] = { start = lab.check(device:event()), stop = lab.check(device:event()) } end
  return list
end

-- `count` launches between two events and two clock marks, whose numbers go with the timer's. Nothing waits.
local function launch_timed(device, timer, number, count, launch)
  device:clock_mark(2 * number - 1)
  timer.start:record()
  for _ = 1, count do launch() end
  timer.stop:record()
  device:clock_mark(2 * number)
end

-- Time of one of `count` launches and the SM clock meanwhile; waits.
local function read(device, timer, number, count)
  return { time_us = timer.start:elapsed_us(timer.stop) / count, mhz = device:clock_mhz(2 * number - 1, 2 * number) }
end

local TIMERS = 8 -- as many as there are pairs of clock marks

-- Each grouped GEMM of `rounds` later micro-batches, as the step launches it, and alone on the same data, with nothing
-- between its launches. List of {op, layer, variant, step = {samples}, alone = {samples}}, a sample being {time_us,
-- mhz}. In one micro-batch GEMMs are timed in the stream of launches, which the host runs ahead of; in another each
-- is launched again and again at its place, the first time untimed, so that no launch is waited for. Weight
-- gradients add what they compute once more each time.
function Step:gemms_alone(rounds)
  local list, by_entry = self:gemms()
  local device, later, timer, number = self.device, self.model.later, timers(self.device, TIMERS), {}
  local function in_the_step(label, plan)
    local n = number[by_entry[label.entry]]
    if not n then return plan:launch() end
    launch_timed(device, timer[n], n, 1, function() plan:launch() end)
  end
  local function alone(label, plan)
    local item = by_entry[label.entry]
    local function launch() plan:launch() end
    launch()
    if not number[item] then return end
    launch_timed(device, timer[1], 1, ALONE, launch)
    item.alone[#item.alone + 1] = read(device, timer[1], 1, ALONE)
  end
  local function micro_batch(launch)
    self:through({ later }, launch, function()
      for _, entry in ipairs(later) do entry.plan:launch() end
    end)
  end
  for _ = 1, rounds do
    for first = 1, #list, TIMERS do
      number = {}
      for n = 1, math.min(TIMERS, #list - first + 1) do number[list[first + n - 1]] = n end
      micro_batch(in_the_step)
      for item, n in pairs(number) do item.step[#item.step + 1] = read(device, timer[n], n, 1) end
      micro_batch(alone)
    end
  end
  return list
end

return Step
