-- squared_norm and adamw on the GPU against the CPU in fp64.

local t = dofile("tests/lua/tap.lua")
local against = dofile("tests/lua/against_cpu.lua")
local host, normal, near = against.host, against.normal, against.near

local COUNTS = { 0, 1, 3, 4, 1023, 8192, 65537, 200003 }

for _, count in ipairs(COUNTS) do
  local gpu, reference, steady = against.both { op = "squared_norm", inputs = { x = normal("fp32", 1, count) },
    outputs = { sum = host("fp32", 1):fill(0.5) } }
  local good, text = near(gpu.sum, reference.sum)
  t.ok(good and steady, ("squared_norm: %d elements%s"):format(count, text))
end

local SETTINGS = {
  plain = { lr = 0.01 },
  decay = { lr = 0.02, beta1 = 0.8, beta2 = 0.99, eps = 1e-3, weight_decay = 0.3 },
  clipped = { lr = 0.01, eps = 1e-2, weight_decay = 0.1, max_norm = 2 },
}

local function check(count, set, step)
  local name = ("adamw: %d elements, %s, step %d"):format(count, set, step)
  local inputs = { grad = normal("fp32", 1, count), step = host("i32", 1):fill(step) }
  if set == "clipped" then inputs.norm_squared = host("fp32", 1):fill(100) end
  local outputs = { param = normal("fp32", 2, count), m = normal("fp32", 3, count),
    v = host("fp32", count):uniform { low = 0, high = 1, seed = 4 } }
  local gpu, reference, steady = against.both { op = "adamw", inputs = inputs, outputs = outputs,
    params = SETTINGS[set] }
  for _, output in ipairs { "param", "m", "v" } do
    local good, text = near(gpu[output], reference[output], 2 ^ -20, 2 ^ -20)
    t.ok(good and steady, name .. ": " .. output .. text)
  end
  outputs.param_bf16 = host("bf16", count)
  local also = against.gpu { op = "adamw", inputs = inputs, outputs = outputs, params = SETTINGS[set] }
  t.ok(against.same(also.param, gpu.param), name .. ": the copy changes nothing")
  t.ok(against.same(also.param_bf16, host("bf16", count):convert(gpu.param)), name .. ": the copy is param, rounded")
end

for _, count in ipairs(COUNTS) do
  check(count, "plain", 1)
  check(count, "decay", 7)
  check(count, "clipped", 1000)
end

do -- lr 0 makes the copy and changes no parameter
  local param = normal("fp32", 1, 999)
  local zero = host("fp32", 999):fill(0)
  local gpu = against.gpu { op = "adamw", inputs = { grad = zero, step = host("i32", 1):fill(1) },
    outputs = { param = param, m = zero, v = zero, param_bf16 = host("bf16", 999) },
    params = { lr = 0, weight_decay = 0.1 } }
  t.ok(against.same(gpu.param, param) and against.same(gpu.m, zero), "lr 0 leaves the parameters")
  t.ok(against.same(gpu.param_bf16, host("bf16", 999):convert(param)), "and writes the copy")
end
t.done()
