-- From updates.tsv to summary.tsv, the table and the figures of a depth-scaling study.

local lab = require "tilelab"
local draw = require "tilelab.draw"
local analysis = require "tilelab.depth.analysis"
local curves = require "tilelab.depth.curves"
local figures = require "tilelab.depth.figures"
local presets = require "tilelab.model.presets"
local rows_of = require "tilelab.depth.rows"
local schedule = require "tilelab.depth.schedule"
local sides = require "tilelab.depth.sides"
local single = require "tilelab.depth.single"
local tables = require "tilelab.depth.table"
local study = require "tilelab.depth.study"
local utilisation = require "tilelab.depth.utilisation"
local wall = require "tilelab.depth.wall"

local report = {}

-- The analysis of an updates.tsv (lab.record.read): rows of summary.tsv and their context, as
-- analysis.run gives them. settings: what analysis.run takes.
function report.analyse(data, settings)
  local result, info = analysis.run(rows_of.numbered(data), settings)
  if not result then lab.usage_error("%s", info) end
  return result, info
end

local function heading(data)
  local row, from = data.rows[1], data.provenance
  return ("Depth scaling of %s on %s (%s), %s, routing %s\n\n"):format(row.model, from.device,
    from.device_model, row.precision, row.routing)
end

-- Rows of model FLOP utilisation, and what they are said with.
local function utilised(data, result, info)
  local config, device_model = assert(presets.config(data.rows[1].model)), data.provenance.device_model
  local rows = utilisation.rows(result, info, config, device_model)
  return rows, utilisation.text(rows, info, config, device_model)
end

-- The text of a study, from its results and the file that they come from.
function report.text(data, result, info)
  local _, text = utilised(data, result, info)
  local resumed = data.provenance.resumed
  return heading(data) .. tables.study(result, info) .. (text and "\n" .. text or "")
    .. (resumed and ("\nNote: went on from a checkpoint: %s. The first updates after that are slow, as those after a "
      .. "start are.\n"):format(resumed) or "")
end

-- The provenance of the rows, and how they were analysed: a complete study is analysed again when
-- it is given another --warmup or --top.
local function write_summary(path, result, info, from)
  local lines = {}
  for key, value in pairs(from) do lines[#lines + 1] = ("%s: %s\n"):format(key, value) end
  for _, name in ipairs { "warmup", "top", "replicates", "baseline", "full_depth" } do
    lines[#lines + 1] = ("analysis_%s: %s\n"):format(name, info[name])
  end
  table.sort(lines)
  local record = lab.check(lab.record.create(path, table.concat(lines), analysis.columns))
  for _, row in ipairs(result) do record:row(analysis.cells(row)) end
  lab.check(record:close())
end

-- Draws the study's figures by the names of figures.lua and curves.lua. options: folder, preset, prefix of the names.
function report.draw(data, result, info, options)
  local clock = data.provenance.device == "cpu" and "not locked" or nil
  local specs = figures.build(result, info, { clock = clock })
  for _, spec in ipairs(curves.build(data, result, info)) do
    spec.caption.clock = clock
    specs[#specs + 1] = spec
  end
  for _, spec in ipairs(specs) do spec.name = (options.prefix or "") .. spec.name end
  return draw.figures(data, options, specs)
end

-- Of one depth: the table, without summary and figures, which need a slope.
local function write_single(settings, data)
  local list, info = single.run(rows_of.numbered(data), settings)
  if not list then lab.usage_error("%s", info) end
  io.write("\n", heading(data), single.text(list, info), "\n")
  print("results  " .. settings.out .. "/updates.tsv")
end

-- Prints the table, writes summary.tsv and draws the figures into settings.out.
function report.write(settings, preset)
  local data = lab.record.read(settings.out .. "/updates.tsv", study.columns)
  if #settings.layers == 1 then return write_single(settings, data) end
  local result, info = report.analyse(data, { warmup = settings.warmup, top = settings.top,
    backends = settings.backends, layers = settings.layers, seed = settings.seed,
    full_depth = settings.config.full_layers })
  for _, row in ipairs((utilised(data, result, info))) do result[#result + 1] = row end
  local minutes = wall.minutes(settings.out, schedule.build(settings))
  if minutes then
    result[#result + 1] = { figure = "study_minutes", backend = "-", value = minutes, unit = "minutes" }
  end
  write_summary(settings.out .. "/summary.tsv", result, info, data.provenance)
  io.write("\n", report.text(data, result, info), "\n")
  if settings.device.arch == 0 then print("CPU reference, no performance claim.\n") end
  print("results  " .. settings.out .. "/updates.tsv\n         " .. settings.out .. "/summary.tsv")
  draw.print(report.draw(data, result, info, { folder = settings.out, preset = preset }))
end

-- Publishes the study's results: updates.tsv as depth_scaling and summary.tsv as depth_scaling_summary, or with
-- `side` (sides.names) updates.tsv as that study beside the main one. Then prints the table of all of them.
function report.record(settings, side)
  local function publish(experiment, file)
    lab.recorded.publish { experiment = experiment, device = settings.device, path = settings.out .. "/" .. file,
      out = settings.out }
  end
  publish(side and "depth_scaling_" .. side or "depth_scaling", "updates.tsv")
  if not side and #settings.layers > 1 then publish("depth_scaling_summary", "summary.tsv") end
  local text = sides.recorded(settings.device)
  if text then io.write("\n", text, "\n") end
end

return report
