-- Columns of rows_per_expert.tsv beyond those of contest.lua: what a variant takes with the kernels around
-- it, what it computes beyond the real rows, and its time over that of the ragged variant.

local lab = require "tilelab"
local contest = require "tilelab.grouped_gemm.contest"
local grouped = require "tilelab.grouped"

local padding = {}

-- Rows of a group that the variant rounds its size up to.
local function step_of(contender)
  if contender.padded_flops then return grouped.ALIGNMENT end
  return contender.plan:tunables().tail or 1
end

local function computed_rows(contender)
  local total = 0
  if contender.variant == contest.DENSE then return contender.problem.rows end
  for _, size in ipairs(grouped.padded(contender.problem.sizes, step_of(contender))) do total = total + size end
  return total
end

-- Round by round, the product with its padding and unpadding.
local function whole_us(contender, measured)
  local sums = table.move(measured.by_name[contender.name].samples_us, 1, measured.rounds, 1, {})
  for _, part in ipairs { "pad", "unpad" } do
    local timed = contest.part(contender, measured, part)
    for round = 1, timed and measured.rounds or 0 do sums[round] = sums[round] + timed.samples_us[round] end
  end
  return sums
end

-- Statistics of the rounds' ratios: `samples` over the ragged variant.
local function ratio(samples, ragged)
  local ratios = {}
  for round, time in ipairs(samples) do ratios[round] = time / ragged.samples_us[round] end
  return lab.stats(ratios)
end

function padding.row(run, contender, measured)
  local p, timed = contender.problem, measured.by_name[contender.name]
  local function part(name) return contest.part_us(contender, measured, name) end
  local samples = whole_us(contender, measured)
  local whole = lab.stats(samples)
  local row = { distribution = p.exponent and ("zipf_%g"):format(p.exponent) or p.distribution,
    rows_per_expert = p.rows // p.experts, exponent = p.exponent or "-", pad_us = part "pad", unpad_us = part "unpad",
    whole_us = whole.median, whole_us_lo = whole.median_lo, whole_us_hi = whole.median_hi,
    tflops_whole = contender.flops / whole.median * 1e-6, computed_rows = computed_rows(contender),
    dram_gbps = run:counters(contender, timed, { "PAPER" }).dram_gbps }
  local ragged = measured.by_name.sm90_ragged or measured.by_name.cpu_ragged
  for name, values in pairs { ratio = timed.samples_us, whole_ratio = samples } do
    local stats = ragged and ratio(values, ragged)
    row[name] = stats and stats.median or "-"
    row[name .. "_lo"], row[name .. "_hi"] = stats and stats.median_lo or "-", stats and stats.median_hi or "-"
  end
  return row
end

return padding
