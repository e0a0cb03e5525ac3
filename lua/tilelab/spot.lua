-- Contenders of lab.measure whose outputs are poisoned before and spot-checked after: whole outputs
-- of the sizes that are worth timing would take the CPU hours.
--
--   spot.contender(name, plan, args) -> {name, plan, prepare, check}; args are those of the plan:
--     gemm, m_grouped_gemm (nt, beta 0)   the first rows, of the last group that has any, against the
--                                         CPU reference in fp64, inputs of unit variance
--     probe_copy                          the first and the last words, bit by bit

local lab = require "tilelab"

local spot = {}

local ROWS, WORDS = 16, 1 << 20

local function on_host(x) return lab.check(lab.tensor { dtype = x.dtype, shape = x.shape }):copy(x) end

-- Operands and output of the rows that are looked at: a [rows, k], b [n, k], d [rows, n].
local function part(args)
  local first, count, n, k = 1, args.a.shape[1], args.d.shape[2], args.a.shape[2]
  local b = args.b
  if args.op == "m_grouped_gemm" then
    local offsets, group = on_host(args.group_offsets):totable(), nil
    for e = 1, #offsets - 1 do
      if offsets[e + 1] > offsets[e] then group = e end
    end
    assert(group, "no group has rows")
    first, count = offsets[group] + 1, offsets[group + 1] - offsets[group]
    b = b:view((group - 1) * n * k, { n, k })
  end
  local last = first + math.min(count, ROWS) - 1
  return args.a:rows(first, last), b, args.d:rows(first, last), k
end

local function product(args)
  local exact
  return function()
    local a, b, d, k = part(args)
    if not exact then
      exact = lab.check(lab.tensor { dtype = "fp64", shape = d.shape })
      lab.check(lab.plan { op = "gemm", variant = "cpu_plain", a = on_host(a), b = on_host(b), d = exact }):launch()
    end
    -- One rounding to bf16, and sums that tensor cores truncate: their error grows with the length.
    local result = lab.compare(d, exact, { relative = 2 ^ -8, absolute = k * 2 ^ -22 * math.max(1, k / 4096) })
    return result.pass, ("%d of %d elements are wrong"):format(result.violations, d.numel)
  end
end

local function copy(args)
  return function()
    local count = args.src.numel
    local words = math.min(count, WORDS)
    for _, first in ipairs { 1, count - words + 1 } do
      local last = first + words - 1
      local wrong = lab.compare(args.dst:rows(first, last), args.src:rows(first, last)).mismatched_bits
      if wrong ~= 0 then return false, ("%d bits differ in words %d to %d"):format(wrong, first, last) end
    end
    return true
  end
end

function spot.contender(name, plan, args)
  local is_copy = args.op == "probe_copy"
  local out = is_copy and args.dst or args.d
  return { name = name, plan = plan, prepare = function() out:poison() end,
    check = is_copy and copy(args) or product(args) }
end

return spot
