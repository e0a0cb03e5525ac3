-- Holds one launch of a plan against the CPU reference, which computes on the same values in fp64: what an
-- experiment does at a small size before it times the large one, for operations whose reference takes long.
--
--   check(args[, ignored]) -> true | false, what is wrong        args as of lab.plan; ignored: names of
--                                                        arguments that the reference does without
--
-- Outputs are equal where they are integers, else within a relative error of norms; rows past the last group
-- do not count. The arguments hold the outputs afterwards.

local lab = require "tilelab"
local fields = require "tilelab.fields"

-- Of the norm: sums of a few thousand terms in fp32, one rounding to bf16.
local BOUND = { bf16 = 2 ^ -7, fp32 = 2 ^ -12 }

local function roles_of(op)
  for _, operation in ipairs(lab.operations()) do
    if operation.name == op then
      local roles = {}
      for _, arg in ipairs(operation.args) do roles[arg.name] = arg.role end
      return roles
    end
  end
  error(("no operation '%s'"):format(op), 3)
end

local function host(dtype, source) return lab.check(lab.tensor { dtype = dtype, shape = source.shape }) end

-- The arguments of the reference; a tensor that stands at two places stays one.
local function widened(args, roles, ignored)
  local made, result = {}, { op = args.op, variant = "cpu_plain" }
  for name, value in pairs(args) do
    if name ~= "op" and name ~= "variant" and not ignored[name] then
      if roles[name] then
        if not made[value] then
          local copy = host(value.dtype, value):copy(value)
          made[value] = value.dtype == "i32" and copy or host("fp64", value):convert(copy)
        end
        value = made[value]
      end
      result[name] = value
    end
  end
  return result
end

-- The rows of an output that are written: up to the last group's end.
local function written(tensor, args)
  local offsets = args.group_offsets
  local rows = args.row_slots and args.row_slots.shape[1] or args.x and args.x.shape[1]
  if not offsets or tensor.rank < 2 or tensor.shape[1] ~= rows then return tensor end
  local ends = host("i32", offsets):copy(offsets):totable()
  return tensor:rows(1, ends[#ends])
end

return function(args, ignored)
  local roles, skipped = roles_of(args.op), {}
  for _, name in ipairs(ignored or {}) do skipped[name] = true end
  local expected = widened(args, roles, skipped)
  local plan, message = lab.plan(args)
  if not plan then return false, message end
  plan:launch()
  lab.check(lab.plan(expected)):launch()
  for _, name in ipairs(fields.names(roles)) do
    local value, reference = args[name], expected[name]
    if reference and roles[name]:find "out" then
      local found = lab.compare(written(value, args), written(reference, args))
      if value.dtype == "i32" and found.mismatched_bits > 0 then
        return false, ("%s: %d bits are wrong"):format(name, found.mismatched_bits)
      end
      local bound = BOUND[value.dtype]
      if bound and not (found.relative_frobenius <= bound and found.nonfinite == 0) then
        return false, ("%s: relative error %.2e, %d elements not finite"):format(name, found.relative_frobenius,
          found.nonfinite)
      end
    end
  end
  return true
end
