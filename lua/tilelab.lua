-- tilelab for scripts: local lab = require "tilelab"
--
-- One table, no globals. What is documented in lua/*.c is here under the same name; what is written
-- in Lua is documented in lua/tilelab/*.lua. Reading a field that does not exist is an error.

local core = require "tilelab_core"

local _, this_file = ...

local build = core.build()

local lab = {
  version = build.version,
  commit = build.commit, -- that the C part was built from
  dirty = build.dirty,   -- whether that tree had uncommitted changes
  -- "embedded" in build/tilelab, "module" under a stock interpreter: for logs only.
  host = package.preload.tilelab_core and "embedded" or "module",
}

-- The repository's root folder, absolute.
local folder = this_file and this_file:match("^(.*)lua/[^/]*$") or ""
lab.root = core.realpath(folder == "" and "." or folder)

for _, name in ipairs {
  "device", "devices",
  "tensor", "tensor_from", "load",
  "operations", "kernels", "plan", "legal",
  "stats", "compare", "compare_groups", "random",
  "time_us", "sleep", "interrupted",
  "mkdir", "stat", "list", "realpath", "lock", "sync", "is_tty", "terminal_width", "pid",
  "hash", "hash_file", "nearest",
  "occupancy",
} do
  lab[name] = assert(core[name], name)
end

local main = require "tilelab.main"
lab.main = main.main
lab.usage_error = main.usage_error
lab.check = main.check
lab.gpu = main.gpu
lab.device_option = main.device_option

lab.options = require("tilelab.options").options
lab.measure = require("tilelab.measure").measure
lab.progress = require("tilelab.progress").progress
lab.provenance = require("tilelab.provenance").text
lab.record = require "tilelab.record"

local nvtx = require "tilelab.nvtx"
lab.nvtx, lab.nvtx_call, lab.nvtx_phases = nvtx.open, nvtx.call, nvtx.phases

local profile = require "tilelab.profile"
lab.counters = core.counters
lab.profile, lab.profile_kernels = profile.profile, profile.kernels
lab.profile_passes, lab.profile_close = profile.passes, profile.close
lab.kernel_records, lab.timeline = profile.kernel_records, profile.timeline
lab.activity_records = profile.activity_records

-- Loaded when first named: what only some scripts need.
local on_demand = { figure = "tilelab.figure", metrics = "tilelab.metrics",
  recorded = "tilelab.recorded", draw = "tilelab.draw" }

local function known_names()
  local names = {}
  for name in pairs(lab) do names[#names + 1] = name end
  for name in pairs(on_demand) do names[#names + 1] = name end
  table.sort(names)
  return names
end

return setmetatable(lab, {
  __index = function(_, key)
    if on_demand[key] then
      local module = require(on_demand[key])
      rawset(lab, key, module)
      return module
    end
    local nearest = core.nearest(tostring(key), known_names())
    error(("lab.%s does not exist%s"):format(tostring(key),
      nearest and ("; did you mean lab.%s?"):format(nearest) or ""), 2)
  end,
})
