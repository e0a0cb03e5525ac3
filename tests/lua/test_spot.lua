-- Spot checks of large outputs, on the CPU: what is right passes, poison and a wrong element do not.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local spot = require "tilelab.spot"

local function tensor(...) return lab.tensor { dtype = "bf16", shape = { ... } }:normal { seed = 1 } end

local function try(name, args, row)
  local plan = lab.plan(args)
  local contender = spot.contender(name, plan, args)
  t.is(contender.plan, plan, name .. ": a contender")
  contender.prepare()
  local pass, reason = contender.check()
  t.ok(not pass and reason:find "elements are wrong", name .. ": poison is wrong")
  plan:launch()
  t.ok(contender.check(), name .. ": the product passes")
  args.d:set(args.d:get(row, 3) + 1, row, 3)
  t.ok(not contender.check(), name .. ": one wrong element")
  local timed = lab.measure { contenders = { contender }, rounds = 1 }
  t.is(timed.rounds, 1, name .. ": timed between its checks")
end

try("gemm", { op = "gemm", variant = "cpu_plain", a = tensor(40, 64), b = tensor(24, 64), d = tensor(40, 24) }, 16)
try("gemm of few rows", { op = "gemm", variant = "cpu_plain", a = tensor(3, 64), b = tensor(24, 64),
  d = tensor(3, 24) }, 3)
try("m_grouped_gemm", { op = "m_grouped_gemm", variant = "cpu_ragged", a = tensor(40, 64), b = tensor(4, 24, 64),
  d = tensor(40, 24), group_offsets = lab.tensor_from("cpu", "i32", { 0, 7, 30, 40, 40 }) }, 31)

-- The copy that is timed runs on a GPU only.
local words = (1 << 20) + 5
local src, dst = lab.tensor { shape = { words } }:normal {}, lab.tensor { shape = { words } }
local contender = spot.contender("copy", nil, { op = "probe_copy", src = src, dst = dst })
dst:copy(src)
t.ok(contender.check(), "a copy passes")
dst:set(0, words)
local pass, reason = contender.check()
t.ok(not pass and reason:find "words 6 to 1048581", "its last word is looked at")
dst:copy(src):set(0, 1)
t.ok(not contender.check(), "and its first")
contender.prepare()
t.ok(not contender.check(), "poison is no copy")
t.done()
