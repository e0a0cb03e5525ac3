-- Checkpoints of a model: the next updates have the same bits, and what is no checkpoint of it is named.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local presets = require "tilelab.model.presets"
local step = require "tilelab.model.step"
local texts = require "tilelab.model.text"

local device = lab.device "cpu"
local config = assert(presets.config("tiny", { layers = 2, sequence = 32, update_frequency = 2 }))
local text = lab.check(texts.load(nil, device, config.vocabulary, config.sequence))

local function build(overrides)
  local options = { device = device, config = config, backend = "rapidgemm", seed = 3, routing = "model" }
  for name, value in pairs(overrides or {}) do options[name] = value end
  return assert(step.build(options))
end

local function losses(model, count)
  local list = {}
  for i = 1, count do list[i] = ("%.17g"):format(model:update(text)) end
  return table.concat(list, " ")
end

local folder <close> = t.folder()
for _, routing in ipairs { "model", "multinomial" } do
  local path = folder / routing
  local whole = build { routing = routing }
  losses(whole, 3)
  whole:save(path, { text = text.sha256 })
  local expected = losses(whole, 3)
  local resumed = build { routing = routing }
  t.ok(resumed:load(path, { text = text.sha256 }), "a checkpoint is read, routing " .. routing)
  t.is(losses(resumed, 3), expected, "and the next losses are those of a model that went on")
  local used = build { routing = routing }
  losses(used, 5)
  t.ok(used:load(path, { text = text.sha256 }) and losses(used, 3) == expected, "in a model that was trained, too")
  resumed:save(path, { text = text.sha256 })
  t.is(table.concat(lab.list(path), " "), "checkpoint.tsv m.npy v.npy value.npy", "one replaces another")
  t.ok(not lab.stat(path .. ".new"), "and nothing else is left")
end

do -- killed while one is removed
  local checkpoint, real = require "tilelab.model.checkpoint", os.remove
  local place, removed = folder / "removed", 0
  build():save(place, {})
  os.remove = function(file) -- luacheck: ignore
    removed = removed + 1
    if removed > 2 then error "killed" end
    return real(file)
  end
  t.ok(not pcall(checkpoint.remove, place), "a removal that ends on the way")
  os.remove = real -- luacheck: ignore
  t.ok(not lab.stat(place), "leaves no folder under the name of a whole one")
  local left
  for _, name in ipairs(lab.list(folder / ".")) do
    if name:find "^removed" then left = name end
  end
  t.ok(left and left:find(checkpoint.unfinished), "but one that counts as unfinished")
  checkpoint.remove(folder / left)
  t.ok(not lab.stat(folder / left), "which can be removed")
end

local path = folder / "model"
local function refused(name, pattern, model, facts)
  local loaded, message = model:load(path, facts or { text = text.sha256 })
  t.ok(loaded == nil and message:find(pattern), ("%s (%s)"):format(name, message))
end
refused("another text", "model: text is '%x+' in it, and 'other' here", build(), { text = "other" })
refused("another seed", "seed is '3' in it, and '4' here", build { seed = 4 })
refused("another backend", "backend is 'rapidgemm' in it, and 'deepgemm' here", build { backend = "deepgemm" })
refused("another routing", "routing is 'model' in it, and 'zipf' here", build { routing = "zipf" })
config = assert(presets.config("tiny", { layers = 1, sequence = 32, update_frequency = 2 }))
refused("another layout", "layout_layers is '2' in it, and '1' here", build())
config = assert(presets.config("tiny", { layers = 2, sequence = 32, update_frequency = 2 }))
t.write(path .. "/v.npy", "no numpy")
refused("a file that is something else", "v.npy': no .npy file", build())
os.remove(path .. "/checkpoint.tsv")
refused("one that lacks its index", "checkpoint.tsv", build())
t.done()
