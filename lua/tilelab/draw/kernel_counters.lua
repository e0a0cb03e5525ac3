-- kernel_counters.tsv: what single kernels did, by counters, a row a quantity of a kernel.
--
--   kernel    which launch
--   quantity  theoretical_occupancy (from registers, shared memory, threads and blocks), waves,
--             achieved_occupancy, stall_<reason> (average warps an issued instruction that waited for
--             it), logical_bytes (of the equation), measured_bytes (read and written in device memory)
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

function counters.draw(data, options)
  local kernels, occupancy, logical, measured = by_kernel(data), {}, {}, {}
  for i, kernel in ipairs(kernels) do
    local v = kernel.values
    occupancy[i] = { name = kernel.name, points = { { x = v.theoretical_occupancy, y = v.achieved_occupancy } } }
    if v.logical_bytes >= SMALLEST then
      logical[#logical + 1] = { x = kernel.name, y = v.logical_bytes * 1e-6 }
      measured[#measured + 1] = { x = kernel.name, y = v.measured_bytes * 1e-6 }
    end
  end
  local n = ("%d kernels"):format(#kernels)
  return draw.figures(data, options, {
    { name = "occupancy", kind = "occupancy", preset = "acm-column", series = occupancy,
      xlabel = "Theoretical occupancy (%)", ylabel = "Achieved occupancy (%)",
      caption = { what = "Achieved occupancy against what the launch allows", n = n, statistic = "one launch" } },
    { name = "stalls", kind = "stack", preset = "acm-full", series = stalls(kernels), order = STALLS,
      xlabel = "Kernel", ylabel = "Stalled warps (%)",
      caption = { what = "Why warps did not issue, as shares of all stalls", n = n, statistic = "one launch" } },
    { name = "bytes", kind = "pairs", preset = "acm-full", xlabel = "Kernel",
      ylabel = "Device memory (MB)",
      series = { { name = "logical", points = logical }, { name = "measured", points = measured } },
      caption = { what = "Bytes that the equation needs, and bytes that device memory moved", n = n,
        statistic = "one launch" } },
  })
end

return counters
