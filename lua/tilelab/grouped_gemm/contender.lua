-- A variant on a problem of the grouped GEMM benchmark, to be checked, timed and counted.
--
--   contender.new{variant =, problem =, plan =, y = output, checker = function -> checker, ...} -> contender
--   contender:check() -> whether the result agrees, and in words where it agrees least
--   contender:launch()
--   contender.plan_of(args) -> plan | nil, why the variant cannot run here
--
-- Fields: name (unique among a problem's), variant, beta, plan (what is timed), or run (a function that is timed
-- in its place), flops (of real rows; false where nothing is multiplied); where rows are padded padded_flops;
-- parts = {pad =, unpad =, zero =}: functions that launch what comes before and after the plan; store: the plan
-- of a stream of stores over the output.

local lab = require "tilelab"

local contender = {}

local Contender = {}
Contender.__index = Contender

function contender.new(fields)
  local p = fields.problem
  fields.name, fields.beta, fields.parts = fields.name or fields.variant, fields.beta or 0, fields.parts or {}
  if fields.flops == nil then fields.flops = 2 * p.rows * p.n * (p.m or p.k) end
  if fields.padded then fields.padded_flops = 2 * p.padded_rows * p.n * (p.m or p.k) end
  return setmetatable(fields, Contender)
end

-- What is timed.
function Contender:launch()
  if self.run then self.run() else self.plan:launch() end
end

-- Launches the variant as its user would, into a poisoned output or into what `begin` leaves there.
function Contender:check()
  if self.begin then self.begin() else self.y:poison() end
  if self.parts.pad then self.parts.pad() end
  self:launch()
  if self.parts.unpad then self.parts.unpad() end
  return self.checker():check(self.y)
end

-- lab.plan; what this build has no kernel of is a reason, too.
function contender.plan_of(args)
  for _, kernel in ipairs(lab.kernels(args.op)) do
    if kernel.variant == args.variant then return lab.plan(args) end
  end
  return nil, ("this build has no %s/%s"):format(args.op, args.variant)
end

-- The variant of an operation that has one for the CPU and one for GPUs.
local function only_variant(op, device)
  for _, kernel in ipairs(lab.kernels(op)) do
    if (kernel.arch == "cpu") == (device.arch == 0) then return kernel.variant end
  end
  return lab.kernels(op)[1].variant -- whose refusal says the rest
end

-- Plans of the kernels around a padded product, of which each of `list` says op and tensors:
-- {op =, x =, ...}; or nil and why not.
function contender.around(device, offsets, padded_offsets, list)
  local plans = {}
  for i, args in ipairs(list) do
    args.variant = only_variant(args.op, device)
    args.group_offsets, args.padded_offsets = offsets, padded_offsets
    local plan, message = lab.plan(args)
    if not plan then return nil, message end
    plans[i] = plan
  end
  return plans
end

function contender.i32(device, values) return lab.check(lab.tensor_from(device, "i32", values)) end

-- Zeros, for kernels to write.
function contender.index(device, count)
  return lab.check(lab.tensor { device = device, dtype = "i32", shape = { count }, fill = 0 })
end

-- The first elements of a buffer in another shape.
function contender.view(buffer, ...) return buffer:view(0, { ... }) end

return contender
