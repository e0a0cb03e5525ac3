-- step_timeline.tsv: the phases of one update of the training step, as kernel records have them.
--
--   backend layers precision   what trained, and how deep
--   position   of the phase in the update
--   pass phase which: phases are those of the step's NVTX ranges; launches of one phase that follow each other
--              are one row
--   start_us   from the update's first record; stop_us when its last kernel ended
--   busy_us    durations of its kernels, added up
--   launches   kernels, memsets and copies

local draw = require "tilelab.draw"

local timeline = {
  schema = {
    { "backend", "text" }, { "layers", "integer" }, { "precision", "text" }, { "position", "integer" },
    { "pass", "text", { "forward", "backward", "optimiser", "other" } }, { "phase", "text" }, { "start_us", "number" },
    { "stop_us", "number" }, { "busy_us", "number" }, { "launches", "integer" },
  },
}

-- From the top; phases that a record has beside these follow.
local ROWS = { "inputs", "zeroing", "embedding", "attention", "router", "permute", "padding", "host counts", "moe",
  "ffn", "head", "optimiser" }

local SERIES = { { "forward", 1 }, { "backward", 2 }, { "optimiser", 3 }, { "other", 4 } }

local function phase_name(row) return (row.phase:gsub(" [fb]prop$", "")) end

local function specs_of(data, backend, layers)
  local series, by_pass, present, order, count = {}, {}, {}, {}, 0
  for _, spec in ipairs(SERIES) do
    by_pass[spec[1]] = { name = spec[1], slot = spec[2], points = {} }
  end
  for _, row in ipairs(data.rows) do
    if row.backend == backend and row.layers == layers then
      local start, stop = data:number(row, "start_us") * 1e-3, data:number(row, "stop_us") * 1e-3
      local points = by_pass[row.pass].points
      points[#points + 1] = { x = phase_name(row), y = (start + stop) / 2, lo = start, hi = stop }
      present[phase_name(row)], count = true, count + 1
    end
  end
  for _, name in ipairs(ROWS) do
    if present[name] then order[#order + 1] = name end
  end
  for _, spec in ipairs(SERIES) do
    if #by_pass[spec[1]].points > 0 then series[#series + 1] = by_pass[spec[1]] end
  end
  return { name = "step_timeline_" .. backend, kind = "spans", preset = "acm-full", xlabel = "Phase", order = order,
    ylabel = "Time since the update began (ms)", series = series, zero = true,
    caption = { what = ("Phases of one update of the training step, %s, %s, %s, by kernel records; the phases are "
      .. "the NVTX ranges of the step"):format(backend, layers == "1" and "1 layer" or layers .. " layers",
      data.rows[1].precision),
      n = ("%d phases of one update"):format(count), statistic = "time from the start of a phase's first kernel to the "
      .. "end of its last" } }
end

function timeline.draw(data, options)
  local specs, done = {}, {}
  for _, row in ipairs(data.rows) do
    local key = row.backend .. " " .. row.layers
    if not done[key] then
      done[key] = true
      specs[#specs + 1] = specs_of(data, row.backend, row.layers)
    end
  end
  return draw.figures(data, options, specs)
end

return timeline
