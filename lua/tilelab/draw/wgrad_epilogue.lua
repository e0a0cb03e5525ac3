-- wgrad_epilogue.tsv: what it costs to write weight gradients or to add to them, a row a way of a problem.
--
--   op experts rows distribution   as in grouped_gemm.tsv
--   variant   sm90_ragged, whose warpgroups take turns with tiles of 128x192, and what is compared with it:
--             sm90_cooperative, whose warpgroups share a tile; cublaslt_dense, store, zero
--   way       write (over what is there), reduce (added by the copy engine), load (what is there is loaded,
--             added to and stored); for comparison dense (one product of the same FLOPs, with the output of one
--             expert), store (a stream of TMA stores over the output), zero (a memset of it)
--   beta      1 where the product is added
--   zeroed    1 where a memset of the output is part of the time and of the bytes
--   stages    of the operands' ring; sm90_ragged that loads has room for 8 boxes of 64 by 32 of what is there
--             beside 4, for 3 beside 5; sm90_cooperative with 4, 3 and 2 stages a quarter, half and all of a tile of
--             sums before it leaves
--   block_n   columns of a tile; of 32768 elements in sm90_cooperative
--   time_us time_us_lo time_us_hi   median with its 95 % interval
--   rounds    that were kept
--   tflops    of the product; share_of_dense: median of the rounds' ratios
--   store_us  median of `store` in the same rounds
--   logical_bytes   that the equation needs; dram_read_bytes dram_write_bytes: by counter, of one launch
--   sm_clock_mhz    during the timed calls; power_w at the end of the rounds

local draw = require "tilelab.draw"
local figures = require "tilelab.grouped_gemm.figures"
local rows = require "tilelab.rows"

local epilogue = {
  schema = {
    { "op", "text", { "wgrad_w13", "wgrad_w2" } }, { "experts", "integer" }, { "rows", "integer" },
    { "distribution", "text", { "uniform", "multinomial", "zipf" } },
    { "variant", "text", { "sm90_ragged", "sm90_cooperative", "cublaslt_dense", "store", "zero" } },
    { "way", "text", { "write", "reduce", "load", "dense", "store", "zero" } }, { "beta", "integer" },
    { "zeroed", "integer" }, { "stages", "integer?" }, { "block_n", "integer?" }, { "time_us", "number" },
    { "time_us_lo", "number" }, { "time_us_hi", "number" }, { "rounds", "integer" }, { "tflops", "number?" },
    { "share_of_dense", "number?" }, { "store_us", "number?" }, { "logical_bytes", "number" },
    { "dram_read_bytes", "number?" }, { "dram_write_bytes", "number?" }, { "sm_clock_mhz", "number?" },
    { "power_w", "number?" },
  },
}

-- Name, slot, way, zeroed.
local WRITTEN = { "written", 1, "write", "0" }
local REDUCED = { "added by TMA", 2, "reduce", "0" }
local LOADED = { "loaded, added, stored", 3, "load", "0" }
local LOADED_FOUR = { "the same, 4 stages", 6, "load", "0" }
local STORES = { "TMA stores alone", 8, "store", "0" }

local function short(row) return ("%s, %s"):format(row.op:gsub("^wgrad_", ""), row.experts) end

-- What the figures of one shape show: sm90_ragged's at the better number of stages, and of what it does not do,
-- sm90_cooperative's at its usual tile.
local function is_default(data, row)
  if row.variant ~= "sm90_ragged" then
    return row.stages == "-" or row.way == "reduce" and row.stages == "4" and row.block_n == "256"
  end
  for _, other in ipairs(rows.where(data.rows, { variant = row.variant, op = row.op, experts = row.experts,
    way = row.way, zeroed = row.zeroed })) do
    if data:number(other, "time_us") < data:number(row, "time_us") then return false end
  end
  return true
end

local MIXED = "Written and loaded: sm90_ragged, at the better number of stages; added by TMA, which it does not do: "
  .. "sm90_cooperative with tiles of 128x256"

local SHAPES = { { "5", "192", "in turn" }, { "4", "192", "in turn" }, { "4", "256", "1/4 tile" },
  { "3", "256", "1/2 tile" }, { "2", "256", "whole tile" }, { "4", "128", "256x128" } }

local function shape_of(row)
  for _, shape in ipairs(SHAPES) do
    if row.stages == shape[1] and row.block_n == shape[2] then return shape[3] end
  end
end

local function point(data, row, x)
  return { x = x, y = data:number(row, "time_us") / 1000, lo = data:number(row, "time_us_lo") / 1000,
    hi = data:number(row, "time_us_hi") / 1000 }
end

-- Series in the order of `specs`: points(row, spec) -> list of points of a row that may be of that series.
local function series_of(list, specs, points)
  local result = {}
  for _, spec in ipairs(specs) do
    local made = {}
    for _, row in ipairs(rows.where(list, { way = spec[3], zeroed = spec[4] })) do
      table.move(points(row, spec), 1, #SHAPES, #made + 1, made)
    end
    if #made > 0 then result[#result + 1] = { name = spec[1], slot = spec[2], points = made } end
  end
  return result
end

-- How much of a tile is staged, and the tile, for one number of experts.
local function staging(data, experts)
  local list = rows.where(data.rows, { experts = experts })
  local series = series_of(list, { WRITTEN, REDUCED, LOADED, LOADED_FOUR, STORES }, function(row, spec)
    local op = row.op:gsub("^wgrad_", "")
    local four = row.variant == "sm90_ragged" and row.stages == "4" -- which has a series of its own
    if row.way == "load" and four ~= (spec == LOADED_FOUR) then return {} end
    if row.way ~= "store" then return { point(data, row, ("%s: %s"):format(op, shape_of(row))) } end
    local stores = {}
    for i = 2, #SHAPES do stores[i - 1] = point(data, row, ("%s: %s"):format(op, SHAPES[i][3])) end
    return stores
  end)
  return { name = "wgrad_epilogue_" .. experts, kind = "bars", preset = "acm-full",
    xlabel = "Weight gradient, epilogue", ylabel = "Time (ms)", series = series,
    caption = figures.caption(data, list, "Ways for sums to leave, fp32 weight gradients", "median",
      "In turn: each warpgroup has a tile of 128x192 (sm90_ragged), with 5 stages of operands, or 4, which leave room "
      .. "for more of what is there. Otherwise warpgroups share a tile "
      .. "(sm90_cooperative); 1/4, 1/2, whole tile: what of a tile of 128x256 is staged in shared memory at once, "
      .. "beside 4, 3, 2 stages of operands; 256x128: the other tile, 1/4 staged") }
end

local function zeroing(data)
  local series = series_of(data.rows, { WRITTEN, REDUCED, LOADED, { "zeroed, added by TMA", 4, "reduce", "1" },
    { "zeroed, loaded, added, stored", 5, "load", "1" }, STORES }, function(row)
    return is_default(data, row) and { point(data, row, short(row)) } or {}
  end)
  return { name = "wgrad_epilogue_zeroing", kind = "bars", preset = "acm-full", xlabel = "Weight gradient, experts",
    ylabel = "Time (ms)", series = series,
    caption = figures.caption(data, data.rows, "fp32 weight gradients written, added, and added to an output that is "
      .. "zeroed first", "median", MIXED) }
end

-- Bytes of the default shape, logical beside measured, where they were counted.
local function bytes(data)
  local names = { write = "written", reduce = "TMA sums", load = "loaded", store = "stores" }
  local logical, measured = {}, {}
  for _, row in ipairs(data.rows) do
    local read, written = rows.number(row.dram_read_bytes), rows.number(row.dram_write_bytes)
    if names[row.way] and row.zeroed == "0" and is_default(data, row) and read and written then
      local x = ("%s: %s"):format(short(row), names[row.way])
      logical[#logical + 1] = { x = x, y = data:number(row, "logical_bytes") * 1e-9 }
      measured[#measured + 1] = { x = x, y = (read + written) * 1e-9 }
    end
  end
  return { name = "wgrad_epilogue_bytes", kind = "pairs", preset = "acm-full", xlabel = "Weight gradient, experts",
    ylabel = "Device memory (GB)",
    series = #logical > 0 and { { name = "logical", points = logical }, { name = "measured", points = measured } }
      or {},
    caption = figures.reading(data, data.rows, "Bytes that the equation of fp32 weight gradients needs (logical), and "
      .. "bytes that device memory moved (measured)", "TMA sums: added by the copy engine; stores: TMA stores alone. "
      .. MIXED) }
end

function epilogue.draw(data, options)
  local specs = {}
  for i, experts in ipairs(figures.values_of(data.rows, "experts")) do specs[i] = staging(data, experts) end
  table.move({ zeroing(data), bytes(data) }, 1, 2, #specs + 1, specs)
  return draw.figures(data, options, specs)
end

return epilogue
