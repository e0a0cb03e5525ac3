-- From a record to its figures: what an experiment draws after it measured, and `make figures` draws
-- again from experiments/recorded without a GPU.
--
-- Each experiment has a module lua/tilelab/draw/<experiment>.lua:
--   schema               its columns (lua/tilelab/recorded.lua), explained at the head of the file
--   draw(data, options)  -> list of what lab.figure.draw returned, by way of draw.figures; absent where
--                        there is nothing to draw
-- `data` comes from lab.recorded.read or lab.record.read; options: folder, and preset where the caller
-- wants another width than the module's own.

local core = require "tilelab_core"
local figure = require "tilelab.figure"
local main = require "tilelab.main"
local provenance = require "tilelab.provenance"
local recorded = require "tilelab.recorded"
local rows = require "tilelab.rows"

local draw = {}

-- "SM at 1564 to 1950 MHz, as measured"
function draw.clock_range(lo, hi, of)
  local range = hi - lo < 1 and ("%.0f MHz"):format(hi) or ("%.0f to %.0f MHz"):format(lo, hi)
  return ("%s at %s, as measured"):format(of, range)
end

-- What a caption says of the clock: as measured where the rows have it, else as the provenance has it.
function draw.clock(data)
  local lo, hi = math.huge, -math.huge
  for _, row in ipairs(data.rows) do
    local clock = rows.number(row.sm_clock_mhz)
    if clock then lo, hi = math.min(lo, clock), math.max(hi, clock) end
  end
  if lo > hi then return data.provenance.clock end
  return draw.clock_range(lo, hi, "SM")
end

-- Conditions of a caption, from the provenance.
function draw.conditions(data)
  local from, notes = data.provenance, {}
  local stale = from.measured and recorded.stale(data) or {}
  if from.device == "cpu" then notes[1] = "CPU reference, no performance claim" end
  if #stale > 0 then
    notes[#notes + 1] = "Changed since it was recorded: " .. table.concat(stale, ", ")
  end
  return { device = from.device_model, clock = draw.clock(data),
    commit = provenance.commit(from),
    note = #notes > 0 and table.concat(notes, ". ") or nil }
end

-- Draws specifications of lab.figure.draw that have a `name` instead of a path; their captions gain
-- what the provenance knows. Those without series are left out, since the rows have nothing for them.
-- Raises a refusal when one cannot be drawn.
function draw.figures(data, options, specs)
  main.check(core.mkdir(options.folder))
  local list = {}
  for _, spec in ipairs(specs) do
    local copy, caption = {}, draw.conditions(data)
    for key, value in pairs(spec) do copy[key] = value end
    for key, value in pairs(spec.caption or {}) do
      caption[key] = key == "note" and caption.note and caption.note .. ". " .. value or value
    end
    copy.name, copy.path, copy.caption = nil, options.folder .. "/" .. spec.name, caption
    copy.preset = options.preset or spec.preset
    if #spec.series > 0 then list[#list + 1] = main.check(figure.draw(copy)) end
  end
  return list
end

-- Draws what the module of data.experiment draws; an empty list where there is none.
function draw.record(data, options)
  local module = recorded.module(data.experiment)
  return module and module.draw and module.draw(data, options) or {}
end

-- Prints the paths of drawn figures, and each note once.
function draw.print(list)
  local seen = {}
  for _, files in ipairs(list) do print("figure   " .. (files.pdf or files.gp):gsub("^%./", "")) end
  for _, files in ipairs(list) do
    local note = files.note
    if note and not seen[note] then print(note) end
    if note then seen[note] = true end
  end
end

-- Range of an axis of ratios that shows 1 with `margin` around it, and every value.
function draw.ratio_range(values, margin)
  local lo, hi = 1 - margin, 1 + margin
  for _, value in ipairs(values) do
    lo, hi = math.min(lo, value - margin / 4), math.max(hi, value + margin / 4)
  end
  return { lo, hi }
end

return draw
