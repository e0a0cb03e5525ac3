-- Checkpoints: a folder with a model's tensors (.npy), the algorithms of its GEMMs, and checkpoint.tsv,
-- which says what it is of and holds a checksum for each file.
--
-- A folder of that name is whole: it is written under another name, its files are put on the disk,
-- and then it is renamed; and renamed again before it is removed. What a killed process leaves is called
-- <folder>.new or <folder>.old.new.

local lab = require "tilelab"
local fields = require "tilelab.fields"
local gemm_choices = require "tilelab.model.gemm_choices"
local main = require "tilelab.main"

local checkpoint = {}

local INDEX, GEMMS, COLUMNS = "/checkpoint.tsv", "/gemm_choices.tsv", { "file", "bytes", "checksum" }

checkpoint.unfinished = "%.new$" -- names of folders that are not whole

local function remove_files(folder)
  for _, name in ipairs(lab.list(folder) or {}) do lab.check(os.remove(folder .. "/" .. name)) end
  if lab.stat(folder) then lab.check(os.remove(folder)) end
end

-- Removes a checkpoint with its files, whole or not; nothing where there is none.
function checkpoint.remove(folder)
  if lab.stat(folder) and not folder:find(checkpoint.unfinished) then
    local old = folder .. ".old.new"
    remove_files(old)
    lab.check(os.rename(folder, old))
    folder = old
  end
  remove_files(folder)
end

local function facts_text(facts)
  local lines = {}
  for _, name in ipairs(fields.names(facts)) do lines[#lines + 1] = ("%s: %s\n"):format(name, facts[name]) end
  return table.concat(lines)
end

-- Writes one. facts: key -> value, which `open` compares; update: how many the model has made; tensors:
-- name -> tensor; choices: of GEMMs, or nil. Raises what the disk refuses; an earlier folder of that
-- name stays until then.
function checkpoint.write(folder, facts, update, tensors, choices)
  local new, block = folder .. ".new", facts_text(facts)
  checkpoint.remove(new)
  lab.check(lab.mkdir(new))
  local index = lab.check(lab.record.create(new .. INDEX, ("update: %d\n%s"):format(update, block), COLUMNS))
  for _, name in ipairs(fields.names(tensors)) do
    local tensor, file = tensors[name], name .. ".npy"
    local _, checksum = lab.check(tensor:save(new .. "/" .. file))
    lab.check(lab.sync(new .. "/" .. file))
    index:row { file = file, bytes = tensor.bytes, checksum = checksum }
  end
  lab.check(index:close())
  lab.check(lab.sync(new .. INDEX))
  if choices then
    choices:write(new .. GEMMS, ("cublaslt: %s\n%s"):format(choices.library or "", block))
    lab.check(lab.sync(new .. GEMMS))
  end
  lab.check(lab.sync(new))
  checkpoint.remove(folder)
  lab.check(os.rename(new, folder))
  lab.check(lab.sync(folder:match "^(.*)/[^/]*$" or "."))
end

local Opened = {}
Opened.__index = Opened

local function difference(recorded, facts)
  for _, name in ipairs(fields.names(facts)) do
    if recorded[name] ~= tostring(facts[name]) then
      return ("%s is '%s' in it, and '%s' here"):format(name, recorded[name] or "not given", facts[name])
    end
  end
end

-- A checkpoint {update, choices = of its GEMMs or nil, :fill}; or nil and a message: no such folder, no
-- checkpoint, or one of other facts.
function checkpoint.open(folder, facts)
  local data, message = main.attempt(lab.record.read, folder .. INDEX, COLUMNS)
  if not data then return nil, message end
  message = difference(data.provenance, facts)
  local update = math.tointeger(tonumber(data.provenance.update))
  if message or not update then return nil, ("%s: %s"):format(folder, message or "it does not say its update") end
  local opened = setmetatable({ folder = folder, update = update, checksums = {} }, Opened)
  for _, row in ipairs(data.rows) do opened.checksums[row.file] = row.checksum end
  if lab.stat(folder .. GEMMS) then
    opened.choices, message = main.attempt(gemm_choices.read, folder .. GEMMS)
    if not opened.choices then return nil, message end
  end
  return opened
end

-- Reads the tensor of that name into `tensor`. True, or nil and a message where the file is not what
-- was written; the tensor is then spoilt.
function Opened:fill(name, tensor)
  local path = ("%s/%s.npy"):format(self.folder, name)
  local read, found = tensor:load(path)
  if not read then return nil, found end
  local expected = self.checksums[name .. ".npy"]
  if found ~= expected then
    return nil, ("%s: damaged: its checksum is %s and was %s"):format(path, found, expected or "not noted")
  end
  return true
end

return checkpoint
