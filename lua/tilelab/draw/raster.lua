-- raster.tsv: the order of tiles against L2 hits and bytes of device memory, a row a band of a problem.
--
--   op            fwd_w13 fwd_w2 (Y = X W^T), dgrad_w2 dgrad_w13 (dX = dY W)
--   experts rows distribution   groups, rows of all groups, how they are spread over the groups
--   variant       sm90_ragged; cublaslt_dense is one product of the same FLOPs and transposes
--   band          token tiles that meet a tile of weights before the next one does; "-" where there is none
--   time_us time_us_lo time_us_hi   median with its 95 % interval
--   rounds        that were kept
--   tflops        over time_us
--   share_of_dense   median over the rounds of the dense product's time over this one's
--   l2_hit_pct    sectors found in L2, of those looked up, by counter, L2 empty at the start
--   dram_read_bytes dram_write_bytes   of device memory, by counter; what stays in L2 is not written
--   logical_bytes    that the equation needs, each operand once
--   dram_gbps     bytes read and written, over time_us
--   sm_clock_mhz  during the timed calls; power_w at the end of the rounds

local draw = require "tilelab.draw"
local figures = require "tilelab.grouped_gemm.figures"
local rows = require "tilelab.rows"

local raster = {
  schema = {
    { "op", "text", { "fwd_w13", "fwd_w2", "dgrad_w2", "dgrad_w13" } }, { "experts", "integer" },
    { "rows", "integer" }, { "distribution", "text" }, { "variant", "text", { "sm90_ragged", "cublaslt_dense" } },
    { "band", "integer?" }, { "time_us", "number" }, { "time_us_lo", "number" }, { "time_us_hi", "number" },
    { "rounds", "integer" }, { "tflops", "number" }, { "share_of_dense", "number?" }, { "l2_hit_pct", "number?" },
    { "dram_read_bytes", "number?" }, { "dram_write_bytes", "number?" }, { "logical_bytes", "number" },
    { "dram_gbps", "number?" }, { "sm_clock_mhz", "number?" }, { "power_w", "number?" },
  },
}

-- A series a number of experts: point(row) -> point without x, nil where the row has no such number.
local function series_of(data, list, point)
  local result = {}
  for slot, experts in ipairs(figures.values_of(list, "experts")) do
    local points = {}
    for _, row in ipairs(list) do
      local made = row.experts == experts and point(row)
      if made then
        made.x = data:number(row, "band")
        points[#points + 1] = made
      end
    end
    if #points > 0 then
      result[#result + 1] = { name = experts .. (experts == "1" and " expert" or " experts"), slot = slot,
        points = points }
    end
  end
  return result
end

-- Bytes moved, and as thin lines what they would be if each operand moved once.
local function bytes(data, list)
  local moved = series_of(data, list, function(row)
    local read, written = rows.number(row.dram_read_bytes), rows.number(row.dram_write_bytes)
    return read and written and { y = (read + written) * 1e-9 }
  end)
  local needed = #moved > 0 and series_of(data, list, function(row)
    return { y = data:number(row, "logical_bytes") * 1e-9 }
  end) or {}
  for _, series in ipairs(needed) do
    series.name, series.dotted = series.name .. ", needed", true
    moved[#moved + 1] = series
  end
  return moved
end

function raster.draw(data, options)
  local list, specs = rows.where(data.rows, { variant = "sm90_ragged" }), {}
  local function add(name, ylabel, series, caption)
    specs[#specs + 1] = { name = name, kind = "lines", logx = 2, xlabel = "Band (token tiles)", ylabel = ylabel,
      series = series, caption = caption }
  end
  add("raster_time", "Time (µs)", series_of(data, list, function(row)
    return { y = data:number(row, "time_us"), lo = data:number(row, "time_us_lo"), hi = data:number(row, "time_us_hi") }
  end), figures.caption(data, list, "Time of the ragged product by the height of its raster's bands", "median"))
  add("raster_l2", "L2 hit rate (%)", series_of(data, list, function(row)
    local hits = rows.number(row.l2_hit_pct)
    return hits and { y = hits }
  end), figures.reading(data, list, "Sectors found in L2, of those looked up"))
  add("raster_dram", "Device memory (GB)", bytes(data, list),
    figures.reading(data, list, "Bytes that device memory moved, read and written, and those that are needed, "
      .. "each operand once"))
  return draw.figures(data, options, specs)
end

return raster
