-- Runs experiments/layer_breakdown.lua, elementwise.lua or attention.lua with kernels of the CPU in the place of
-- a GPU's, on a clock that a launch moves on by its logical bytes and FLOPs:
-- build/tilelab tests/lua/fake_step.lua SCRIPT ARGUMENTS. In the environment FAIL=counters: counters are refused;
-- FAIL=counting: they fail at the tenth launch; FAIL=order: one recorded update launches one kernel less;
-- FAIL=wrong: rope and attention do nothing; FAIL=missing: there is no cuDNN.

local lab = require "tilelab"
local Step = require "tilelab.breakdown.step"

local cpu = lab.device "cpu"
local now_ns, recording = 1000000, nil
local fail = os.getenv "FAIL"

Step.copy_bytes = 1 << 16
function lab.gpu() return cpu end

local function pass(record)
  local gap = record.kind == "copy" and 3000 or 500
  now_ns = now_ns + gap
  record.start_ns = now_ns
  now_ns = now_ns + math.floor(record.duration_us * 1e3)
  if recording then recording[#recording + 1] = record end
end

-- --- plans ------------------------------------------------------------------------------------

local STAND_IN = { cublaslt_dense = "cpu_plain", cudnn_sdpa = "cpu_plain", cudnn_ordered = "cpu_plain",
  smxx_plain = "cpu_plain", smxx_vec16 = "cpu_plain", smxx_warp = "cpu_plain", smxx_sort = "cpu_plain" }

local function stand_in(args)
  local own = {}
  for key, value in pairs(args) do own[key] = value end
  own.variant = STAND_IN[args.variant] or args.variant
  return own
end

local plan, launched = lab.plan, 0

-- A plan of kernels that do not compute on bf16: on fp32 copies, there and back.
local function widened(args)
  local own, copies = {}, {}
  for key, value in pairs(args) do
    if type(value) == "userdata" and value.dtype == "bf16" then
      copies[value] = copies[value] or lab.check(lab.tensor { dtype = "fp32", shape = value.shape })
      value = copies[value]
    end
    own[key] = value
  end
  local made, message, code = plan(own)
  if not made then return nil, message, code end
  return { bytes = function() return made:bytes() end, flops = function() return made:flops() end,
    launch = function()
      for narrow, wide in pairs(copies) do wide:convert(narrow) end
      made:launch()
      for narrow, wide in pairs(copies) do narrow:convert(wide) end
    end }
end

function lab.plan(args)
  local made, message, code
  if fail == "missing" and args.variant:find "^cudnn" then return nil, "cuDNN is not installed", "unsupported" end
  if args.op ~= "probe_copy" then
    local ok
    ok, made, message, code = pcall(plan, stand_in(args))
    if not ok or not made then made, message, code = widened(stand_in(args)) end
    if not made then return nil, message, code end
  end
  local bytes = made and made:bytes() or 2 * args.src.bytes
  local flops = made and made:flops() or 0
  local duration_us = 1 + bytes / 4e6 + flops / 7e8
  return { op = args.op, variant = args.variant, device = cpu, flops = function() return flops end,
    bytes = function() return bytes end, workspace = function() return 0 end, algorithm = function() end,
    launch = function()
      launched = launched + 1
      if fail == "wrong" and (args.op == "rope" or args.op == "attention") and args.variant ~= "cpu_plain" then
        return
      end
      if fail == "order" and recording and launched % 1500 == 0 then return end
      if made then made:launch() end
      pass { kind = "kernel", name = args.op, symbol = args.op .. "/" .. args.variant, duration_us = duration_us }
    end }
end

-- Puts methods before those of a userdata's class.
local function methods(object, more)
  local class = debug.getmetatable(object)
  local real = class.__index
  class.__index = function(self, key)
    return more[key] or (type(real) == "function" and real(self, key)) or (type(real) == "table" and real[key]) or nil
  end
end

local sample = lab.tensor { dtype = "fp32", shape = { 1 } }
local fill, totable = sample.fill, sample.totable
methods(sample, {
  fill = function(t, value)
    if value == 0 then
      pass { kind = "memset", name = "memset", symbol = "memset", bytes = t.bytes, duration_us = 1 + t.bytes / 3e6 }
    end
    return fill(t, value)
  end,
  totable = function(t)
    pass { kind = "copy", name = "copy", symbol = "copy", bytes = t.bytes, duration_us = 2 }
    return totable(t)
  end,
})
local session_open = false
methods(cpu, { clock_mhz = function() return 1700 end, clock_mark = function()
  assert(not session_open, "a session of counters is open while launches are timed")
end })

function lab.activity_records(fn)
  recording = {}
  fn()
  local records = recording
  recording = nil
  return records
end

-- --- counters and clocks ----------------------------------------------------------------------

function lab.counters()
  if fail == "counters" then return nil, "counters are for administrators here", "unsupported" end
  return "GH100"
end
function lab.profile_passes() return 1 end
function lab.profile_close() session_open = false end
local counted = 0
function lab.profile(spec)
  local values = {}
  session_open, counted = true, counted + 1
  if fail == "counting" and counted == 10 then return nil, "the driver lost the counters", "io" end
  spec.run()
  for i, name in ipairs(lab.metrics.collect(spec)) do values[name] = 10 * i end
  return values
end

local measure = lab.measure
function lab.measure(spec)
  spec.mode = "hot"
  local result = measure(spec)
  for i, timed in ipairs(result) do timed.clock_stats = { median = 1500 + i } end
  return result
end

arg = { [0] = arg[1], table.unpack(arg, 2) } -- luacheck: ignore
dofile(arg[0])
