-- What tests of kernels on the GPU share.
--
--   local gpu = dofile("tests/lua/gpu.lua")
--   gpu.device                    "cuda", opened
--   gpu.tensor(dtype, ...)        a poisoned tensor there
--   gpu.on_host(tensor)           its copy on the host
--   gpu.same(a, b)                whether both hold the same bits
--   gpu.with(args, more)          a table with the entries of both; those of `more` win
--   gpu.variants(operation, known) -> the entries of `known`, by variant, that this build has: each with
--       the variant's `name` and `tunables`, in the build's order

local lab = require "tilelab"

local gpu = { device = lab.device "cuda" }

function gpu.tensor(dtype, ...)
  return lab.check(lab.tensor { device = gpu.device, dtype = dtype, shape = { ... } })
end

function gpu.on_host(source) return lab.tensor { dtype = source.dtype, shape = source.shape }:copy(source) end

function gpu.same(a, b) return lab.compare(a, b).mismatched_bits == 0 end

function gpu.with(args, more)
  local copy = {}
  for key, value in pairs(args) do copy[key] = value end
  for key, value in pairs(more) do copy[key] = value end
  return copy
end

function gpu.variants(operation, known)
  local list = {}
  for _, kernel in ipairs(lab.kernels(operation)) do
    local variant = known[kernel.variant]
    if variant then
      variant.name, variant.tunables = kernel.variant, kernel.tunables
      list[#list + 1] = variant
    end
  end
  return list
end

return gpu
