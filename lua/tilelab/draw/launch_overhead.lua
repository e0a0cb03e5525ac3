-- launch_overhead.tsv: what it costs the host to submit one launch.
--
--   path        how it was submitted: c_call (plan->launch from C), lua_call (plan:launch() from Lua),
--               graph_replay (a graph of `launches` kernels, time of one kernel), counters (one launch
--               under an open session of counters, a whole profile call), and lua_added, the rounds'
--               differences lua_call - c_call
--   launches    kernels submitted together
--   statistic   median, or another order statistic by name: minimum, q1, q3
--   time_us     host time of one launch until the call returns, nothing awaited inside a batch
--   time_us_lo time_us_hi   95 % interval of the median; "-" for other statistics
--   samples     rounds

local draw = require "tilelab.draw"

local overhead = {
  schema = {
    { "path", "text" }, { "launches", "integer" }, { "statistic", "text" }, { "time_us", "number" },
    { "time_us_lo", "number?" }, { "time_us_hi", "number?" }, { "samples", "integer" },
  },
}

local NAMES = { c_call = "launch from C", lua_call = "launch from Lua", lua_added = "added by Lua",
  graph_replay = "graph replay" }

local function name_of(row)
  local name = NAMES[row.path] or row.path
  return row.launches == "1" and name or ("%s, a kernel of %s"):format(name, row.launches)
end

function overhead.draw(data, options)
  local series, by_statistic, samples = {}, {}, {}
  local lo, hi, counters = math.huge, 0, nil
  for _, row in ipairs(data.rows) do
    if row.path == "counters" then -- a profile call: not of this scale
      if row.statistic == "median" then counters = data:number(row, "time_us") end
      goto continue
    end
    local points = by_statistic[row.statistic]
    if not points then
      points = {}
      by_statistic[row.statistic] = points
      series[#series + 1] = { name = row.statistic, points = points }
    end
    local time = data:number(row, "time_us")
    lo, hi = math.min(lo, time), math.max(hi, time)
    points[#points + 1] = { x = name_of(row), y = time, lo = tonumber(row.time_us_lo),
      hi = tonumber(row.time_us_hi) }
    samples[row.samples] = true
    ::continue::
  end
  local count = next(samples)
  return draw.figures(data, options, { {
    name = "launch_overhead", kind = "dots", xlabel = "Path", ylabel = "Host time of a launch (µs)",
    series = series, logy = lo > 0 and hi > 30 * lo and 10 or nil, zero = true,
    caption = { what = "Host time to submit one launch: in a loop in C, in a loop in Lua, the difference of "
        .. "both in the same round, and in a graph",
      n = not next(samples, count) and count .. " rounds" or "rounds as recorded",
      statistic = #series == 1 and series[1].name or "statistic that the key names",
      clock = draw.clock(data) or "not recorded (these are times of the host)",
      note = counters and ("Not drawn: a launch whose counters are read, session open, takes %.3g ms"):format(
        counters * 1e-3) or nil },
  } })
end

return overhead
