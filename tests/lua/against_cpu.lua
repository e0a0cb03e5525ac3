-- Kernels of the GPU against cpu_plain, on inputs that both hold exactly: the CPU computes in fp64 on
-- the same values, or bit for bit alike where nothing is rounded.
--
--   local against = dofile("tests/lua/against_cpu.lua")
--   local gpu, reference, steady = against.both{ op =, inputs = {name = tensor}, outputs =
--     {name = tensor}, params = {name = number} [, variant =] }
--
-- All tensors are on the host, in the dtype that the GPU's kernel gets; outputs hold what they do
-- before the launch, poison unless the caller filled them. `gpu` and `reference` are the outputs
-- afterwards, on the host, floats of `reference` in fp64. `steady`: a second launch, replayed from a
-- graph, gave the same bits.

local lab = require "tilelab"

local against = { device = lab.device "cuda", variant = "smxx_vec16" }

-- Relative error of one rounding to the dtype.
against.rounding = { bf16 = 2 ^ -8, fp32 = 2 ^ -24 }

function against.host(dtype, ...) return lab.check(lab.tensor { dtype = dtype, shape = { ... } }) end

function against.normal(dtype, seed, ...) return against.host(dtype, ...):normal { seed = seed } end

function against.i32(list) return lab.tensor_from("cpu", "i32", list) end

local function on(device, source)
  return lab.check(lab.tensor { device = device, dtype = source.dtype, shape = source.shape }):copy(source)
end

local function to_host(source) return on(lab.device "cpu", source) end

local function widened(source)
  if source.dtype == "i32" then return source:clone() end
  return against.host("fp64", table.unpack(source.shape)):convert(source)
end

function against.same(a, b) return lab.compare(a, b).mismatched_bits == 0 end

-- The plan's launch as a graph; nil where it has nothing to do.
local function captured(plan)
  local ok, graph, message = pcall(plan.device.graph, plan.device, function() plan:launch() end)
  if ok and graph then return graph end
  message = tostring(ok and message or graph)
  if not message:find("nothing was captured", 1, true) then error(message, 0) end
end

-- Launches on tensors that `move` makes of the host's, from a graph where it is told; returns the outputs.
local function launch(spec, variant, move, graph)
  local args, outputs = { op = spec.op, variant = variant }, {}
  for name, value in pairs(spec.params or {}) do args[name] = value end
  for name, tensor in pairs(spec.inputs) do args[name] = move(tensor) end
  for name, tensor in pairs(spec.outputs) do
    outputs[name] = move(tensor)
    args[name] = outputs[name]
  end
  local plan = lab.check(lab.plan(args))
  local replay = graph and captured(plan) or plan
  replay:launch()
  plan.device:synchronize()
  return outputs
end

-- Outputs of the GPU on the host.
function against.gpu(spec, graph)
  local function move(source) return on(against.device, source) end
  local outputs = launch(spec, spec.variant or against.variant, move, graph)
  for name, tensor in pairs(outputs) do outputs[name] = to_host(tensor) end
  return outputs
end

function against.both(spec)
  local first, second, steady = against.gpu(spec), against.gpu(spec, against.device.arch > 0), true
  for name, tensor in pairs(first) do steady = steady and against.same(tensor, second[name]) end
  return first, launch(spec, "cpu_plain", widened), steady
end

-- Whether each element of `value` is within one rounding of `reference` and absolute +
-- relative |reference| besides; false with the worst element otherwise.
function against.near(value, reference, absolute, relative)
  local bound = { absolute = absolute or 0, relative = against.rounding[value.dtype] * (1 + 2 ^ -8) + (relative or 0) }
  local found = lab.compare(value, reference, bound)
  if found.pass then return true, "" end
  return false, (": %d beyond the bound, worst %.9g against %.9g at %d"):format(found.violations + found.nonfinite,
    found.worst_value, found.worst_reference, found.worst_index)
end

-- Whether rows past the first `used` still hold what they held in `before`.
function against.untouched(value, before, used)
  local rows = value.shape[1]
  return used == rows or against.same(value:rows(used + 1, rows), before:rows(used + 1, rows))
end

return against
