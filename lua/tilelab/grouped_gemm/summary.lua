-- What a run of the grouped GEMM benchmark says at its end: useful TFLOP/s of each variant and its share of
-- the dense product, a line a problem, and what raggedness gains over padding.

local expression = require "tilelab.expression"
local main = require "tilelab.main"
local rows = require "tilelab.rows"
local text_table = require "tilelab.text_table"

local summary = {}

local ORDER = { "sm90_ragged", "cpu_ragged", "sm90_padded", "cpu_padded", "cublaslt_loop", "cublaslt_grouped",
  "cublaslt_dense", "torch_grouped_mm", "torch_dense" }
local FACTORS = { { "sm90_ragged", "sm90_padded", "share_of_dense" }, { "cpu_ragged", "cpu_padded", "tflops" },
  { "sm90_ragged", "torch_grouped_mm", "share_of_dense" } }

-- Three significant digits without an exponent: throughputs of a CPU are far below 1.
local function digits(value)
  local exponent = math.floor(math.log(math.max(value, 1e-9), 10))
  return ("%%.%df"):format(math.max(0, 2 - exponent)):format(value)
end

local function cell(row)
  if not row then return "-" end
  local share = rows.number(row.share_of_dense)
  return digits(tonumber(row.tflops)) .. (share and (" (%.3f)"):format(share) or "")
end

local function variants_of(data)
  local present, list = {}, {}
  for _, row in ipairs(data.rows) do present[row.variant] = true end
  for _, variant in ipairs(ORDER) do
    if present[variant] then list[#list + 1] = variant end
  end
  return list
end

-- A line a problem, in the order of the rows.
local function problems(data, variants)
  local head, right = { "op", "experts", "distribution" }, { [2] = true }
  for i, variant in ipairs(variants) do head[3 + i], right[3 + i] = variant, true end
  local cells, lines = { head }, {}
  for _, row in ipairs(data.rows) do
    local key = rows.identity(row, { "op", "experts", "rows", "distribution" })
    local line = lines[key]
    if not line then
      line = { row.op, row.experts, row.distribution }
      for i = 1, #variants do line[3 + i] = "-" end
      lines[key], cells[#cells + 1] = line, line
    end
    for i, variant in ipairs(variants) do
      if row.variant == variant then line[3 + i] = cell(row) end
    end
  end
  return text_table.align(cells, right)
end

-- Geometric mean over the ops of one variant over another; nil where an op lacks one of the two.
local function factor_of(data, factor, experts, distribution)
  local where = ("where experts=%s distribution=%s"):format(experts, distribution)
  local function count(variant) return expression.value(("count %s variant=%s"):format(where, variant), data) end
  if count(factor[1]) ~= count(factor[2]) then return nil end
  return (main.attempt(expression.value, ("geomean %s of variant=%s over variant=%s %s"):format(factor[3], factor[1],
    factor[2], where), data))
end

local function factors(data)
  local lines, seen = {}, {}
  for _, factor in ipairs(FACTORS) do
    for _, row in ipairs(data.rows) do
      local line = ("%s over %s, %s experts, %s: "):format(factor[1], factor[2], row.experts, row.distribution)
      local value = not seen[line] and factor_of(data, factor, row.experts, row.distribution)
      if value then lines[#lines + 1] = line .. ("%.3f"):format(value) end
      seen[line] = true
    end
  end
  return lines
end

-- Of the rows of grouped_gemm.tsv (lab.recorded.read).
function summary.text(data)
  local lines = { ("\nUseful TFLOP/s (share of the dense product) of %s rows, medians\n"):format(data.rows[1].rows),
    problems(data, variants_of(data)) }
  local means = factors(data)
  if #means > 0 then
    lines[#lines + 1] = "\nGeometric means over the products, padding itself left out\n\n" .. table.concat(means, "\n")
  end
  return table.concat(lines, "\n") .. "\n"
end

return summary
