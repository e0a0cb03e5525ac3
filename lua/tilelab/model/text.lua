-- Training text as tokens on a device: a token is one byte (vocabulary 256) or two bytes, the
-- first one high (vocabulary 65 536).

local lab = require "tilelab"
local file = require "tilelab.file"

-- A device may never end.
local function read(path)
  local found = lab.stat(path)
  if found and found.kind == "other" then return nil, ("text %s: not a regular file"):format(path) end
  local content, message = file.read(path)
  if not content then return nil, "text " .. message end
  return content
end

-- This repository's own sources, joined in a fixed order: the text that is always there.
local function own_sources(root)
  local listing = { "core/tensor.c", "core/problem.c", "core/registry.c", "core/device.c",
    "core/kernel.h", "core/tensor.h", "core/device.h", "core/status.h", "core/random.h",
    "lua/tilelab/model/step.lua", "lua/tilelab/model/presets.lua", "lua/tilelab/model/text.lua" }
  local parts = {}
  for i, name in ipairs(listing) do
    local content, message = read(root .. "/" .. name)
    if not content then return nil, message end
    parts[i] = content
  end
  return table.concat(parts)
end

local Text = {}
Text.__index = Text

-- Loads `path` (nil: this repository's own sources) onto `device`.
-- Returns a text {tokens = i32 tensor [count], count, sha256, name = that of the file}, or nil and a message: file
-- absent, unreadable, or too short for one sequence of `sequence` + 1 tokens.
local function load(path, device, vocabulary, sequence)
  local content, message
  if path then content, message = read(path) else content, message = own_sources(lab.root) end
  if not content then return nil, message end
  local name = path and path:match "[^/]+$" or "tilelab sources"
  local bytes_per_token = vocabulary == 65536 and 2 or 1
  local count = #content // bytes_per_token
  if count < sequence + 1 then
    return nil, ("text %s holds %d tokens; one sequence needs %d: give a longer --text"):format(
      path or name, count, sequence + 1)
  end
  local tokens, reason = lab.tensor { device = device, dtype = "i32", shape = { count } }
  if not tokens then return nil, reason end
  tokens:assign_bytes(content:sub(1, count * bytes_per_token), bytes_per_token)
  return setmetatable({ tokens = tokens, count = count, sha256 = lab.hash(content), name = name }, Text)
end

-- Copies sequence number `index` (counted over the whole run, from 0) into `ids` and `targets`
-- (views of `length` tokens on the device): the start is drawn from counter (seed, index), so that
-- every backend and depth sees the same tokens at the same update.
function Text:sequence(ids, targets, length, seed, index)
  local start = lab.random(seed, index):below(self.count - length)
  ids:copy(self.tokens:view(start, { length }))
  targets:copy(self.tokens:view(start + 1, { length }))
end

return { load = load }
