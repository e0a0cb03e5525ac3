-- From updates.tsv to summary.tsv, the table and the figures of a depth-scaling study.

local lab = require "tilelab"
local provenance = require "tilelab.provenance"
local analysis = require "tilelab.depth.analysis"
local figures = require "tilelab.depth.figures"
local tables = require "tilelab.depth.table"
local study = require "tilelab.depth.study"

local report = {}

local numbers = { "layers", "repetition", "update", "tokens", "time_s", "loss" }

-- Rows of an updates.tsv as numbers; raises file:line for what is none.
local function read_rows(path)
  local data, rows = lab.record.read(path, study.columns), {}
  for i, row in ipairs(data.rows) do
    rows[i] = { backend = row.backend }
    for _, column in ipairs(numbers) do rows[i][column] = data:number(row, column) end
  end
  return rows, data.provenance
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

local function caption(settings, from)
  local on_cpu = settings.device.arch == 0
  return {
    device = settings.device.model,
    clock = on_cpu and "not locked" or nil,
    commit = provenance.commit(from),
    note = on_cpu and "CPU reference, no performance claim" or nil,
  }
end

-- Prints the table, writes summary.tsv and draws the figures into settings.out.
function report.write(settings, preset)
  local rows, from = read_rows(settings.out .. "/updates.tsv")
  local result, info = analysis.run(rows, { warmup = settings.warmup, top = settings.top,
    backends = settings.backends, layers = settings.layers, seed = settings.seed,
    full_depth = settings.config.full_layers })
  if not result then lab.usage_error("%s", info) end
  write_summary(settings.out .. "/summary.tsv", result, info, from)
  print(("\nDepth scaling of %s on %s (%s), %s, routing %s\n"):format(settings.model,
    settings.device.name, settings.device.model, settings.precision, settings.routing))
  io.write(tables.study(result, info), "\n")
  if settings.device.arch == 0 then print("CPU reference, no performance claim.\n") end
  print("results  " .. settings.out .. "/updates.tsv\n         " .. settings.out .. "/summary.tsv")
  local notes = {}
  for _, spec in ipairs(figures.build(result, info, { folder = settings.out, preset = preset,
    caption = caption(settings, from) })) do
    local files, message = lab.figure.draw(spec)
    if not files then lab.usage_error("%s", message) end
    print("figure   " .. (files.pdf or files.gp):gsub("^%./", ""))
    notes[#notes + 1] = files.note
  end
  if notes[1] then print(notes[1]) end
end

return report
