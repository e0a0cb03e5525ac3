-- How much memory a model needs, before any of it is taken: the step is built from tensors that only
-- count their bytes, so that the figures are those of the real one. Workspaces are known only to
-- plans, and are estimated.

local attention = require "tilelab.model.attention"

local memory = {}

local ELEMENT_BYTES = { fp64 = 8, fp32 = 4, bf16 = 2, i32 = 4 }

-- Bytes of workspace on a GPU: what the plans of cuBLASLt share, as those of attention do, and of any
-- other plan.
local GEMM_WORKSPACE, OTHER_WORKSPACE = 32 * 2 ^ 20, 2 ^ 20

-- What parameters.lua calls its tensors -> what they are here.
local parts_of = { ["parameters, value"] = "parameters", ["parameters, gradient"] = "gradients",
  ["parameters, m"] = "states", ["parameters, v"] = "states", ["parameters, working"] = "copies" }

-- In the order in which they are printed.
memory.parts = { "parameters", "copies", "gradients", "states", "activations", "workspace" }

-- A tensor without elements.
local Counted = {}
Counted.__index = Counted

local function counted(dtype, shape)
  local numel = 1
  for _, size in ipairs(shape) do numel = numel * size end
  return setmetatable({ dtype = dtype, shape = shape, numel = numel }, Counted)
end

function Counted:view(_, shape) return counted(self.dtype, shape) end
function Counted:fill() return self end
function Counted:normal() return self end

-- A class of builders that derives from `Builder` (step.lua). `bytes` of one is part -> bytes.
function memory.counter(Builder)
  local Counter = setmetatable({}, { __index = Builder })
  Counter.__index = Counter

  function Counter:add(part, bytes)
    self.bytes = self.bytes or {}
    self.bytes[part] = (self.bytes[part] or 0) + bytes
  end

  function Counter:allocate(what, dtype, shape)
    local tensor = counted(dtype, shape)
    self:add(parts_of[what] or "activations", tensor.numel * ELEMENT_BYTES[dtype])
    return tensor
  end

  function Counter:plan(_, operation)
    if self.device.arch == 0 then return {} end
    local shared = operation == "gemm" and GEMM_WORKSPACE
      or self.attention[operation] and attention.workspace(self.attention, operation, self.config)
    if not shared then
      self:add("workspace", OTHER_WORKSPACE)
    elseif not self.workspaces[operation] then
      self.workspaces[operation] = true
      self:add("workspace", shared)
    end
    return {}
  end

  function Counter:host_index(shape) return counted("i32", shape) end -- luacheck: ignore 212

  -- Drawing experts takes time: only their tensors.
  function Counter:forced_experts()
    if not self.routing then return nil end
    for _ = 1, self.config.update_frequency do self:index { self.t, self.config.top_k } end
    return self:index { self.t, self.config.top_k }
  end

  return Counter
end

-- "88.1 GB: parameters 20.1, copies ..."
function memory.text(bytes)
  local list = {}
  for _, part in ipairs(memory.parts) do
    if bytes[part] then list[#list + 1] = ("%s %.1f"):format(part, bytes[part] / 1e9) end
  end
  return ("%.1f GB: %s"):format(bytes.total / 1e9, table.concat(list, ", "))
end

return memory
