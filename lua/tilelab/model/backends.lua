-- Backends: which grouped GEMMs run and how permute lays rows out. Nothing else of the step
-- changes, so all backends give the same losses.
--
--   align        permute lays groups out at multiples of this many rows
--   copies       each grouped GEMM pads its operands to groups of 128 rows by copying them, and takes
--                the pads out of what it gives
--   grouped      variant of m_grouped_gemm and k_grouped_gemm, by kind of device
--   accumulates  the k-grouped GEMM always adds to its output, as DeepGEMM's does; the step then
--                zeroes the expert gradients first
--   host_counts  kinds of device where the k-grouped GEMM wants the rows of each group on the host, so
--                that the host waits once a layer and micro-batch

local lab = require "tilelab"

local backends = {
  rapidgemm = { align = 1, accumulates = false, host_counts = {},
    grouped = { cpu = "cpu_ragged", cuda = "sm90_ragged" } },
  deepgemm_copy = { align = 1, copies = true, accumulates = true, host_counts = { cuda = true },
    grouped = { cpu = "cpu_padded", cuda = "sm90_padded" } },
  deepgemm = { align = 128, accumulates = true, host_counts = { cuda = true },
    grouped = { cpu = "cpu_padded", cuda = "sm90_padded" } },
}

-- Every operation of the training step, and its variant by kind of device where that is not the
-- backend's choice and not `usual`; attention.lua has others of attention's. `copies`: only of backends with copies.
local usual = { cpu = "cpu_plain", cuda = "smxx_vec16" }
local operations = {
  { "gemm", cuda = "cublaslt_dense" }, { "m_grouped_gemm", grouped = true }, { "k_grouped_gemm", grouped = true },
  { "rmsnorm" }, { "rmsnorm_backward" }, { "rope" },
  { "attention", cuda = "smxx_plain" }, { "attention_backward", cuda = "smxx_plain" }, { "convert" },
  { "router", cuda = "smxx_warp" }, { "router_backward", cuda = "smxx_warp" },
  { "permute_index", cuda = "smxx_sort" }, { "permute" }, { "permute_backward" },
  { "pad_index", copies = true }, { "pad_rows", copies = true }, { "unpad_rows", copies = true },
  { "combine" }, { "combine_backward" }, { "swiglu" }, { "swiglu_backward" },
  { "embedding" }, { "embedding_backward" }, { "cross_entropy" }, { "cross_entropy_backward" },
  { "squared_norm" }, { "adamw" },
}
local by_name = {}
for _, operation in ipairs(operations) do by_name[operation[1]] = operation end

-- The kernel folders that they lie in.
local folders = "adamw attention combine convert cross_entropy embedding gemm k_grouped_gemm m_grouped_gemm pad "
  .. "permute rmsnorm rope router swiglu"

-- "cpu" or "cuda", of a device's name.
local function kind_of(device_name) return (device_name:match("^%a+")) end

local function names()
  local list = {}
  for name in pairs(backends) do list[#list + 1] = name end
  table.sort(list, function(a, b) return a > b end)
  return list
end

-- The variant of `operation` under `backend` on a device of that name, or nil.
local function variant(backend, operation, device_name)
  local kind, row = kind_of(device_name), by_name[operation]
  if row.grouped then return backend.grouped[kind] end
  return row[kind] or usual[kind]
end

-- Compute capability times ten of a device of this machine, nil where there is none of that name.
local function arch_of(device_name)
  local known, device = pcall(lab.device, device_name)
  return known and device and device.arch or nil
end

-- Whether the device has every operation of the step under these backends (by name); else false
-- and those that are missing, as text. Of a device that is not there, only the build is asked.
local function supported(device_name, backend_names)
  local present, missing, seen, arch = {}, {}, {}, arch_of(device_name)
  for _, kernel in ipairs(lab.kernels()) do
    local needed = tonumber(kernel.arch:match "^sm(%d+)$")
    present[kernel.operation .. "/" .. kernel.variant] = not (needed and arch) or needed == arch
  end
  for _, name in ipairs(backend_names) do
    for _, operation in ipairs(operations) do
      local wanted = variant(backends[name], operation[1], device_name)
      local needed = backends[name].copies or not operation.copies
      if needed and not (wanted and present[operation[1] .. "/" .. wanted]) and not seen[operation[1]] then
        seen[operation[1]] = true
        missing[#missing + 1] = operation[1]
      end
    end
  end
  return #missing == 0, table.concat(missing, ", ")
end

-- The name of the best device of this machine for the step: the last one listed that is supported.
local function best_device(backend_names)
  local best = "cpu"
  for _, device in ipairs(lab.devices()) do
    if not device.reason and supported(device.name, backend_names) then best = device.name end
  end
  return best
end

return { get = function(name) return backends[name] end, names = names, variant = variant, kind_of = kind_of,
  supported = supported, best_device = best_device, folders = folders }
