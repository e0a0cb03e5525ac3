-- Steps of gemm_ladder: contenders in which one technique after another is switched on, and the columns of
-- gemm_ladder.tsv beyond those of contest.lua.

local lab = require "tilelab"
local contest = require "tilelab.grouped_gemm.contest"
local draw = require "tilelab.draw.gemm_ladder"

local ladder = {}

-- steps: list of {name, variant =, rounds =, tunable = value, ...}. A step keeps the variant of the step
-- before, and with it its tunables; `rounds` are its own. -> entries of contest.run: the dense product, then
-- the steps.
function ladder.entries(steps)
  local entries, before = { { name = contest.DENSE, variant = contest.DENSE, step = 0 } }, {}
  for i, step in ipairs(steps) do
    local entry = { name = step[1], variant = step.variant or before.variant, rounds = step.rounds, step = i,
      tunables = {} }
    assert(entry.variant, "the first step names a variant")
    local kept = entry.variant == before.variant and before.tunables or {}
    for key, value in pairs(kept) do entry.tunables[key] = value end
    for key, value in pairs(step) do
      if key ~= 1 and key ~= "variant" and key ~= "rounds" then entry.tunables[key] = value end
    end
    entries[i + 1], before = entry, entry
  end
  return entries
end

-- Time of the step before over this one's; round by round where both were timed together.
local function gain(before, contender, measured)
  if before.measured == measured then
    local ratio = measured:ratio(before.contender.name, contender.name)
    return ratio.median, ratio.lo, ratio.hi
  end
  return before.measured.by_name[before.contender.name].stats.median
    / measured.by_name[contender.name].stats.median, "-", "-"
end

-- Shares of the reasons why warps did not issue, in percent; "-" where they were not counted.
local function stalls(counters, row)
  local total, named = 0, 0
  for _, name in ipairs(lab.metrics.group("STALL").metrics) do
    local label = lab.metrics.find(name).label
    local value = label:find "^stall_" and label ~= "stall_selected" and counters[label]
    if type(value) == "number" then total = total + value end
  end
  for _, reason in ipairs(draw.STALLS) do
    local value = counters["stall_" .. reason]
    local counted = type(value) == "number" and total > 0
    if counted then named = named + value end
    row["stall_" .. reason .. "_pct"] = counted and 100 * value / total or "-"
  end
  row.stall_other_pct = total > 0 and 100 * (total - named) / total or "-"
end

function ladder.row(run, contender, measured)
  local before, step = run.step_before, contender.entry.step
  local tunables = contender.plan:tunables()
  local counters = run:counters(contender, measured.by_name[contender.name], { "PAPER", "STALL" },
    { "l2_hit_rate", "wgmma_bf16_flops", "wgmma_bf16_peak", "dram_peak_per_cycle" })
  local row = { step = step, name = contender.name, gain = "-", gain_lo = "-", gain_hi = "-",
    tensor_pct = counters.tensor_utilisation, dram_gbps = counters.dram_gbps, dram_pct = counters.dram_utilisation,
    l2_hit_pct = counters.l2_hit_rate, occupancy_pct = counters.achieved_occupancy }
  for _, name in ipairs(draw.TUNABLES) do row[name] = step > 0 and tunables[name] or "-" end
  stalls(counters, row)
  -- A step that is missing leaves the next one without a gain.
  if step > 1 and before and before.contender.problem == contender.problem
    and before.contender.entry.step == step - 1 then
    row.gain, row.gain_lo, row.gain_hi = gain(before, contender, measured)
  end
  run.step_before = { contender = contender, measured = measured }
  return row
end

return ladder
