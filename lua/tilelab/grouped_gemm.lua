-- The grouped GEMM benchmark: every variant of every problem checked, timed in interleaved rounds beside the
-- dense product, and counted; a row each. Problems and contenders are those of grouped_gemm/problem.lua.
--
-- A variant that gives wrong results is told at once and has no row; the others go on, the run ends with
-- exit code 1 and no record is published.

local lab = require "tilelab"
local draw = require "tilelab.draw.grouped_gemm"
local peer = require "tilelab.grouped_gemm.torch"
local problem = require "tilelab.grouped_gemm.problem"
local progress = require "tilelab.progress"
local summary = require "tilelab.grouped_gemm.summary"

local bench = {}

local DENSE = "cublaslt_dense"
local SEED = 1
-- Launches a sample of call_us: a launch of many kernels must not fill the queue.
local CALLS, CALL_SAMPLES = 4, 15
-- Of the highest clock. Products at the power limit run near 1.4 GHz while the copies around them reach
-- 1.98: that is how a loaded GPU runs, and no round to be dropped.
local THROTTLE_BELOW = 0.6

local function say(format, ...)
  progress.break_line()
  io.stderr:write("grouped_gemm: ", format:format(...), "\n")
end

-- --- one problem ------------------------------------------------------------------------------

local Run = {}
Run.__index = Run

function Run:fail(p, variant, format, ...)
  self.failed = self.failed + 1
  say("%s: %s: %s", problem.name(p), variant, format:format(...))
end

-- Why a variant has no rows is said once.
function Run:skip(variant, reason)
  if not self.skipped[variant] then say("%s is left out: %s", variant, reason) end
  self.skipped[variant] = true
end

-- What runs here and is right, before anything is timed.
function Run:contenders(p)
  local list = {}
  for _, variant in ipairs(self.variants) do
    local made, reason = self.pool:contenders(variant, p)
    if not made then self:skip(variant, reason) end
    for _, contender in ipairs(made or {}) do
      local pass, text = contender:check()
      if pass then list[#list + 1] = contender else self:fail(p, contender.name, "%s", text) end
    end
  end
  return list
end

-- Microseconds of the host until a launch returns: the device starts idle and nothing is awaited.
local function call_us(plan, device)
  local samples = {}
  for i = 0, CALL_SAMPLES do
    device:synchronize()
    local start = lab.time_us()
    plan:launch(nil, CALLS)
    samples[i] = (lab.time_us() - start) / CALLS -- the first only warms up
  end
  device:synchronize()
  return lab.stats(samples).median
end

-- By counter, shares over the time and at the clock of the timed rounds; "-" where there are none.
function Run:counters(contender, timed)
  local result = { dram_gbps = "-", tensor_pct = "-", occupancy_pct = "-" }
  if not self.counted then return result end
  local values = lab.check(lab.profile { device = self.device, groups = { "PAPER" }, optional = true, quiet = true,
    metrics = { "wgmma_bf16_flops", "wgmma_bf16_peak" }, run = function() contender.plan:launch() end })
  values[lab.metrics.find("sm_clock").name] = timed.clock_stats.median * 1e6
  local derived = lab.metrics.derive(values, { time_us = timed.stats.median })
  result.dram_gbps = derived.dram_gbps or "-"
  result.tensor_pct = derived.tensor_utilisation or "-"
  result.occupancy_pct = values[lab.metrics.find("achieved_occupancy").name] or "-"
  return result
end

-- What was measured of a part: "pad", "unpad", "zero", and "store", which all contenders share.
local function part_of(contender, name, measured)
  if name == "store" then return contender.store and measured.by_name.store end
  return measured.by_name[contender.name .. " " .. name]
end

local function tflops(flops, timed) return flops / timed.stats.median * 1e-6 end

function Run:row(contender, measured, host_us)
  local timed = measured.by_name[contender.name]
  local function part(name)
    local item = part_of(contender, name, measured)
    return item and item.stats.median or "-"
  end
  local p, state = contender.problem, timed.state or {}
  local row = { op = p.op, experts = p.experts, rows = p.rows, distribution = p.distribution,
    variant = contender.variant, beta = contender.beta, time_us = timed.stats.median,
    time_us_lo = timed.stats.median_lo, time_us_hi = timed.stats.median_hi,
    call_us = host_us or timed.stats.median, pad_us = part "pad", unpad_us = part "unpad",
    zero_us = part "zero", store_us = part "store", rounds = measured.rounds,
    tflops = tflops(contender.flops, timed),
    tflops_padded = contender.padded_flops and tflops(contender.padded_flops, timed) or "-",
    share_of_dense = measured.by_name[DENSE] and measured:ratio(DENSE, contender.name).median or "-",
    sm_clock_mhz = timed.clock_stats and timed.clock_stats.median or "-", power_w = state.power_w or "-" }
  for name, value in pairs(self:counters(contender, timed)) do row[name] = value end
  self:write(row)
end

function Run:write(row)
  self.out:row(row)
  self.written = self.written + 1
end

function Run:sample_rows(contender, measured)
  local p = contender.problem
  for _, part in ipairs { "gemm", "pad", "unpad", "zero", "store" } do
    local timed = part == "gemm" and measured.by_name[contender.name] or part_of(contender, part, measured)
    for round = 1, timed and measured.rounds or 0 do
      self.samples:row { op = p.op, experts = p.experts, rows = p.rows, distribution = p.distribution,
        variant = contender.variant, beta = contender.beta, part = part, round = round,
        time_us = timed.samples_us[round], sm_clock_mhz = timed.sm_clock_mhz and timed.sm_clock_mhz[round] or "-" }
    end
  end
end

-- Every contender, and what a padded one needs around it, once a round.
function Run:measure(list)
  local entries, store = {}, nil
  for _, contender in ipairs(list) do
    entries[#entries + 1] = { name = contender.name, plan = contender.plan }
    for _, part in ipairs { "pad", "unpad", "zero" } do
      if contender.parts[part] then
        entries[#entries + 1] = { name = contender.name .. " " .. part, run = contender.parts[part],
          device = self.device }
      end
    end
    store = store or contender.store
  end
  if store then entries[#entries + 1] = { name = "store", plan = store } end
  return lab.measure { contenders = entries, rounds = self.rounds, mode = self.mode, seed = SEED,
    throttle_below = THROTTLE_BELOW }
end

-- Counters come last: while their session is open, launches may take longer.
function Run:problem(p)
  local list, host_us = self:contenders(p), {}
  if #list == 0 then return end
  local measured = self:measure(list)
  for i, contender in ipairs(self.gpu and list or {}) do host_us[i] = call_us(contender.plan, self.device) end
  for i, contender in ipairs(list) do
    local pass, text = contender:check() -- the same launch, after all rounds
    if pass then
      self:row(contender, measured, host_us[i])
      self:sample_rows(contender, measured)
    else
      self:fail(p, contender.name, "after it was timed: %s", text)
    end
  end
  lab.profile_close()
end

-- Rows of torch, which runs its rounds of the problem right after ours.
function Run:torch_problem(position, p)
  if not self.torch then return end
  local ok, rows, samples = self.torch:run(position)
  for _, row in ipairs(rows) do self:write(row) end
  for _, sample in ipairs(samples) do self.samples:row(sample) end
  if not ok then self:fail(p, "torch", "see above") end
end

-- --- the run ----------------------------------------------------------------------------------

-- Kernel folders that the ops measure.
local function kernels_of(ops)
  local list, known = { "gemm", "pad" }, {}
  for _, op in ipairs(ops) do
    local folders = op:find "^wgrad" and { "k_grouped_gemm", "probe" } or { "m_grouped_gemm" }
    for _, folder in ipairs(folders) do
      if not known[folder] then known[folder], list[#list + 1] = true, folder end
    end
  end
  return list
end

local function open(opt, device, experiment, columns, extra)
  return lab.recorded.open { experiment = experiment, device = device, out = opt.out, columns = columns,
    kernels = kernels_of(opt.ops), record = opt.record, seed = SEED, extra = extra }
end

-- Sizes of all problems, for torch's script and whoever wants to repeat them.
local function write_sizes(path, list)
  local out = lab.check(lab.record.create(path, lab.provenance { seed = SEED }, problem.size_columns))
  for _, p in ipairs(list) do out:row(problem.size_row(p)) end
  lab.check(out:close())
end

-- opt: device (opened), ops, experts, distributions, variants, rows, rounds, shrink, counters, torch (an
-- interpreter or nil), record, out, preset. Returns whether all contenders were right.
function bench.run(opt)
  local device, gpu = opt.device, opt.device.arch > 0
  local list = problem.grid { ops = opt.ops, experts = opt.experts, distributions = opt.distributions,
    rows = opt.rows, shrink = opt.shrink, seed = SEED }
  lab.check(lab.mkdir(opt.out))
  local sizes = opt.out .. "/grouped_gemm_sizes.tsv"
  write_sizes(sizes, list)
  local torch <close> = opt.torch and peer.start { python = opt.torch, sizes = sizes, out = opt.out,
    rounds = opt.rounds, say = say } or nil
  local pool = problem.pool(device, list)
  pool:contenders(opt.variants[1], list[1]) -- before the provenance, which names the vendor's library
  local extra = { rounds = opt.rounds, mode = gpu and "cold" or "hot", shrink = opt.shrink,
    torch = torch and torch.version or nil }
  local out <close> = open(opt, device, "grouped_gemm", nil, extra)
  local samples <close> = open(opt, device, "grouped_gemm_samples", draw.sample_columns, extra)
  local run = setmetatable({ device = device, gpu = gpu, pool = pool, variants = opt.variants, rounds = opt.rounds,
    mode = extra.mode, counted = gpu and opt.counters == "on", torch = torch, out = out, samples = samples,
    failed = 0, written = 0, skipped = {} }, Run)
  do
    local bar <close> = lab.progress { total = #list, label = "grouped_gemm", unit = "problems" }
    for position, p in ipairs(list) do
      run:problem(p)
      run:torch_problem(position, p)
      bar:step(1, problem.name(p))
    end
  end
  if run.failed > 0 then
    say("%d wrong: %s has the rows of the others%s", run.failed, out.path,
      opt.record and ", and none is recorded" or "")
    out:keep()
    samples:keep()
  end
  if run.written == 0 then return run.failed == 0 and lab.check(nil, "no variant runs on " .. device.name) end
  local data = out:close()
  samples:close()
  print(summary.text(data))
  lab.draw.print(lab.draw.record(data, { folder = opt.out, preset = opt.preset }))
  return run.failed == 0
end

return bench
