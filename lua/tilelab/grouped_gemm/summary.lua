-- What a run of the grouped GEMM benchmark says at its end: useful TFLOP/s of each variant and its share of
-- the dense product, a line a problem, and what raggedness gains over padding.

local expression = require "tilelab.expression"
local main = require "tilelab.main"
local rows = require "tilelab.rows"
local text_table = require "tilelab.text_table"

local summary = {}

local ORDER = { "sm90_ragged", "cpu_ragged", "sm90_padded", "cpu_padded", "cublaslt_loop", "cublaslt_grouped",
  "cublaslt_dense", "torch_grouped_mm", "torch_dense" }
local FORWARD, WGRAD = "op=fwd_w13,fwd_w2,dgrad_w2,dgrad_w13", "op=wgrad_w13,wgrad_w2"
-- One variant over another: conditions, what is compared, over which products, in words.
local FACTORS = {
  { "sm90_ragged", "sm90_padded", "share_of_dense", FORWARD }, { "cpu_ragged", "cpu_padded", "tflops", FORWARD },
  { "sm90_ragged", "torch_grouped_mm", "share_of_dense", FORWARD },
  { "sm90_ragged", "sm90_padded", "share_of_dense", WGRAD, " beta=1" },
  { "cpu_ragged", "cpu_padded", "tflops", WGRAD, " beta=1" },
}

local function is_wgrad(row) return row.op:find "^wgrad" ~= nil end

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

-- Heads of columns: a weight gradient that is added to what is there has one of its own.
local function head_of(row) return row.beta == "1" and row.variant .. ", beta 1" or row.variant end

local function heads_of(list)
  local present, heads = {}, {}
  for _, row in ipairs(list) do present[head_of(row)] = true end
  for _, variant in ipairs(ORDER) do
    for _, head in ipairs { variant, variant .. ", beta 1" } do
      if present[head] then heads[#heads + 1] = head end
    end
  end
  return heads
end

-- A line a problem, in the order of the rows.
local function problems(list)
  local heads = heads_of(list)
  local head, right = { "op", "experts", "distribution" }, { [2] = true }
  for i, text in ipairs(heads) do head[3 + i], right[3 + i] = text, true end
  local cells, lines = { head }, {}
  for _, row in ipairs(list) do
    local key = rows.identity(row, { "op", "experts", "rows", "distribution" })
    local line = lines[key]
    if not line then
      line = { row.op, row.experts, row.distribution }
      for i = 1, #heads do line[3 + i] = "-" end
      lines[key], cells[#cells + 1] = line, line
    end
    for i, text in ipairs(heads) do
      if head_of(row) == text then line[3 + i] = cell(row) end
    end
  end
  return text_table.align(cells, right)
end

-- Geometric mean over the ops of one variant over another; nil where an op lacks one of the two.
local function factor_of(data, factor, experts, distribution)
  local where = ("where experts=%s distribution=%s %s"):format(experts, distribution, factor[4])
  local function selected(variant) return ("variant=%s%s"):format(variant, factor[5] or "") end
  local over, under = selected(factor[1]), selected(factor[2])
  local function count(conditions) return expression.value(("count %s %s"):format(where, conditions), data) end
  if count(over) ~= count(under) then return nil end
  return (main.attempt(expression.value, ("geomean %s of %s over %s %s"):format(factor[3], over, under, where), data))
end

local function factors(data)
  local lines, seen = {}, {}
  for _, factor in ipairs(FACTORS) do
    for _, row in ipairs(data.rows) do
      local line = ("%s over %s%s, %s experts, %s: "):format(factor[1], factor[2],
        factor[5] and ", weight gradients that are added" or "", row.experts, row.distribution)
      local value = not seen[line] and factor_of(data, factor, row.experts, row.distribution)
      if value then lines[#lines + 1] = line .. ("%.3f"):format(value) end
      seen[line] = true
    end
  end
  return lines
end

-- Of the rows of grouped_gemm.tsv (lab.recorded.read).
function summary.text(data)
  local lines = { ("\nUseful TFLOP/s (share of the dense product) of %s rows, medians"):format(data.rows[1].rows) }
  for _, wanted in ipairs { false, true } do
    local list = {}
    for _, row in ipairs(data.rows) do
      if is_wgrad(row) == wanted then list[#list + 1] = row end
    end
    if #list > 0 then lines[#lines + 1] = "\n" .. problems(list) end
  end
  local means = factors(data)
  if #means > 0 then
    lines[#lines + 1] = "\nGeometric means over the products, padding itself left out\n\n" .. table.concat(means, "\n")
  end
  return table.concat(lines, "\n") .. "\n"
end

return summary
