-- Runs an experiment on grouped products with kernels of the CPU in the place of a GPU's, and made-up
-- counters: build/tilelab tests/lua/fake_gpu.lua SCRIPT ARGUMENTS. Results are checked as on a GPU; with
-- WRONG="tail 8" in the environment, kernels with that tunable write nothing.

local lab = require "tilelab"
local contest = require "tilelab.grouped_gemm.contest"

local STAND_IN = { sm90_ragged = "cpu_ragged", sm90_cooperative = "cpu_ragged", smxx_plain = "cpu_ragged",
  sm90_padded = "cpu_padded", cublaslt_dense = "cpu_plain" }
local TUNABLES = { stages = 6, turns = 2, multicast = 2, tail = 8, band = 8, stack = 2 }

local cpu = lab.device "cpu"
function lab.gpu() return cpu end

local kernels = lab.kernels
function lab.kernels(op)
  local list = kernels(op)
  for variant in pairs(STAND_IN) do list[#list + 1] = { operation = op, variant = variant, arch = "none" } end
  return list
end

local plan = lab.plan
function lab.plan(args)
  if not STAND_IN[args.variant] then return plan(args) end
  local own, tunables = {}, {}
  for key, value in pairs(args) do own[key] = value end
  own.variant, own.tunables = STAND_IN[args.variant], nil
  for key, value in pairs(args.variant == "sm90_ragged" and TUNABLES or {}) do
    tunables[key] = args.tunables and args.tunables[key] or value
  end
  local made = assert(plan(own))
  local name, value = (os.getenv "WRONG" or ""):match "^(%l+) (%d+)$"
  local wrong = name and tunables[name] == tonumber(value)
  return { device = made.device, launch = function() if not wrong then made:launch() end end, tune = function() end,
    tunables = function() return tunables end, bytes = function() return made:bytes() end }
end

local measure = lab.measure
function lab.measure(spec)
  local result = measure(spec)
  for i, timed in ipairs(result) do timed.clock_stats = { median = 1500 + i } end
  return result
end

function lab.profile(spec)
  local values = {}
  spec.run()
  for i, name in ipairs(lab.metrics.collect(spec)) do values[name] = i end
  return values
end

local new = contest.new
function contest.new(settings)
  local made = new(settings)
  made.counted = true
  return made
end

arg = { [0] = arg[1], table.unpack(arg, 2) } -- luacheck: ignore
dofile(arg[0])
