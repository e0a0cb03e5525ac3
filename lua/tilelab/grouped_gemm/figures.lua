-- What the figures of the experiments on grouped products share: names of variants, selections of rows,
-- captions.
--
--   figures.VARIANTS                      {variant, name, slot} in the order of legends
--   figures.with(list, column) -> rows that hold a number there
--   figures.values_of(list, column) -> its different texts, in their order
--   figures.span(list, column, format) -> "20" or "18 to 20"; nil where it has no number
--   figures.throughput(data, row) -> {y =, lo =, hi =} in TFLOP/s, by the interval of its time
--   figures.caption(data, list, what, statistic[, note[, problems]]) -> caption, with the clock and the power of
--                                         these rows; problems in words, by default their rows, experts and
--                                         distribution; nil for no rows
--   figures.reading(data, list, what[, note])   the same for what a counter read in one launch

local draw = require "tilelab.draw"
local rows = require "tilelab.rows"

local figures = { OURS = "RapidGEMM-style (ours)", PADDED = "DeepGEMM-style (ours)" }

local OURS, PADDED = figures.OURS, figures.PADDED

-- Variants in the order of legends: name, slot. Those of torch ran in a process of their own, so that
-- only their shares of its dense product compare with the others.
figures.VARIANTS = {
  { "sm90_ragged", OURS, 1 }, { "cpu_ragged", OURS, 1 }, { "sm90_padded", PADDED, 2 }, { "cpu_padded", PADDED, 2 },
  { "cublaslt_loop", "cuBLASLt, one product an expert", 3 }, { "cublaslt_grouped", "cuBLASLt, grouped", 5 },
  { "torch_grouped_mm", "torch._grouped_mm", 4 }, { "cublaslt_dense", "cuBLASLt, one dense product", 8 },
}

function figures.with(list, column)
  local kept = {}
  for _, row in ipairs(list) do
    if rows.number(row[column]) then kept[#kept + 1] = row end
  end
  return kept
end

function figures.values_of(list, column)
  local seen, values = {}, {}
  for _, row in ipairs(list) do
    if not seen[row[column]] then seen[row[column]], values[#values + 1] = true, row[column] end
  end
  return values
end

function figures.span(list, column, format)
  local lo, hi = math.huge, -math.huge
  for _, row in ipairs(list) do
    local value = rows.number(row[column])
    if value then lo, hi = math.min(lo, value), math.max(hi, value) end
  end
  if lo > hi then return nil end
  local from, to = format:format(lo), format:format(hi)
  return from == to and from or from .. " to " .. to
end

function figures.throughput(data, row)
  local flops = data:number(row, "tflops") * data:number(row, "time_us")
  return { y = data:number(row, "tflops"), lo = flops / data:number(row, "time_us_hi"),
    hi = flops / data:number(row, "time_us_lo") }
end

-- "32768 rows of fwd_w13 over 32 and 128 experts, zipf sizes": what the rows have in common.
local function problems_of(list)
  local ops, experts = figures.values_of(list, "op"), table.concat(figures.values_of(list, "experts"), ", ")
  return ("%s rows%s over %s experts, %s sizes"):format(figures.span(list, "rows", "%.0f"),
    #ops == 1 and " of " .. ops[1] or "", experts:gsub(", ([^,]*)$", " and %1"), list[1].distribution)
end

function figures.caption(data, list, what, statistic, note, problems)
  if #list == 0 then return nil end
  local power, notes = figures.span(list, "power_w", "%.0f"), {}
  notes[1] = note
  notes[#notes + 1] = power and ("Power at the end of the rounds: %s W"):format(power)
  return { what = ("%s: %s, bf16%s"):format(what, problems or problems_of(list),
      data.provenance.mode == "cold" and ", L2 cold" or ""),
    n = figures.span(list, "rounds", "%.0f") .. " rounds", statistic = statistic,
    clock = draw.clock { rows = list, provenance = data.provenance },
    interval = "95 % intervals of the median", note = #notes > 0 and table.concat(notes, ". ") or nil }
end

-- The same for a counter, which was read once.
function figures.reading(data, list, what, note)
  local caption = figures.caption(data, list, what, "reading of one launch", note)
  if caption then caption.n = "1 launch" end
  return caption
end

return figures
