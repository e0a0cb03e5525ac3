-- grouped_gemm.tsv: grouped products of an expert layer, a row a variant of a problem.
--
--   op            fwd_w13 fwd_w2 (Y = X W^T), dgrad_w2 dgrad_w13 (dX = dY W), wgrad_w13 wgrad_w2 (dW = dY^T X)
--   experts       groups, empty ones included
--   rows          real rows of all groups
--   distribution  of the rows over the groups: uniform, multinomial, zipf (exponent 0.8)
--   variant       cublaslt_dense and torch_dense are one product of the same FLOPs and transposes
--   beta          1 where the product is added to what its output holds; outputs of wgrad are fp32, but bf16
--                 those of torch's variants, which have no other
--   time_us time_us_lo time_us_hi   of the product alone, median with its 95 % interval
--   call_us       host time of a launch among others, nothing awaited; on the CPU that of the call
--   pad_us unpad_us zero_us   of kernels apart that a padded variant needs before and after it: padded offsets,
--                 experts of rows and the copy of the rows (pad rows are zeroed by it); the copy back; the
--                 memset of the output (wgrad at beta 1)
--   store_us      wgrad: a stream of TMA stores over the output, in the same rounds for all variants
--   rounds        that were kept
--   tflops        of real rows; tflops_padded of all rows that a padded variant computes
--   share_of_dense   median over the rounds of the dense product's time over this one's; torch's variants are
--                 held against torch_dense of their own rounds
--   dram_gbps tensor_pct occupancy_pct   by counter, over time_us and at sm_clock_mhz
--   sm_clock_mhz  during the timed calls; power_w at the end of the rounds
-- grouped_gemm_samples.tsv has each round's times of every part.

local draw = require "tilelab.draw"
local figures = require "tilelab.grouped_gemm.figures"
local rows = require "tilelab.rows"
local wgrad_figures = require "tilelab.grouped_gemm.wgrad_figures"

local grouped = {
  schema = {
    { "op", "text", { "fwd_w13", "fwd_w2", "dgrad_w2", "dgrad_w13", "wgrad_w13", "wgrad_w2" } },
    { "experts", "integer" }, { "rows", "integer" },
    { "distribution", "text", { "uniform", "multinomial", "zipf" } },
    { "variant", "text", { "sm90_ragged", "sm90_padded", "cublaslt_dense", "cublaslt_loop", "cublaslt_grouped",
      "torch_dense", "torch_grouped_mm", "cpu_ragged", "cpu_padded" } },
    { "beta", "integer" }, { "time_us", "number" }, { "time_us_lo", "number" }, { "time_us_hi", "number" },
    { "call_us", "number?" }, { "pad_us", "number?" }, { "unpad_us", "number?" }, { "zero_us", "number?" },
    { "store_us", "number?" }, { "rounds", "integer" }, { "tflops", "number" }, { "tflops_padded", "number?" },
    { "share_of_dense", "number?" }, { "dram_gbps", "number?" }, { "tensor_pct", "number?" },
    { "occupancy_pct", "number?" }, { "sm_clock_mhz", "number?" }, { "power_w", "number?" },
  },
}

-- Of the samples' file, which no figure is drawn from.
grouped.sample_columns = { "op", "experts", "rows", "distribution", "variant", "beta", "part", "round", "time_us",
  "sm_clock_mhz" }

local OURS, PADDED, VARIANTS = figures.OURS, figures.PADDED, figures.VARIANTS
local OPS = { "fwd_w13", "fwd_w2", "dgrad_w2", "dgrad_w13" }
local DISTRIBUTIONS = { "multinomial", "zipf", "uniform" }

-- One series a variant: point(row) -> {x, y, lo, hi}, for the ops in their order.
local function series_of(list, point)
  local result = {}
  for _, variant in ipairs(VARIANTS) do
    local points = {}
    for _, op in ipairs(OPS) do
      for _, row in ipairs(list) do
        if row.op == op and row.variant == variant[1] then points[#points + 1] = point(row) end
      end
    end
    if #points > 0 then
      result[#result + 1] = { name = variant[2], slot = variant[3], points = points }
    end
  end
  return result
end

-- Rows of other variants than the pattern's.
local function without(list, pattern)
  local kept = {}
  for _, row in ipairs(list) do
    if not row.variant:find(pattern) then kept[#kept + 1] = row end
  end
  return kept
end

local function throughput(data, list, experts)
  list = without(list, "^torch")
  local function point(row)
    local made = figures.throughput(data, row)
    made.x = row.op
    return made
  end
  return { name = "grouped_gemm_" .. experts, kind = "bars", preset = "acm-column", xlabel = "Product",
    ylabel = "Useful TFLOP/s", series = series_of(list, point),
    caption = figures.caption(data, list, "Throughput of real rows", "median") }
end

-- All numbers of experts beside each other.
local function shares(data, list)
  local held = without(figures.with(list, "share_of_dense"), "_dense$")
  local function point(row) return { x = row.op .. ", " .. row.experts, y = data:number(row, "share_of_dense") } end
  return { name = "grouped_gemm_share", kind = "bars", preset = "acm-full", xlabel = "Product, experts",
    ylabel = "Share of the dense product", series = series_of(held, point),
    references = { { y = 1, label = "dense product" } },
    caption = figures.caption(data, held, "Throughput of real rows over that of one dense product of the same "
      .. "FLOPs and transposes", "median of the rounds' ratios", "torch is held against the dense product of torch, in "
      .. "rounds of its own") }
end

local PARTS = { { "time_us", "product" }, { "pad_us", "padding" }, { "unpad_us", "unpadding" },
  { "zero_us", "zeroing" } }
local LAYOUTS = { { "ragged", sm90_ragged = true, cpu_ragged = true },
  { "padded", sm90_padded = true, cpu_padded = true } }

-- Rows whose parts are drawn, each with the name of its bar: by op, ragged before padded.
local function bars_of(list)
  local bars = {}
  for _, op in ipairs(OPS) do
    for _, layout in ipairs(LAYOUTS) do
      for _, row in ipairs(list) do
        if row.op == op and layout[row.variant] then
          bars[#bars + 1] = { row = row, name = ("%s %s"):format(op, layout[1]) }
        end
      end
    end
  end
  return bars
end

-- What padding costs around the product; nil where nothing was padded.
local function padding(data, list, experts)
  local series, order, drawn, padded, bars = {}, {}, {}, false, bars_of(list)
  for i, bar in ipairs(bars) do drawn[i] = bar.row end
  for i, part in ipairs(PARTS) do
    local points = {}
    for _, bar in ipairs(bars) do
      local time = rows.number(bar.row[part[1]])
      padded = padded or time ~= nil and i > 1
      points[#points + 1] = time and { x = bar.name, y = time }
    end
    if #points > 0 then series[#series + 1], order[#order + 1] = { name = part[2], points = points }, part[2] end
  end
  if not padded then return nil end
  return { name = "grouped_gemm_padding_" .. experts, kind = "parts", preset = "acm-full",
    xlabel = "Product and layout", ylabel = "Time (µs)", series = series, order = order,
    caption = figures.caption(data, drawn, "Time of the product and of the kernels that a padded layout needs around "
      .. "it", "median", ("ragged: %s; padded to 128 rows: %s"):format(OURS, PADDED)) }
end

function grouped.draw(data, options)
  local distribution
  for _, name in ipairs(DISTRIBUTIONS) do
    distribution = distribution or #rows.where(data.rows, { distribution = name }) > 0 and name
  end
  local list, specs, forward, wgrad = rows.where(data.rows, { distribution = distribution }), {}, {}, {}
  for _, row in ipairs(list) do table.insert(row.op:find "^wgrad" and wgrad or forward, row) end
  for _, experts in ipairs(figures.values_of(forward, "experts")) do
    local some = rows.where(forward, { experts = experts })
    specs[#specs + 1] = throughput(data, some, experts)
    specs[#specs + 1] = padding(data, some, experts)
  end
  specs[#specs + 1] = shares(data, forward)
  table.move(wgrad_figures.specs(data, wgrad), 1, 2, #specs + 1, specs)
  return draw.figures(data, options, specs)
end

return grouped
