-- Counters of one launch of a scale-swizzle kernel, as columns of scale_swizzle.tsv and scale_swizzle_causes.tsv.
--
--   counters.read(device, plan, full) -> {column = number}, absent what was not counted; `full` also reads what
--       takes several passes: sectors, conflicts and stalls
--   counters.STALLS    the reasons that have a column of their own, stall_<reason>_pct; the rest is other
--
-- Shares of stalls are of all warps that did not issue. Sectors of loads are absent for kernels that load by
-- the copy engine, which does not pass where they are counted.

local lab = require "tilelab"

local counters = { STALLS = { "long_scoreboard", "lg_throttle", "barrier", "short_scoreboard", "wait",
  "math_pipe_throttle", "not_selected" } }

local INSTRUCTIONS = "sm__inst_executed.sum"
local ISSUE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
local ALU = "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active"
local L1 = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_active"

local LIGHT = { "achieved_occupancy", "dram_read", "dram_write", INSTRUCTIONS, ISSUE, ALU, L1 }
local FULL = { "sectors_per_load", "sectors_per_store", "load_efficiency", "store_efficiency",
  "shared_conflicts_load", "shared_conflicts_store", "shared_arbitration", "shared_wavefronts" }

local BULK = { sm90_tma = true, sm90_bulk = true }

local function metrics_of(full)
  local names = table.move(LIGHT, 1, #LIGHT, 1, {})
  if full then
    table.move(FULL, 1, #FULL, #names + 1, names)
    for _, name in ipairs(lab.metrics.group("STALL").metrics) do names[#names + 1] = name end
  end
  return names
end

local function number(value) return type(value) == "number" and value == value and value or nil end

-- Shares of the reasons, and the largest of them all by its name.
local function stalls(values, row)
  local total, named, top, most = 0, 0, nil, 0
  for label, value in pairs(values) do
    local reason = label:match "^stall_(.*)$"
    if reason and reason ~= "selected" and number(value) then
      total = total + value
      if value > most then top, most = reason, value end
    end
  end
  if total == 0 then return end
  for _, reason in ipairs(counters.STALLS) do
    local value = number(values["stall_" .. reason]) or 0
    row["stall_" .. reason .. "_pct"], named = 100 * value / total, named + value
  end
  row.stall_other_pct, row.top_stall = 100 * (total - named) / total, top
end

function counters.read(device, plan, full)
  local values = lab.metrics.by_label(lab.check(lab.profile { device = device, metrics = metrics_of(full),
    optional = true, quiet = true, run = function() plan:launch() end }))
  local bulk, wavefronts = BULK[plan.variant], number(values.shared_wavefronts)
  local loads, stores = number(values.shared_conflicts_load), number(values.shared_conflicts_store)
  local arbitration = number(values.shared_arbitration)
  local conflicts = loads and stores and arbitration and math.max(0, loads + stores - arbitration)
  local row = { occupancy_achieved_pct = number(values.achieved_occupancy), instructions = number(values[INSTRUCTIONS]),
    issue_active_pct = number(values[ISSUE]), alu_pct = number(values[ALU]), l1_pct = number(values[L1]),
    sectors_per_request_ld = not bulk and number(values.sectors_per_load) or nil,
    sectors_per_request_st = number(values.sectors_per_store),
    load_efficiency_pct = not bulk and number(values.load_efficiency) or nil,
    store_efficiency_pct = number(values.store_efficiency),
    bank_conflict_pct = conflicts and wavefronts and (wavefronts > 0 and 100 * conflicts / wavefronts or 0) or nil }
  if number(values.dram_read) and number(values.dram_write) then
    row.dram_bytes = values.dram_read + values.dram_write
  end
  stalls(values, row)
  return row
end

return counters
