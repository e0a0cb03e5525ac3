-- router and router_backward on the GPU against the CPU in fp64: experts and load exactly.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local against = dofile("tests/lua/against_cpu.lua")
local host, same, near = against.host, against.same, against.near

-- exp of differences below 32 in fp32, a sum over 1024 experts at most, and their quotient.
local SOFTMAX = 2 ^ -17

-- Logits with many ties: few values.
local function stepped(dtype, tokens, num_experts)
  local random, list = lab.random(tokens, num_experts), {}
  for i = 1, tokens * num_experts do list[i] = random:below(5) - 2 end
  return host(dtype, tokens, num_experts):assign(list)
end

local function forced_experts(tokens, top_k, num_experts)
  local random, list = lab.random(3, num_experts), {}
  for i = 1, tokens * top_k do list[i] = random:below(num_experts) end
  return host("i32", tokens, top_k):assign(list)
end

local function outputs_of(tokens, num_experts, top_k)
  return { probs = host("fp32", tokens, num_experts), experts = host("i32", tokens, top_k),
    weights = host("fp32", tokens, top_k), load = host("i32", num_experts), aux = host("fp32", 1):fill(0.5) }
end

local function check(tokens, num_experts, top_k, dtype, kind)
  local name = ("%d tokens, top %d of %d, %s, %s"):format(tokens, top_k, num_experts, dtype, kind)
  local logits = kind == "ties" and stepped(dtype, tokens, num_experts)
    or host(dtype, tokens, num_experts):normal { seed = 1, std = 3 }
  local forced = kind == "forced" and forced_experts(tokens, top_k, num_experts) or nil
  local gpu, reference, steady = against.both { op = "router", variant = "smxx_warp", params = { coefficient = 0.3 },
    inputs = { logits = logits, forced = forced }, outputs = outputs_of(tokens, num_experts, top_k) }
  t.ok(same(gpu.experts, reference.experts) and same(gpu.load, reference.load), "router: " .. name .. ": experts, load")
  for _, output in ipairs { "probs", "weights", "aux" } do
    local good, text = near(gpu[output], reference[output], 0, SOFTMAX)
    t.ok(good and steady, ("router: %s: %s%s"):format(name, output, text))
  end

  gpu, reference, steady = against.both { op = "router_backward", variant = "smxx_warp",
    params = { coefficient = 0.3, scale = -2 }, outputs = { dlogits = host(dtype, tokens, num_experts) },
    inputs = { probs = gpu.probs, experts = gpu.experts, weights = gpu.weights, load = gpu.load,
      dweights = host("fp32", tokens, top_k):normal { seed = 2 } } }
  -- Terms below 16, as are the means they are held against; those are sums of 1024 at most.
  local good, text = near(gpu.dlogits, reference.dlogits, 2 ^ -17)
  t.ok(good and steady, ("router_backward: %s%s"):format(name, text))
end

local SIZES = { { 1, 1, 1 }, { 1, 5, 2 }, { 37, 8, 2 }, { 7, 33, 32 }, { 333, 64, 6 }, { 301, 128, 8 }, { 50, 200, 8 },
  { 5, 257, 3 }, { 3, 1024, 32 }, { 0, 16, 2 }, { 4099, 128, 8 } }
for _, size in ipairs(SIZES) do
  for _, dtype in ipairs { "fp32", "bf16" } do
    for _, kind in ipairs { "normal", "ties", "forced" } do check(size[1], size[2], size[3], dtype, kind) end
  end
end

-- --- not numbers -----------------------------------------------------------------------------------

local NAN, INF = 0 / 0, math.huge
local function picks(logits, top_k, expected)
  for _, dtype in ipairs { "fp32", "bf16" } do
    local gpu = against.gpu { op = "router", variant = "smxx_warp",
      inputs = { logits = host(dtype, 1, #logits):assign(logits) }, outputs = outputs_of(1, #logits, top_k) }
    t.is(table.concat(gpu.experts:totable(), " "), expected, ("router: %d logits, %s"):format(#logits, dtype))
  end
end
picks({ NAN, NAN, NAN }, 3, "0 1 2")
picks({ NAN, -INF, 4, NAN }, 4, "2 1 0 3")
picks({ INF, NAN, INF }, 2, "0 2")
picks({ -0.0, 0.0, -1 }, 2, "0 1")
picks({ -INF, -INF, -INF, -INF }, 2, "0 1")
local gpu = against.gpu { op = "router", variant = "smxx_warp", inputs = {
  logits = host("fp32", 2, 3):assign { 1, 2, 3, 1, NAN, 3 } }, outputs = outputs_of(2, 3, 2) }
t.ok(gpu.aux:get(1) ~= gpu.aux:get(1), "router: NaN is seen in aux")

-- --- what it refuses -------------------------------------------------------------------------------

local device = against.device
local function on_gpu(source)
  return lab.check(lab.tensor { device = device, dtype = source.dtype, shape = source.shape }):copy(source)
end
local function router(forced)
  local args, outputs = { op = "router", variant = "smxx_warp" }, {}
  args.logits, args.forced = on_gpu(host("fp32", 3000, 16):normal {}), on_gpu(forced)
  for name, tensor in pairs(outputs_of(3000, 16, 2)) do
    outputs[name] = on_gpu(tensor)
    args[name] = outputs[name]
  end
  return lab.check(lab.plan(args)), outputs
end
for _, bad in ipairs { -1, 16, 1 << 30 } do
  local forced = forced_experts(3000, 2, 16)
  forced:set(bad, 700, 2)
  forced:set(-5, 2999, 1)
  local plan, outputs = router(forced)
  local ok, message = pcall(function()
    plan:launch()
    device:synchronize()
    plan:launch()
  end)
  local words = ("forced[1399] is %d, but must be at least 0 and below 16; that launch wrote nothing"):format(bad)
  t.ok(not ok and tostring(message):find(words, 1, true) ~= nil, "a forced expert out of range: " .. tostring(message))
  local untouched = true
  for name, tensor in pairs(outputs_of(3000, 16, 2)) do untouched = untouched and same(outputs[name], tensor) end
  t.ok(untouched, "nothing is written")
end
local plan = router(forced_experts(3000, 2, 16))
plan:launch()
device:synchronize()
t.ok(true, "the next launch is as ever")
t.done()
