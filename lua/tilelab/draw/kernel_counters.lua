-- kernel_counters.tsv: what single kernels did, by counters, a row a quantity of a kernel.
--
--   kernel    which launch
--   quantity  theoretical_occupancy (from registers, shared memory, threads and blocks), waves,
--             achieved_occupancy, stall_<reason> (average warps an issued instruction that waited for
--             it), logical_bytes (of the equation), measured_bytes (read and written in device memory),
--             gpc_clock (of the counted run)
--   value
--   unit
--   note      the limiter, beside theoretical_occupancy; else "-"

local draw = require "tilelab.draw"
local metrics = require "tilelab.metrics"
local profile = require "tilelab.profile"

local counters = {
  schema = { { "kernel", "text" }, { "quantity", "text" }, { "value", "number" }, { "unit", "text" },
    { "note", "text?" } },
}

-- What the figure of stalls keeps apart, in this order; the rest is "other".
local STALLS = { "long_scoreboard", "gmma", "barrier", "wait", "short_scoreboard", "mio_throttle", "lg_throttle" }

-- Counts one launch of the plan: rows in the columns above. Raises what the machine refuses.
function counters.rows(kernel, plan)
  local rows = {}
  local function add(quantity, value, unit, note)
    rows[#rows + 1] = { kernel = kernel, quantity = quantity, value = value, unit = unit, note = note or "-" }
  end
  local function run() plan:launch() end
  local record = assert(profile.kernel_records(run, plan.device))[1]
  add("theoretical_occupancy", record.occupancy.percent, "%", record.occupancy.limiter)
  add("waves", record.occupancy.waves, "waves")
  local label = metrics.by_label(assert(profile.profile { device = plan.device, groups = { "PAPER", "STALL" },
    quiet = true, run = run }))
  add("achieved_occupancy", label.achieved_occupancy, "%")
  for _, name in ipairs(metrics.group("STALL").metrics) do
    local short = metrics.find(name).label
    if short:find "^stall_" and label[short] then add(short, label[short], metrics.find(name).unit) end
  end
  add("logical_bytes", plan:bytes(), "byte")
  add("measured_bytes", label.dram_read + label.dram_write, "byte")
  add("gpc_clock", label.gpc_clock * 1e-6, "MHz")
  return rows
end

-- Values by kernel, in the order of the rows.
local function by_kernel(data)
  local list, found = {}, {}
  for _, row in ipairs(data.rows) do
    if not found[row.kernel] then
      found[row.kernel] = { name = row.kernel, values = {} }
      list[#list + 1] = found[row.kernel]
    end
    found[row.kernel].values[row.quantity] = data:number(row, "value")
    if row.quantity == "theoretical_occupancy" then found[row.kernel].limiter = row.note end
  end
  return list
end

local SMALLEST = 1e6 -- bytes of a kernel that the figure of bytes shows: below, caches decide

local function stalls(kernels)
  local series = {}
  for _, kernel in ipairs(kernels) do
    for quantity, value in pairs(kernel.values) do
      local reason = quantity:match "^stall_(.*)$"
      if reason and reason ~= "selected" then
        series[reason] = series[reason] or { name = reason, points = {} }
        series[reason][kernel.name] = value
      end
    end
  end
  local list = {}
  for _, one in pairs(series) do
    for i, kernel in ipairs(kernels) do
      one.points[i] = { x = kernel.name, y = one[kernel.name] or 0 }
      one[kernel.name] = nil
    end
    list[#list + 1] = one
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

-- What the drawn reasons mean, in the catalogue's words.
local function legend(list)
  local drawn, parts = {}, {}
  for _, series in ipairs(list) do drawn[series.name] = true end
  for _, reason in ipairs(STALLS) do
    local text = drawn[reason] and metrics.find("stall_" .. reason).text
    if text then parts[#parts + 1] = reason .. ": " .. text:match "^Warps (.*), at each issued instruction%.$" end
  end
  return table.concat(parts, "; ")
end

-- Which limit binds which kernels, and whose grid does not fill the GPU once.
local function limits(kernels)
  local names, order, small, parts = {}, {}, {}, {}
  for _, kernel in ipairs(kernels) do
    local limiter = kernel.limiter or "-"
    if not names[limiter] then names[limiter], order[#order + 1] = {}, limiter end
    table.insert(names[limiter], kernel.name)
    if (kernel.values.waves or 1) < 1 then small[#small + 1] = kernel.name end
  end
  for i, limiter in ipairs(order) do
    parts[i] = ("%s (%s)"):format(limiter, table.concat(names[limiter], "; "))
  end
  return "Theoretical occupancy is limited by " .. table.concat(parts, "; by ")
    .. (#small > 0 and ". Less than one wave of blocks: " .. table.concat(small, "; ") or "")
end

-- As the counted runs had it; nil where the record lacks it.
local function clock(kernels)
  local lo, hi = math.huge, -math.huge
  for _, kernel in ipairs(kernels) do
    local value = kernel.values.gpc_clock
    if value then lo, hi = math.min(lo, value), math.max(hi, value) end
  end
  return lo <= hi and draw.clock_range(lo, hi, "GPC") or nil
end

function counters.draw(data, options)
  local kernels, occupancy, logical, measured, small = by_kernel(data), {}, {}, {}, {}
  for i, kernel in ipairs(kernels) do
    local v = kernel.values
    occupancy[i] = { name = kernel.name, points = { { x = v.theoretical_occupancy, y = v.achieved_occupancy } } }
    if v.logical_bytes >= SMALLEST then
      logical[#logical + 1] = { x = kernel.name, y = v.logical_bytes * 1e-6 }
      measured[#measured + 1] = { x = kernel.name, y = v.measured_bytes * 1e-6 }
    else
      small[#small + 1] = kernel.name
    end
  end
  local n, reasons = ("%d kernels"):format(#kernels), stalls(kernels)
  local function caption(what, statistic, note, count)
    return { what = what, statistic = statistic, n = count or n, note = note, clock = clock(kernels) }
  end
  return draw.figures(data, options, {
    { name = "occupancy", kind = "occupancy", preset = "acm-column", series = occupancy,
      xlabel = "Theoretical occupancy (%)", ylabel = "Achieved occupancy (%)",
      caption = caption("Warps on a multiprocessor while it had work, against those that the launch allows; both "
        .. "in percent of 64", "reading of one launch", limits(kernels)) },
    { name = "stalls", kind = "stack", preset = "acm-full", series = reasons, order = STALLS,
      xlabel = "Kernel", ylabel = "Stalled warps (%)",
      caption = caption("Why warps did not issue, as shares of all stalls", "share in one launch", legend(reasons)) },
    { name = "bytes", kind = "pairs", preset = "acm-full", xlabel = "Kernel",
      ylabel = "Device memory (MB)",
      series = { { name = "logical", points = logical }, { name = "measured", points = measured } },
      caption = caption("Bytes that the equation needs (logical), and bytes that device memory moved (measured)",
        "total of one launch", #small > 0 and "Left out, since it needs less than 1 MB: "
        .. table.concat(small, "; ") or nil, ("%d kernels"):format(#logical)) },
  })
end

return counters
