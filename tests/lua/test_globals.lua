-- No module sets or reads an undeclared global, neither when it is loaded nor when it runs.
local t = dofile("tests/lua/tap.lua")
local core = require "tilelab_core"

local modules = assert(core.list("lua/tilelab"))
local declared = {}
for name in pairs(_G) do declared[name] = true end
setmetatable(_G, {
  __newindex = function(_, name) error(("global '%s' was set"):format(name), 2) end,
  __index = function(_, name)
    if not declared[name] then error(("undeclared global '%s' was read"):format(name), 2) end
  end,
})

local ok, lab = pcall(require, "tilelab")
t.ok(ok, "tilelab: " .. tostring(lab))

-- Every file below lua/tilelab; folders hold modules of their own, command/ scripts that would run.
local function load_all(folder, prefix)
  for _, name in ipairs(core.list(folder)) do
    local path, module = folder .. "/" .. name, prefix .. name:gsub("%.lua$", "")
    if name == "command" then
      t.ok(true, path .. " is run by tests/cli")
    elseif core.stat(path).kind == "folder" then
      load_all(path, module .. ".")
    elseif name:find("%.lua$") then
      local loaded, message = pcall(require, module)
      t.ok(loaded, module .. (loaded and "" or ": " .. tostring(message)))
    end
  end
end
t.ok(#modules > 5, "there are modules")
load_all("lua/tilelab", "tilelab.")

local function runs(name, fn)
  local good, message = pcall(fn)
  t.ok(good, name .. (good and "" or ": " .. tostring(message)))
end
local folder <close> = t.folder()
runs("options", function()
  local parse = require("tilelab.options").parse
  tostring(parse({ { "a", "list", { "x" }, "help" }, { "b", "boolean" } }, { "--a=y", "--b" }))
  pcall(parse, { { "a", "integer" } }, { "--help" })
end)
runs("record and provenance", function()
  local path = folder / "a.tsv"
  local record = assert(lab.record.create(path, lab.provenance { device = "cpu", seed = 1 }, { "n" }))
  record:row { n = 1 }
  record:close()
  local data = lab.record.read(path, { "n" })
  t.is(data:number(data.rows[1], "n"), 1, "the row comes back")
  t.is(data.provenance.commit, lab.commit, "provenance comes back")
  t.like(data.provenance.script_sha256, "^%x+$", "with the script's hash")
  t.like(data.provenance.lua_sha256, "^%x+$", "and that of the Lua modules")
  t.like(data.provenance.command, "test_globals.lua", "and the command")
  local text = lab.provenance { script = lab.root .. "/experiments/raster.lua" }
  t.like(text, "\nscript: experiments/raster.lua\n", "paths are below the root")
  t.ok(not text:find(lab.root .. "/", 1, true) or lab.root == ".", "and say nothing of where that is")
end)
runs("measure", function()
  lab.measure { contenders = { { name = "a", run = function() end } }, rounds = 1, minimum_us = 10 }
end)
runs("progress", function()
  local p = lab.progress { total = 1, stream = assert(io.open("/dev/null", "w")) }
  p:step()
  p:done()
end)
runs("main", function() t.is(require("tilelab.main").run(function() end), 0, "main runs") end)

t.error(function() return lab.tensr end, "lab.tensr does not exist; did you mean lab.tensor%?",
  "an unknown field of lab names the nearest")
t.error(function() return lab.qqqqqqqq end, "lab.qqqqqqqq does not exist", "or just says so")
t.error(function() return lab.model end, "lab.model does not exist", "a folder of modules is no field")
for _, name in ipairs { "figure", "metrics", "recorded", "draw" } do
  t.is(lab[name], require("tilelab." .. name), ("lab.%s is loaded when it is named"):format(name))
end
t.is(lab.host, package.preload.tilelab_core and "embedded" or "module", "lab.host")
t.ok(lab.stat(lab.root .. "/lua/tilelab.lua") ~= nil, "lab.root")
t.like(lab.commit, "^[%xuknow]+$", "lab.commit")
setmetatable(_G, nil)
t.done()
