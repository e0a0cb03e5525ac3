-- The grouped GEMM benchmark: every variant of every problem, by way of grouped_gemm/contest.lua; beside it
-- what a launch costs the host, the samples of each round, and torch's rows.

local lab = require "tilelab"
local contest = require "tilelab.grouped_gemm.contest"
local draw = require "tilelab.draw.grouped_gemm"
local peer = require "tilelab.grouped_gemm.torch"
local problem = require "tilelab.grouped_gemm.problem"
local summary = require "tilelab.grouped_gemm.summary"

local bench = {}

-- Of call_us: launches that are not timed, groups that are, launches of a group, and how often. What is in
-- flight at once must not fill the queue, though a launch is of a kernel for each expert.
local WARMUP, GROUPS, CALLS, REPEATS = 3, 3, 4, 6

-- --- one problem ------------------------------------------------------------------------------

local Run = {}
Run.__index = Run

-- Microseconds that a launch costs a host which launches one after another and awaits nothing. The host itself
-- is slow after a wait (caches, clock), so that the first launches are left out.
local function call_us(plan, device)
  local samples = {}
  for _ = 1, REPEATS do
    device:synchronize()
    plan:launch(nil, WARMUP)
    for _ = 1, GROUPS do
      local start = lab.time_us()
      plan:launch(nil, CALLS)
      samples[#samples + 1] = (lab.time_us() - start) / CALLS
    end
  end
  device:synchronize()
  return lab.stats(samples).median
end

function Run:row(contender, measured, host_us)
  local timed, row = measured.by_name[contender.name], contest.row(contender, measured)
  for _, part in ipairs { "pad", "unpad", "zero", "store" } do
    row[part .. "_us"] = contest.part_us(contender, measured, part)
  end
  row.beta, row.call_us = contender.beta, host_us or timed.stats.median
  row.tflops_padded = contender.padded_flops and contest.tflops(contender.padded_flops, timed) or "-"
  local counters = self.contest:counters(contender, timed, { "PAPER" }, { "wgmma_bf16_flops", "wgmma_bf16_peak" })
  row.dram_gbps, row.tensor_pct = counters.dram_gbps, counters.tensor_utilisation
  row.occupancy_pct = counters.achieved_occupancy
  self.contest:write(row)
end

function Run:sample_rows(contender, measured)
  local p = contender.problem
  for _, part in ipairs { "gemm", "pad", "unpad", "zero", "store" } do
    local timed = part == "gemm" and measured.by_name[contender.name] or contest.part(contender, measured, part)
    for round = 1, timed and measured.rounds or 0 do
      self.samples:row { op = p.op, experts = p.experts, rows = p.rows, distribution = p.distribution,
        variant = contender.variant, beta = contender.beta, part = part, round = round,
        time_us = timed.samples_us[round], sm_clock_mhz = timed.sm_clock_mhz and timed.sm_clock_mhz[round] or "-" }
    end
  end
end

-- Counters come last: while their session is open, launches may take longer.
function Run:problem(p)
  local list, host_us = self.contest:admit(p, self.variants), {}
  if #list == 0 then return end
  local measured = self.contest:measure(list, self.rounds)
  for i, contender in ipairs(self.contest.gpu and list or {}) do
    host_us[i] = call_us(contender.plan, self.contest.device)
  end
  for i, contender in ipairs(list) do
    if self.contest:confirm(contender) then
      self:row(contender, measured, host_us[i])
      self:sample_rows(contender, measured)
    end
  end
  lab.profile_close()
end

-- Rows of torch, which runs its rounds of the problem right after ours. Not of weight gradients: torch's
-- are bf16, and want groups of a multiple of eight rows.
function Run:torch_problem(position, p)
  if not self.torch or p.op:find "^wgrad" then return end
  local ok, rows, samples = self.torch:run(position)
  for _, row in ipairs(rows) do self.contest:write(row) end
  for _, sample in ipairs(samples) do self.samples:row(sample) end
  if not ok then self.contest:fail(p, "torch", "see above") end
end

-- --- the run ----------------------------------------------------------------------------------

-- Sizes of all problems, for torch's script and whoever wants to repeat them.
local function write_sizes(path, list)
  local out = lab.check(lab.record.create(path, lab.provenance { seed = contest.SEED }, problem.size_columns))
  for _, p in ipairs(list) do out:row(problem.size_row(p)) end
  lab.check(out:close())
end

-- opt: device (opened), ops, experts, distributions, variants, rows, rounds, shrink, counters, torch (an
-- interpreter or nil), record, out, preset. Returns whether all contenders were right.
function bench.run(opt)
  local list = problem.grid { ops = opt.ops, experts = opt.experts, distributions = opt.distributions,
    rows = opt.rows, shrink = opt.shrink, seed = contest.SEED }
  lab.check(lab.mkdir(opt.out))
  local sizes = opt.out .. "/grouped_gemm_sizes.tsv"
  write_sizes(sizes, list)
  local shared = contest.new { experiment = "grouped_gemm", device = opt.device, problems = list,
    counted = opt.counters == "on" }
  local torch <close> = opt.torch and peer.start { python = opt.torch, sizes = sizes, out = opt.out,
    rounds = opt.rounds, say = function(...) shared:say(...) end } or nil
  local settings = { out = opt.out, record = opt.record, extra = { rounds = opt.rounds, mode = shared.mode,
    shrink = opt.shrink, torch = torch and torch.version or nil } }
  local out <close> = shared:open(settings)
  local samples <close> = shared:open(settings, "grouped_gemm_samples", draw.sample_columns)
  local run = setmetatable({ contest = shared, variants = opt.variants, rounds = opt.rounds, torch = torch,
    samples = samples }, Run)
  do
    local bar <close> = lab.progress { total = #list, label = "grouped_gemm", unit = "problems" }
    for position, p in ipairs(list) do
      run:problem(p)
      run:torch_problem(position, p)
      bar:step(1, problem.name(p))
    end
  end
  if shared.failed > 0 then samples:keep() end
  if not shared:verdict(opt.record) then return false end
  local data = out:close()
  samples:close()
  print(summary.text(data))
  lab.draw.print(lab.draw.record(data, { folder = opt.out, preset = opt.preset }))
  return shared.failed == 0
end

return bench
