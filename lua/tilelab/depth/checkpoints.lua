-- The checkpoints of a study's runs in one folder, <backend>-<layers>-<repetition>-<update>; what else
-- is in the folder stays. A run has one, two while the next is written, and none once it is complete.

local lab = require "tilelab"
local checkpoint = require "tilelab.model.checkpoint"

local Store = {}
Store.__index = Store

local checkpoints = {}

local function prefix(run) return ("%s-%d-%d-"):format(run.backend, run.layers, run.repetition) end

-- Those of a run, with those that were cut off: a list of {path, update, whole}.
local function entries(self, run)
  local list, start = {}, prefix(run)
  for _, name in ipairs(lab.list(self.folder) or {}) do
    local update = name:sub(1, #start) == start and name:match("^%d+", #start + 1)
    if update then
      list[#list + 1] = { path = self.folder .. "/" .. name, update = tonumber(update),
        whole = not name:find(checkpoint.unfinished) }
    end
  end
  return list
end

-- Opens the folder, for this process alone. spec: folder, out = the study's own, which is locked
-- already, every = updates from one to the next, facts = what is the same in all of the study's.
function checkpoints.open(spec)
  local self = setmetatable({ folder = spec.folder, every = spec.every, facts = spec.facts }, Store)
  local made, message = lab.mkdir(spec.folder)
  if not made then lab.usage_error("--checkpoint: %s", message) end
  if lab.realpath(spec.folder) ~= lab.realpath(spec.out) then
    self.lock, message = lab.lock(spec.folder)
    if not self.lock then lab.usage_error("%s; wait for it, or give another --checkpoint", message) end
  end
  return self
end

-- The newest of a run at update `most` or before: its update, or nil.
function Store:newest(run, most)
  local newest
  for _, entry in ipairs(entries(self, run)) do
    if entry.whole and entry.update <= most and entry.update > (newest or 0) then newest = entry.update end
  end
  return newest
end

local function path_of(self, run, update) return ("%s/%s%06d"):format(self.folder, prefix(run), update) end

-- Brings the model to that update of the run; returns the choices of its GEMMs, or nil.
function Store:restore(model, run, update)
  local path = path_of(self, run, update)
  local loaded, choices = model:load(path, self.facts)
  if loaded and model.count == update then return choices end
  if loaded then choices = ("%s holds update %d"):format(path, model.count) end
  lab.usage_error("--checkpoint: %s; remove %s, and the run goes on from an earlier one or starts again, or give "
    .. "another --checkpoint", choices, path)
end

-- Removes those of a run but the one at `kept`.
local function prune(self, run, kept)
  for _, entry in ipairs(entries(self, run)) do
    if entry.path ~= kept then checkpoint.remove(entry.path) end
  end
end

-- After each update of a run that has `last`: writes one where one is due, and removes the one before.
function Store:save(model, run, update, last, choices)
  if update % self.every ~= 0 or update == last then return end
  local path = path_of(self, run, update)
  model:save(path, self.facts, choices)
  prune(self, run, path)
end

-- A run that is complete, or starts anew, has none.
function Store:clear(run) prune(self, run) end

return checkpoints
