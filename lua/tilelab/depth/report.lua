-- From updates.tsv to summary.tsv, the table and the figures of a depth-scaling study.

local lab = require "tilelab"
local draw = require "tilelab.draw"
local analysis = require "tilelab.depth.analysis"
local figures = require "tilelab.depth.figures"
local tables = require "tilelab.depth.table"
local study = require "tilelab.depth.study"

local report = {}

local numbers = { "layers", "repetition", "update", "tokens", "time_s", "loss" }

-- Rows of an updates.tsv as numbers; raises file:line for what is none.
local function numbered(data)
  local rows = {}
  for i, row in ipairs(data.rows) do
    rows[i] = { backend = row.backend }
    for _, column in ipairs(numbers) do rows[i][column] = data:number(row, column) end
  end
  return rows
end

-- The analysis of an updates.tsv (lab.record.read): rows of summary.tsv and their context, as
-- analysis.run gives them. settings: what analysis.run takes.
function report.analyse(data, settings)
  local result, info = analysis.run(numbered(data), settings)
  if not result then lab.usage_error("%s", info) end
  return result, info
end

-- The text of a study, from its results and the file that they come from.
function report.text(data, result, info)
  local row, from = data.rows[1], data.provenance
  return ("Depth scaling of %s on %s (%s), %s, routing %s\n\n%s"):format(row.model, from.device,
    from.device_model, row.precision, row.routing, tables.study(result, info))
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

-- Draws the study's figures by the names of figures.lua. options: folder, preset, prefix of the names.
function report.draw(data, result, info, options)
  local clock = data.provenance.device == "cpu" and "not locked" or nil
  local specs = figures.build(result, info, { folder = options.folder, caption = { clock = clock } })
  for _, spec in ipairs(specs) do
    spec.name, spec.path = (options.prefix or "") .. spec.path:match("[^/]+$"), nil
  end
  return draw.figures(data, options, specs)
end

-- Prints the table, writes summary.tsv and draws the figures into settings.out.
function report.write(settings, preset)
  local data = lab.record.read(settings.out .. "/updates.tsv", study.columns)
  local result, info = report.analyse(data, { warmup = settings.warmup, top = settings.top,
    backends = settings.backends, layers = settings.layers, seed = settings.seed,
    full_depth = settings.config.full_layers })
  write_summary(settings.out .. "/summary.tsv", result, info, data.provenance)
  io.write("\n", report.text(data, result, info), "\n")
  if settings.device.arch == 0 then print("CPU reference, no performance claim.\n") end
  print("results  " .. settings.out .. "/updates.tsv\n         " .. settings.out .. "/summary.tsv")
  draw.print(report.draw(data, result, info, { folder = settings.out, preset = preset }))
end

return report
