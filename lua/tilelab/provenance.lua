-- What a measurement was made with and on, as "key: value" lines for the head of a result file.

local core = require "tilelab_core"
local fields = require "tilelab.fields"

local provenance = {}

local _, this_file = ...
local this_folder = this_file:match("^(.*)/[^/]*$")

-- A word as a shell would need it.
local function quoted(word)
  if word:find("^[%w_./:=,+@%%-]+$") then return word end
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function command_line()
  local first, words = 0, {}
  if not arg then return "unknown" end
  while arg[first - 1] do first = first - 1 end
  for i = first, #arg do words[#words + 1] = quoted(arg[i]) end
  return table.concat(words, " ")
end

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- One hash over every Lua module of tilelab, in the order of their names: what the C part's commit
-- cannot vouch for when a module was edited after the build.
local function modules_hash(folder)
  local hashes = {}
  for _, name in ipairs(core.list(folder) or {}) do
    local path = folder .. "/" .. name
    local kind = (core.stat(path) or {}).kind
    hashes[#hashes + 1] = kind == "folder" and modules_hash(path) or core.hash_file(path)
  end
  return core.hash(table.concat(hashes, "\n"))
end

-- lab.provenance{device = device or name, seed =, script = path, extra = {key = value}} -> text
-- `script` defaults to the running one. Values are made one line each.
function provenance.text(settings)
  settings = settings or {}
  fields.check("lab.provenance", settings, { "device", "seed", "script", "extra" }, 2)
  local build, host, lines = core.build(), core.host(), {}
  local function add(key, value)
    lines[#lines + 1] = ("%s: %s"):format(key, (tostring(value):gsub("%s*[\r\n]+%s*", " ")))
  end
  add("date", os.date("!%Y-%m-%dT%H:%M:%SZ"))
  add("command", command_line())
  local script = settings.script or arg and arg[0]
  if script then
    add("script", script)
    add("script_sha256", core.hash_file(script) or "unknown")
  end
  if settings.seed ~= nil then add("seed", settings.seed) end
  add("tilelab", build.version)
  add("commit", build.commit)
  add("dirty", build.dirty and "yes" or "no")
  add("lua", _VERSION)
  add("lua_sha256", modules_hash(this_folder))
  add("compiler", build.compiler)
  add("cuda", build.cuda)
  add("host", host.name)
  add("system", host.system)
  add("cpu", ("%s, %d logical cores"):format(host.cpu, host.cores))
  if settings.device then
    local device = settings.device
    if type(device) == "string" then device = assert(core.device(device)) end
    add("device", device.name)
    add("device_model", device.model)
    local details = device:details() -- of a GPU: driver, versions, ECC, MIG, UUID
    for _, key in ipairs(sorted_keys(details)) do add(key, details[key]) end
    if build.cublaslt ~= "" then add("cublaslt", build.cublaslt) end
  end
  for _, key in ipairs(sorted_keys(settings.extra or {})) do add(key, settings.extra[key]) end
  for _, folder in ipairs(sorted_keys(build.kernels)) do
    add("kernel_sha256." .. folder, build.kernels[folder])
  end
  return table.concat(lines, "\n") .. "\n"
end

return provenance
