-- Figures of the weight gradients in grouped_gemm.tsv: throughput with and without adding to what is there,
-- and the time with what padding needs around the product.
--
--   wgrad_figures.specs(data, list) -> specifications for draw.figures, of the rows of `list`

local figures = require "tilelab.grouped_gemm.figures"
local rows = require "tilelab.rows"

local wgrad_figures = {}

local OURS, THEIRS = figures.OURS, figures.PADDED
local OPS = { "wgrad_w13", "wgrad_w2" }
local RAGGED = { sm90_ragged = true, cpu_ragged = true }
local PADDED = { sm90_padded = true, cpu_padded = true }

-- What is drawn, in the order of legends: name, slot, variants, beta, and whether the zeroing of the output
-- counts.
local SERIES = {
  { OURS .. ", written", 1, RAGGED, "0" },
  { OURS .. ", added", 6, RAGGED, "1" },
  { THEIRS .. ", added", 2, PADDED, "1" },
  { THEIRS .. ", zeroed and added", 4, PADDED, "1", true },
  { "cuBLASLt, one product an expert", 3, { cublaslt_loop = true }, "0" },
  { "cuBLASLt, one dense product", 8, { cublaslt_dense = true }, "0" },
}

local function place(row) return ("%s, %s"):format(row.op, row.experts) end

-- Rows by op, then as they come.
local function ordered(list)
  local result = {}
  for _, op in ipairs(OPS) do
    for _, row in ipairs(list) do
      if row.op == op then result[#result + 1] = row end
    end
  end
  return result
end

local function throughput(data, list)
  local series = {}
  for _, spec in ipairs(SERIES) do
    local points = {}
    for _, row in ipairs(list) do
      local zero_us = 0
      if spec[5] then zero_us = rows.number(row.zero_us) end
      if spec[3][row.variant] and row.beta == spec[4] and zero_us then
        local flops = data:number(row, "tflops") * data:number(row, "time_us")
        local function at(column) return flops / (data:number(row, column) + zero_us) end
        points[#points + 1] = { x = place(row), y = at "time_us", lo = at "time_us_hi", hi = at "time_us_lo" }
      end
    end
    if #points > 0 then series[#series + 1] = { name = spec[1], slot = spec[2], points = points } end
  end
  return { name = "grouped_gemm_wgrad", kind = "bars", preset = "acm-full", xlabel = "Weight gradient, experts",
    ylabel = "Useful TFLOP/s", series = series,
    caption = figures.caption(data, list, "Throughput of real rows, fp32 weight gradients", "median",
      "Written: over what the output holds; added: to it. The dense product has the output of one expert. Padding is "
      .. "left out; zeroing adds the median of its own time") }
end

local PARTS = { { "time_us", "product" }, { "pad_us", "padding" }, { "zero_us", "zeroing" } }
local LAYOUTS = { { "written", RAGGED, "0" }, { "added", RAGGED, "1" }, { "padded", PADDED, "1" } }

-- nil where nothing was padded.
local function time(data, list)
  local series, order, drawn, padded = {}, {}, {}, false
  for p, part in ipairs(PARTS) do
    local points = {}
    for _, row in ipairs(list) do
      for _, layout in ipairs(LAYOUTS) do
        local value = rows.number(row[part[1]])
        if layout[2][row.variant] and row.beta == layout[3] and value then
          if p == 1 then drawn[#drawn + 1] = row end
          points[#points + 1] = { x = ("%s, %s: %s"):format(row.op:gsub("^wgrad_", ""), row.experts, layout[1]),
            y = value / 1000 }
          padded = padded or part[1] ~= "time_us"
        end
      end
    end
    if #points > 0 then series[#series + 1], order[#order + 1] = { name = part[2], points = points }, part[2] end
  end
  if not padded then return nil end
  return { name = "grouped_gemm_wgrad_time", kind = "parts", preset = "acm-full", xlabel = "Weight gradient, experts",
    ylabel = "Time (ms)", series = series, order = order,
    caption = figures.caption(data, drawn, "Time of a weight gradient and of what a padded layout needs around it",
      "median", ("Written, added: %s, beta 0 and 1; padded to 128 rows: %s, which always adds, so that the output is "
      .. "zeroed first where nothing is added up"):format(OURS, THEIRS)) }
end

function wgrad_figures.specs(data, list)
  list = ordered(list)
  return { throughput(data, list), time(data, list) }
end

return wgrad_figures
