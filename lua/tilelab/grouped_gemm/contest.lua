-- What the experiments on grouped products share: the contenders of a problem are checked, timed in
-- interleaved rounds beside the dense product, counted, and checked again; a row each.
--
-- A contender that gives wrong results is told at once and has no row; the others go on, the run ends with
-- exit code 1 and no record is published. One that cannot run here is left out, which is said once.
--
--   contest.run{experiment =, device =, problems =, rounds =, entries = function(p) -> {variant or {variant =,
--       name = if it is one contender, rounds =, tunables =, beta =, zeroed =}, ...}, row = function(run,
--       contender, measured) -> further columns, columns = of the table at the end, out =, record =, preset =,
--       extra =} -> whether all were right. An entry with `rounds` of its own is slow: it is timed apart, beside
--       the dense product only, so that the others keep their clock.
--   contest.new{experiment =, device =, problems =, counted =} -> the parts, for who needs another order

local lab = require "tilelab"
local problem = require "tilelab.grouped_gemm.problem"
local progress = require "tilelab.progress"
local rows = require "tilelab.rows"
local text_table = require "tilelab.text_table"

local contest = { DENSE = "cublaslt_dense", SEED = 1 }

-- Of the highest clock. Products at the power limit run near 1.4 GHz while the copies around them reach
-- 1.98: that is how a loaded GPU runs, and no round to be dropped.
local THROTTLE_BELOW = 0.6

local Contest = {}
Contest.__index = Contest

function contest.new(settings)
  local gpu = settings.device.arch > 0
  local self = setmetatable({ experiment = settings.experiment, device = settings.device, gpu = gpu,
    mode = gpu and "cold" or "hot", counted = gpu and settings.counted ~= false,
    problems = settings.problems, pool = problem.pool(settings.device, settings.problems), failed = 0, written = 0,
    skipped = {} }, Contest)
  -- Before the provenance, which names the vendor's library once it is open.
  if gpu then self.pool:contenders(contest.DENSE, settings.problems[1]) end
  return self
end

function Contest:say(format, ...)
  progress.break_line()
  io.stderr:write(self.experiment, ": ", format:format(...), "\n")
end

function Contest:fail(p, name, format, ...)
  self.failed = self.failed + 1
  self:say("%s: %s: %s", problem.name(p), name, format:format(...))
end

-- Why an entry has no rows is said once.
function Contest:skip(name, reason)
  if not self.skipped[name] then self:say("%s is left out: %s", name, reason) end
  self.skipped[name] = true
end

-- --- one problem ------------------------------------------------------------------------------

-- What runs here and is right, before anything is timed.
function Contest:admit(p, entries)
  local list = {}
  for _, entry in ipairs(entries) do
    if type(entry) == "string" then entry = { variant = entry } end
    local made, reason = self.pool:contenders(entry.variant, p, entry)
    if not made then self:skip(entry.name or entry.variant, reason) end
    for _, contender in ipairs(made or {}) do
      contender.name, contender.entry = entry.name or contender.name, entry
      local pass, text = contender:check()
      if pass then list[#list + 1] = contender else self:fail(p, contender.name, "%s", text) end
    end
  end
  return list
end

-- Every contender and what is needed around it ("NAME pad", "NAME unpad", "NAME zero") once a round, and so
-- is the stream of stores that they share ("store").
function Contest:measure(list, rounds)
  local entries, known = {}, {}
  local function add(name, plan, run)
    if known[name] then return end
    known[name] = true
    entries[#entries + 1] = { name = name, plan = not run and plan or nil, run = run, device = run and self.device }
  end
  for _, contender in ipairs(list) do
    add(contender.name, contender.plan, contender.run)
    for _, part in ipairs { "pad", "unpad", "zero" } do
      if contender.parts[part] then add(contender.name .. " " .. part, nil, contender.parts[part]) end
    end
    if contender.store then add("store", contender.store) end
  end
  return lab.measure { contenders = entries, rounds = rounds, mode = self.mode, seed = contest.SEED,
    throttle_below = THROTTLE_BELOW }
end

-- What was measured of a part of a contender: "pad", "unpad", "zero" or "store"; nil where it has none.
function contest.part(contender, measured, name)
  if name == "store" then return contender.store and measured.by_name.store end
  return measured.by_name[contender.name .. " " .. name]
end

function contest.part_us(contender, measured, name)
  local timed = contest.part(contender, measured, name)
  return timed and timed.stats.median or "-"
end

-- The same launch, after all rounds.
function Contest:confirm(contender)
  local pass, text = contender:check()
  if not pass then self:fail(contender.problem, contender.name, "after it was timed: %s", text) end
  return pass
end

local function nothing() return "-" end

-- Counters and what derives from them, by label, shares over the time and at the clock of the timed
-- rounds; "-" where there are none. To be called after all timing: while their session is open,
-- launches may take longer.
function Contest:counters(contender, timed, groups, metrics)
  if not self.counted then return setmetatable({}, { __index = nothing }) end
  local values = lab.check(lab.profile { device = self.device, groups = groups, metrics = metrics, optional = true,
    quiet = true, run = function() contender:launch() end })
  values[lab.metrics.find("sm_clock").name] = timed.clock_stats.median * 1e6
  local result = lab.metrics.by_label(values)
  for label, value in pairs(lab.metrics.derive(values, { time_us = timed.stats.median })) do result[label] = value end
  return setmetatable(result, { __index = nothing })
end

function contest.tflops(flops, timed) return flops / timed.stats.median * 1e-6 end

-- Columns that every experiment has.
function contest.row(contender, measured)
  local p, timed = contender.problem, measured.by_name[contender.name]
  return { op = p.op, experts = p.experts, rows = p.rows, distribution = p.distribution,
    variant = contender.variant, time_us = timed.stats.median, time_us_lo = timed.stats.median_lo,
    time_us_hi = timed.stats.median_hi, rounds = measured.rounds,
    tflops = contender.flops and contest.tflops(contender.flops, timed) or "-",
    share_of_dense = contender.flops and measured.by_name[contest.DENSE]
      and measured:ratio(contest.DENSE, contender.name).median or "-",
    sm_clock_mhz = timed.clock_stats and timed.clock_stats.median or "-",
    power_w = timed.state and timed.state.power_w or "-" }
end

-- The contenders as they are timed: those without rounds of their own together, each other one beside the
-- dense product. List of {list, rounds}.
local function sets_of(list, rounds)
  local sets, together, dense = {}, {}, nil
  for _, contender in ipairs(list) do
    if contender.variant == contest.DENSE then dense = contender end
    if not contender.entry.rounds then together[#together + 1] = contender end
  end
  for _, contender in ipairs(list) do
    if contender.entry.rounds then sets[#sets + 1] = { { contender, dense }, contender.entry.rounds } end
  end
  if #together > 0 then sets[#sets + 1] = { together, rounds } end
  return sets
end

function Contest:problem(p, settings)
  local list, measured_of = self:admit(p, settings.entries(p)), {}
  for _, set in ipairs(sets_of(list, settings.rounds)) do
    local measured = self:measure(set[1], set[2])
    for _, contender in ipairs(set[1]) do measured_of[contender] = measured end
  end
  for _, contender in ipairs(list) do
    if self:confirm(contender) then
      local row, measured = contest.row(contender, measured_of[contender]), measured_of[contender]
      for column, value in pairs(settings.row(self, contender, measured)) do row[column] = value end
      self:write(row)
    end
  end
  lab.profile_close()
end

-- --- the run ----------------------------------------------------------------------------------

-- Kernel folders that the problems measure.
local function kernels_of(problems)
  local list, known = { "gemm", "pad" }, {}
  for _, p in ipairs(problems) do
    for _, folder in ipairs(p.k and { "m_grouped_gemm" } or { "k_grouped_gemm", "probe" }) do
      if not known[folder] then known[folder], list[#list + 1] = true, folder end
    end
  end
  return list
end

-- The record of the run; `name` and `columns` where they are not the experiment's own.
function Contest:open(settings, name, columns)
  local out = lab.recorded.open { experiment = name or self.experiment, device = self.device, out = settings.out,
    columns = columns, kernels = kernels_of(self.problems), record = settings.record, seed = contest.SEED,
    extra = settings.extra }
  if not name then self.out = out end
  return out
end

function Contest:write(row)
  self.out:row(row)
  self.written = self.written + 1
end

-- What the end of a run has to say of wrong results; raises where nothing could run. Returns whether there
-- are rows.
function Contest:verdict(record)
  if self.failed > 0 then
    self:say("%d wrong: %s has the rows of the others%s", self.failed, self.out.path,
      record and ", and none is recorded" or "")
    self.out:keep()
  elseif self.written == 0 then
    lab.check(nil, "no variant runs on " .. self.device.name)
  end
  return self.written > 0
end

-- Four significant digits, where a cell is no whole number.
local function cell(text)
  local value = rows.number(text)
  return value and not math.tointeger(value) and ("%.4g"):format(value) or text
end

local function print_table(data, columns)
  local cells, right = { columns }, {}
  for i, row in ipairs(data.rows) do
    cells[i + 1] = {}
    for c, column in ipairs(columns) do
      cells[i + 1][c] = cell(row[column])
      right[c] = right[c] or rows.number(row[column]) ~= nil
    end
  end
  print("\n" .. text_table.align(cells, right) .. "\n")
end

function contest.run(settings)
  local extra = settings.extra or {}
  extra.rounds = settings.rounds
  local self = contest.new(settings)
  extra.mode = self.mode
  lab.check(lab.mkdir(settings.out))
  local out <close> = self:open { out = settings.out, record = settings.record, extra = extra }
  do
    local bar <close> = lab.progress { total = #settings.problems, label = self.experiment, unit = "problems" }
    for _, p in ipairs(settings.problems) do
      self:problem(p, settings)
      bar:step(1, problem.name(p))
    end
  end
  if not self:verdict(settings.record) then return false end
  local data = out:close()
  print_table(data, settings.columns)
  lab.draw.print(lab.draw.record(data, { folder = settings.out, preset = settings.preset }))
  return self.failed == 0
end

return contest
