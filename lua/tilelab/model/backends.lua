-- Backends: which grouped GEMMs run and how permute lays rows out. Nothing else of the step
-- changes, so all backends give the same losses.
--
--   align        group starts are multiples of this many rows
--   grouped      variant of m_grouped_gemm and k_grouped_gemm, by kind of device
--   accumulates  the k-grouped GEMM always adds to its output, as DeepGEMM's does; the step then
--                zeroes the expert gradients first

local lab = require "tilelab"

local backends = {
  rapidgemm = { align = 1, grouped = { cpu = "cpu_ragged" }, accumulates = false },
  deepgemm = { align = 128, grouped = { cpu = "cpu_padded" }, accumulates = true },
}

-- Variants of the operations that no backend changes.
local plain = { cpu = "cpu_plain" }

-- Every operation of the training step.
local operations = {
  "gemm", "m_grouped_gemm", "k_grouped_gemm", "rmsnorm", "rmsnorm_backward", "rope", "attention",
  "attention_backward", "router", "router_backward", "permute_index", "permute", "permute_backward",
  "combine", "combine_backward", "swiglu", "swiglu_backward", "embedding", "embedding_backward",
  "cross_entropy", "cross_entropy_backward", "squared_norm", "adamw",
}

-- The kernel folders that they lie in.
local folders = "adamw attention combine cross_entropy embedding gemm k_grouped_gemm m_grouped_gemm "
  .. "permute rmsnorm rope router swiglu"

local function kind_of(device_name) return (device_name:match("^%a+")) end

local function names()
  local list = {}
  for name in pairs(backends) do list[#list + 1] = name end
  table.sort(list, function(a, b) return a > b end)
  return list
end

-- The variant of `operation` under `backend` on a device of that name, or nil.
local function variant(backend, operation, device_name)
  local kind = kind_of(device_name)
  local grouped = operation == "m_grouped_gemm" or operation == "k_grouped_gemm"
  return (grouped and backend.grouped or plain)[kind]
end

-- Whether the device has every operation of the step under these backends (by name); else false
-- and the first one that is missing.
local function supported(device_name, backend_names)
  local present = {}
  for _, kernel in ipairs(lab.kernels()) do
    present[kernel.operation .. "/" .. kernel.variant] = true
  end
  for _, name in ipairs(backend_names) do
    for _, operation in ipairs(operations) do
      local wanted = variant(backends[name], operation, device_name)
      if not wanted or not present[operation .. "/" .. wanted] then
        return false, operation
      end
    end
  end
  return true
end

-- The name of the best device of this machine for the step: the last one listed that is supported.
local function best_device(backend_names)
  local best = "cpu"
  for _, device in ipairs(lab.devices()) do
    if supported(device.name, backend_names) then best = device.name end
  end
  return best
end

return { get = function(name) return backends[name] end, names = names, variant = variant,
  supported = supported, best_device = best_device, folders = folders }
