-- rows_per_expert.tsv: useful throughput and padding against rows an expert and skew, a row a variant of a
-- problem.
--
--   op            fwd_w13 fwd_w2 (Y = X W^T), dgrad_w2 dgrad_w13 (dX = dY W)
--   rows_per_expert   on average
--   experts rows  groups, and real rows of all groups
--   distribution  multinomial, or zipf_<exponent>; exponent again as a number, "-" for multinomial
--   variant       cublaslt_dense is one product of the same FLOPs and transposes
--   time_us time_us_lo time_us_hi   of the product alone, median with its 95 % interval
--   pad_us unpad_us   of the kernels that a padded variant needs before and after it
--   whole_us whole_us_lo whole_us_hi   of the product and these, round by round
--   rounds        that were kept
--   tflops tflops_whole   of real rows, over time_us and over whole_us
--   share_of_dense   median over the rounds of the dense product's time over time_us
--   computed_rows    rows that the variant multiplies: groups rounded up to 128, to the tail of sm90_ragged
--   dram_gbps     by counter, over time_us
--   ratio ratio_lo ratio_hi   of the rounds: time_us over that of the ragged variant; whole_ratio of whole_us
--   sm_clock_mhz  during the timed calls; power_w at the end of the rounds

local draw = require "tilelab.draw"
local figures = require "tilelab.grouped_gemm.figures"
local rows = require "tilelab.rows"

local per_expert = {
  schema = {
    { "op", "text", { "fwd_w13", "fwd_w2", "dgrad_w2", "dgrad_w13" } },
    { "rows_per_expert", "integer" }, { "experts", "integer" }, { "rows", "integer" }, { "distribution", "text" },
    { "exponent", "number?" },
    { "variant", "text", { "cublaslt_dense", "sm90_ragged", "sm90_padded", "cpu_ragged", "cpu_padded" } },
    { "time_us", "number" }, { "time_us_lo", "number" }, { "time_us_hi", "number" }, { "pad_us", "number?" },
    { "unpad_us", "number?" }, { "whole_us", "number" }, { "whole_us_lo", "number" }, { "whole_us_hi", "number" },
    { "rounds", "integer" }, { "tflops", "number" }, { "tflops_whole", "number" }, { "share_of_dense", "number?" },
    { "computed_rows", "integer" }, { "dram_gbps", "number?" }, { "ratio", "number?" }, { "ratio_lo", "number?" },
    { "ratio_hi", "number?" }, { "whole_ratio", "number?" }, { "whole_ratio_lo", "number?" },
    { "whole_ratio_hi", "number?" }, { "sm_clock_mhz", "number?" }, { "power_w", "number?" },
  },
}

-- Variants of each line, first those of the GPU; slot 3 is the padded layout with what it needs around.
local RAGGED, PADDED = { sm90_ragged = true, cpu_ragged = true }, { sm90_padded = true, cpu_padded = true }
local DENSE = { cublaslt_dense = true }
local LINES = {
  { DENSE, "cuBLASLt, one dense product", 8 }, { RAGGED, figures.OURS, 1 },
  { PADDED, figures.PADDED .. ", padding not counted", 2 }, { PADDED, figures.PADDED .. ", padding counted", 3 },
}

-- A series a line that has rows: point(row, whether padding counts) -> point without x.
local function series_of(data, list, x, lines, point)
  local result = {}
  for _, line in ipairs(lines) do
    local points = {}
    for _, row in ipairs(list) do
      if line[1][row.variant] then
        local made = point(row, line[3] == 3)
        made.x = data:number(row, x)
        points[#points + 1] = made
      end
    end
    if #points > 0 then result[#result + 1] = { name = line[2], slot = line[3], points = points } end
  end
  return result
end

local function throughput(data)
  return function(row, whole)
    if not whole then return figures.throughput(data, row) end
    local flops = data:number(row, "tflops") * data:number(row, "time_us")
    return { y = flops / data:number(row, "whole_us"), lo = flops / data:number(row, "whole_us_hi"),
      hi = flops / data:number(row, "whole_us_lo") }
  end
end

local function ratio(data)
  return function(row, whole)
    local column = whole and "whole_ratio" or "ratio"
    return { y = data:number(row, column), lo = data:number(row, column .. "_lo"),
      hi = data:number(row, column .. "_hi") }
  end
end

-- "4096 to 32768 rows of fwd_w13 over 4 to 256 experts"
local function extent(list)
  return ("%s rows of %s over %s experts"):format(figures.span(list, "rows", "%.0f"), list[1].op,
    figures.span(list, "experts", "%.0f"))
end

local function bandwidth(list)
  local most = 0
  for _, row in ipairs(list) do
    if RAGGED[row.variant] then most = math.max(most, rows.number(row.dram_gbps) or 0) end
  end
  return most > 0 and ("Where experts have few rows their weights have to be read all the same: the ragged product "
    .. "then moves up to %.2f TB/s"):format(most * 1e-3) or nil
end

-- Means of multinomial sizes along x.
local function by_rows(data, list)
  local problems, x, specs = extent(list) .. ", multinomial sizes", "rows_per_expert", {}
  local function add(spec)
    spec.kind, spec.logx, spec.xlabel = "lines", 2, "Rows of an expert, mean"
    specs[#specs + 1] = spec
  end
  add { name = "rows_per_expert", ylabel = "Useful TFLOP/s", zero = true,
    series = series_of(data, list, x, LINES, throughput(data)),
    caption = figures.caption(data, list, "Throughput of real rows", "median", bandwidth(list), problems) }
  add { name = "rows_per_expert_padding", ylabel = "Computed rows over real rows", logy = 2,
    series = series_of(data, list, x, { { RAGGED, figures.OURS, 1 }, { PADDED, figures.PADDED, 2 } }, function(row)
      return { y = data:number(row, "computed_rows") / data:number(row, "rows") }
    end),
    caption = { what = "Rows that each layout multiplies, over real rows: " .. problems,
      n = ("%d problems"):format(#figures.values_of(list, x)), statistic = "ratio of one problem's sizes" } }
  add { name = "rows_per_expert_gain", ylabel = "Time of padded over ragged", zero = false,
    series = series_of(data, figures.with(list, "ratio"), x,
      { { PADDED, "padding not counted", 2 }, { PADDED, "padding counted", 3 } }, ratio(data)),
    references = { { y = 1, label = "equal" } },
    caption = figures.caption(data, list, "Time with groups padded to 128 rows over that of the ragged product",
      "median of the rounds' ratios", nil, problems) }
  return specs
end

-- Exponents of zipf sizes along x.
local function by_skew(data, list)
  local padded, seen = {}, {}
  for _, row in ipairs(list) do
    if PADDED[row.variant] and not seen[row.exponent] then
      seen[row.exponent] = true
      padded[#padded + 1] = ("%.2f at %s"):format(data:number(row, "computed_rows") / data:number(row, "rows"),
        row.exponent)
    end
  end
  return { name = "rows_per_expert_skew", kind = "lines", xlabel = "Zipf exponent of the groups' sizes",
    ylabel = "Useful TFLOP/s", zero = true, series = series_of(data, list, "exponent", LINES, throughput(data)),
    caption = figures.caption(data, list, "Throughput of real rows", "median",
      #padded > 0 and "Rows of the padded layout over real rows: " .. table.concat(padded, ", ") or nil,
      ("%s, sizes from even (0) to skewed, %s rows an expert on average"):format(extent(list),
        figures.span(list, "rows_per_expert", "%.0f"))) }
end

function per_expert.draw(data, options)
  local even, skewed, specs = {}, {}, {}
  for _, row in ipairs(data.rows) do table.insert(row.exponent == "-" and even or skewed, row) end
  if #even > 0 then specs = by_rows(data, even) end
  if #skewed > 0 then specs[#specs + 1] = by_skew(data, skewed) end
  return draw.figures(data, options, specs)
end

return per_expert
