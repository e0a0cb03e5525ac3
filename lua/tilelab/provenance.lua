-- What a measurement was made with and on, as "key: value" lines for the head of a result file.

local core = require "tilelab_core"
local fields = require "tilelab.fields"
local file = require "tilelab.file"
local shell = require "tilelab.shell"

local provenance = {}

-- A path below lab.root without it: where the project lies is nobody's business.
local function below_root(path)
  local prefix = require("tilelab").root .. "/"
  return path:sub(1, #prefix) == prefix and path:sub(#prefix + 1) or path
end

-- To be pasted into a shell at the project's root, quoted only where it must be.
local function command_line()
  local words = shell.command()
  if not words then return "unknown" end
  for i, word in ipairs(words) do
    local short = below_root(word)
    words[i] = short:find("^[%w_./:=,+@%%-]+$") and short or shell.quote(short)
  end
  return table.concat(words, " ")
end

-- The Lua files below a folder, as "hash path" lines; paths are below lab.root.
local function list_sources(root, folder, lines)
  for _, name in ipairs(core.list(root .. "/" .. folder) or {}) do
    local path = folder .. "/" .. name
    if name:find("%.lua$") then
      lines[#lines + 1] = (core.hash_file(root .. "/" .. path) or "unknown") .. " " .. path
    elseif not name:find("%.") then
      list_sources(root, path, lines)
    end
  end
  return lines
end

local lua_hash -- of lua/, read once: the modules of this process were loaded from it

local function lua_sha256()
  local root = require("tilelab").root
  lua_hash = lua_hash or core.hash(table.concat(list_sources(root, "lua", {}), "\n"))
  return lua_hash
end

-- What stands behind "name:" in a file of /proc, nil without that file or name.
local function proc_value(path, name)
  local text = file.read(path) or ""
  return text:match(name .. ":%s*([^\n]-)%s*\n")
end

-- The NVIDIA GPUs that this machine has, used or not, and the driver that is loaded; from /proc,
-- since opening a device to ask for its name would take memory on it.
local function graphics()
  local root, models = "/proc/driver/nvidia", {}
  for _, name in ipairs(core.list(root .. "/gpus") or {}) do
    models[#models + 1] = proc_value(root .. "/gpus/" .. name .. "/information", "Model")
  end
  return #models > 0 and table.concat(models, ", ") or "none",
    proc_value(root .. "/version", "NVRM version") or "none"
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
    add("script", below_root(script))
    add("script_sha256", core.hash_file(script) or "unknown")
  end
  if settings.seed ~= nil then add("seed", settings.seed) end
  add("tilelab", build.version)
  add("commit", build.commit)
  add("dirty", build.dirty and "yes" or "no")
  add("lua", _VERSION)
  add("lua_sha256", lua_sha256())
  add("compiler", build.compiler)
  add("cuda", build.cuda)
  add("host", host.name)
  add("system", host.system)
  add("cpu", ("%s, %d logical cores"):format(host.cpu, host.cores))
  local gpu, driver = graphics()
  add("gpu", gpu)
  add("driver", driver)
  if settings.device then
    local device = settings.device
    if type(device) == "string" then device = assert(core.device(device)) end
    add("device", device.name)
    add("device_model", device.model)
    -- On the CPU the threads of OpenMP: OMP_NUM_THREADS changes what is measured.
    add(device.arch == 0 and "device_threads" or "device_multiprocessors", device.multiprocessors)
    local details = device:details() -- of a GPU: versions, ECC, MIG, UUID
    for _, key in ipairs(fields.names(details)) do add(key, details[key]) end
    if build.cublaslt ~= "" then add("cublaslt", build.cublaslt) end
    if build.cudnn ~= "" then add("cudnn", build.cudnn) end
  end
  for _, key in ipairs(fields.names(settings.extra or {})) do add(key, settings.extra[key]) end
  for _, folder in ipairs(fields.names(build.kernels)) do
    add("kernel_sha256." .. folder, build.kernels[folder])
  end
  return table.concat(lines, "\n") .. "\n"
end

-- A line of provenance -> key, value; nil for one that is none.
function provenance.entry(line) return line:match("^([^:]+):%s*(.*)$") end

-- Text of lines -> {key = value}.
function provenance.parse(text)
  local map = {}
  for line in text:gmatch("[^\n]+") do
    local key, value = provenance.entry(line)
    if key then map[key] = value end
  end
  return map
end

-- The commit as captions have it, from provenance that was read back; nil where there is none.
function provenance.commit(from)
  return from.commit and from.commit:sub(1, 12) .. (from.dirty == "yes" and " with local changes" or "")
end

return provenance
