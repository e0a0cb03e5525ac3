-- Recorded measurements: experiments/recorded/<chip>/<experiment>.tsv, which figures, targets and the
-- README are made from. Written by `--record` only, never by hand.
--
--   local out <close> = lab.recorded.open { experiment = "roofline", device = device, out = opt.out,
--     kernels = { "gemm" }, record = opt.record, extra = { clock = "not locked" } }
--   out:row { ... }
--   local data = out:close()      -- the run's own file, checked; with `record` it is published
--
--   for _, item in ipairs(lab.recorded.list()) do
--     local data = lab.recorded.read(item.path)
--     for _, folder in ipairs(lab.recorded.stale(data)) do print(folder .. " has changed since") end
--   end
--
-- A study that writes its result file by itself publishes it: lab.recorded.publish.
--
-- Rows go to <out>/<experiment>.tsv as they come. close() reads that file back, checks it, and puts a
-- copy in the place of the record in one step, so that a run which is interrupted or finds a wrong
-- row leaves the earlier record as it was; a replaced record is kept as <out>/<experiment>.before.tsv.
--
-- The columns of an experiment are those of its drawing module, lua/tilelab/draw/<experiment>.lua:
-- `schema`, a list of {name, kind[, choices]}; kind is text, integer or number, with "?" where a
-- cell may be "-". Experiments without such a module give `columns`.

local core = require "tilelab_core"
local fields = require "tilelab.fields"
local file = require "tilelab.file"
local main = require "tilelab.main"
local provenance = require "tilelab.provenance"
local record = require "tilelab.record"
local rows = require "tilelab.rows"

local recorded = {}

-- The folder of all records.
local _, this_file = ...
local root = core.realpath((this_file:match("^(.*)lua/tilelab/[^/]*$") or "") .. ".")
recorded.root = root
recorded.folder = root .. "/experiments/recorded"

local function refuse(format, ...)
  error(core.error_new("refused", format:format(...), "format"), 0)
end

-- --- names ------------------------------------------------------------------------------------

-- Folder of a device, or of the table {model=, arch=} or the name of one: "cpu", or the chip without
-- its maker and memory: "NVIDIA H200" is h200, "NVIDIA H100 80GB HBM3" h100, "NVIDIA GeForce RTX 4090"
-- geforce_rtx_4090.
function recorded.chip(device)
  if type(device) == "string" then device = main.check(core.device(device)) end
  if device.arch == 0 then return "cpu" end
  local model = device.model:gsub("^NVIDIA%s+", ""):lower()
  local first = model:match("^%S+") or "unknown"
  return ((first:find("%d") and first or model):gsub("[^%w]+", "_"):gsub("^_+", ""):gsub("_+$", ""))
end

-- Where an experiment's record of a device (as for chip) lies.
function recorded.path(experiment, device)
  return ("%s/%s/%s.tsv"):format(recorded.folder, recorded.chip(device), experiment)
end

-- Every record below `folder`: a list of {path, chip, experiment}, sorted.
function recorded.list(folder)
  folder = folder or recorded.folder
  local list = {}
  for _, chip in ipairs(core.list(folder) or {}) do
    for _, name in ipairs(core.list(folder .. "/" .. chip) or {}) do
      local experiment = name:match("^(.+)%.tsv$")
      if experiment then
        list[#list + 1] = { path = ("%s/%s/%s"):format(folder, chip, name), chip = chip,
          experiment = experiment }
      end
    end
  end
  table.sort(list, function(a, b) return a.path < b.path end)
  return list
end

-- The drawing module of an experiment, or nil where it has none.
function recorded.module(experiment)
  local name = "tilelab.draw." .. experiment
  if not experiment:find("^[%w_]+$") then return nil end
  if package.loaded[name] or package.searchpath(name, package.path) then return (require(name)) end
end

-- Column names of a schema.
function recorded.columns(schema)
  local names = {}
  for i, column in ipairs(schema) do names[i] = column[1] end
  return names
end

-- --- checks -----------------------------------------------------------------------------------

local function fits(cell, column)
  local kind, optional = column[2]:match("^(%l+)(%??)$")
  if cell == "-" then return optional == "?" end
  if kind == "integer" then return math.tointeger(tonumber(cell)) ~= nil end
  if kind == "number" then return rows.number(cell) ~= nil end
  if column[3] then
    for _, choice in ipairs(column[3]) do
      if cell == choice then return true end
    end
    return false
  end
  return cell ~= ""
end

local function expectation(column)
  if column[3] then return "one of " .. table.concat(column[3], ", ") end
  return (column[2]:gsub("%?$", ", or -"))
end

local function check_schema(data, schema)
  local names = recorded.columns(schema)
  if table.concat(data.columns, " ") ~= table.concat(names, " ") then
    refuse("%s: the columns are '%s', and should be '%s': record it again", data.path,
      table.concat(data.columns, " "), table.concat(names, " "))
  end
  for _, row in ipairs(data.rows) do
    for _, column in ipairs(schema) do
      if not fits(row[column[1]], column) then
        refuse("%s: column '%s' holds '%s', and should hold %s", data:where(row), column[1],
          row[column[1]], expectation(column))
      end
    end
  end
end

-- Kernel folders that a record measured.
local function measured(data)
  local list = {}
  for folder in (data.provenance.measured or ""):gmatch("[%w_]+") do list[#list + 1] = folder end
  return list
end

local NEEDED = { "date", "command", "script_sha256", "commit", "dirty", "lua_sha256", "device",
  "device_model", "measured" }

local function check_provenance(data)
  local missing = {}
  for _, key in ipairs(NEEDED) do
    if not data.provenance[key] then missing[#missing + 1] = key end
  end
  for _, folder in ipairs(measured(data)) do
    local key = "kernel_sha256." .. folder
    if not data.provenance[key] then missing[#missing + 1] = key end
  end
  if #missing > 0 then
    refuse("%s: its provenance lacks %s: record it again", data.path, table.concat(missing, ", "))
  end
end

-- Reads a record and checks it: provenance, no row cut off, at least one row, and where there is a
-- drawing module (or `schema`) its columns and cells. Adds data.experiment and data.chip.
function recorded.read(path, schema)
  local data = record.read(path)
  data.chip, data.experiment = path:match("([^/]*)/([^/]+)%.tsv$")
  data.experiment = data.experiment or path:match("([^/]+)%.tsv$") or path
  check_provenance(data)
  if #data.rows == 0 then refuse("%s: it has no rows: record it again", path) end
  local module = recorded.module(data.experiment)
  schema = schema or module and module.schema
  if schema then check_schema(data, schema) end
  return data
end

-- Kernel folders that the record measured and whose sources are others now, by name; an empty list
-- where the record is up to date. The hashes cover kernels/<folder>, and what kernels share.
function recorded.stale(data)
  local list, present = {}, core.build().kernels
  for _, folder in ipairs(measured(data)) do
    if data.provenance["kernel_sha256." .. folder] ~= present[folder] then list[#list + 1] = folder end
  end
  return list
end

-- --- writing ----------------------------------------------------------------------------------

local Writer = {}
Writer.__index = Writer

-- Puts a copy of a checked result file in the place of the record; says what it replaces.
local function publish(path, target, aside)
  main.check(core.mkdir(target:match("^(.*)/")))
  local replaced = ""
  if core.stat(target) then
    main.check(file.write(aside, main.check(file.read(target))))
    local ok, before = pcall(record.read, target)
    replaced = ok and (", which replaces that of %s (commit %s), kept as %s"):format(
      before.provenance.date or "?", (before.provenance.commit or "?"):sub(1, 12), aside)
      or (", which replaces an unreadable one, kept as %s"):format(aside)
  end
  main.check(file.replace(target, main.check(file.read(path))))
  print(("recorded %s%s"):format(target, replaced))
end

-- Publishes a result file that an experiment wrote by itself, after the checks of recorded.read.
-- spec: experiment, device, path, out = folder for a record that it replaces.
function recorded.publish(spec)
  fields.check("lab.recorded.publish", spec, { "experiment", "device", "path", "out" }, 2)
  recorded.read(spec.path, recorded.module(spec.experiment).schema)
  publish(spec.path, recorded.path(spec.experiment, spec.device),
    ("%s/%s.before.tsv"):format(spec.out, spec.experiment))
end

local function check_kernels(kernels)
  local present = core.build().kernels
  for _, folder in ipairs(kernels) do
    if not present[folder] then
      error(("lab.recorded.open: no kernel folder '%s'%s"):format(tostring(folder),
        fields.hint(folder, fields.names(present))), 3)
    end
  end
end

-- lab.recorded.open{experiment =, device = device or name, out = folder, kernels = {folders}, record =
--   false, columns = {names} (the drawing module's), seed =, extra = {key = value}} -> writer with
--   :row{column = value}, :keep(), :close() -> data of the run's own file, .path
function recorded.open(settings)
  fields.check("lab.recorded.open", settings,
    { "experiment", "device", "out", "kernels", "record", "columns", "seed", "extra" }, 2)
  for _, name in ipairs { "experiment", "device", "out", "kernels" } do
    if settings[name] == nil then error(("lab.recorded.open needs %s"):format(name), 2) end
  end
  check_kernels(settings.kernels)
  local device = settings.device
  if type(device) == "string" then device = main.check(core.device(device)) end
  local module = recorded.module(settings.experiment)
  local columns = settings.columns or module and recorded.columns(module.schema)
    or error(("lab.recorded.open: '%s' has no drawing module, so give its columns")
      :format(settings.experiment), 2)
  local extra = { measured = #settings.kernels > 0 and table.concat(settings.kernels, " ") or "-" }
  for key, value in pairs(settings.extra or {}) do extra[key] = value end
  main.check(core.mkdir(settings.out))
  local path = ("%s/%s.tsv"):format(settings.out, settings.experiment)
  local text = provenance.text { device = device, seed = settings.seed, extra = extra }
  return setmetatable({
    path = path, out = main.check(record.create(path, text, columns)),
    target = settings.record and recorded.path(settings.experiment, device) or nil,
    aside = ("%s/%s.before.tsv"):format(settings.out, settings.experiment),
  }, Writer)
end

function Writer:row(row)
  self.out:row(row)
  return self
end

-- Ends the file, reads it back with every check, and publishes it where the run was told to.
function Writer:close()
  main.check(self.out:close())
  local data = recorded.read(self.path)
  if self.target then
    publish(self.path, self.target, self.aside)
    self.target = nil
  end
  return data
end

-- Takes `record` back: close() then publishes nothing.
function Writer:keep()
  self.target = nil
  return self
end

-- Left without close(), by an error or Ctrl-C: the rows so far stay, nothing is published.
function Writer:__close()
  self.out:close()
end

return recorded
