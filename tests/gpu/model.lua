-- The training step on the GPU: losses of ten updates of `tiny` against the CPU in fp32, for each
-- precision and backend; the same bits from run to run; and what the two backends share.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local backends = require "tilelab.model.backends"
local presets = require "tilelab.model.presets"
local step = require "tilelab.model.step"
local texts = require "tilelab.model.text"

local UPDATES, TOLERANCE = 10, 2e-2
local cpu, gpu = lab.device "cpu", lab.device "cuda"

-- The losses of a run. `overrides` of the layout.
local function losses(device, backend, precision, routing, overrides)
  local config = assert(presets.config("tiny", overrides or { layers = 2 }))
  local text = lab.check(texts.load(nil, device, config.vocabulary, config.sequence))
  local model = assert(step.build { device = device, config = config, backend = backend, seed = 3,
    routing = routing, precision = precision })
  local list = {}
  for i = 1, UPDATES do list[i] = model:update(text) end
  return list, model
end

local function worst_of(list, reference)
  local worst = 0
  for i, value in ipairs(reference) do
    local off = math.abs(list[i] - value) / value
    if not (off <= worst) then worst = off end
  end
  return worst
end

local function bits(list)
  local text = {}
  for i, value in ipairs(list) do text[i] = ("%.17g"):format(value) end
  return table.concat(text, " ")
end

local complete, missing = backends.supported(gpu.name, backends.names())
t.ok(complete, "every operation of the step has a kernel here" .. (complete and "" or ": no " .. missing))
if not complete then t.done() return end

for _, routing in ipairs { "model", "multinomial" } do
  local reference = losses(cpu, "rapidgemm", "fp32", routing)
  for _, precision in ipairs { "fp32", "bf16" } do
    for _, backend in ipairs(backends.names()) do
      local name = ("%s, %s, routing %s"):format(precision, backend, routing)
      local first = losses(gpu, backend, precision, routing)
      local worst = worst_of(first, reference)
      t.ok(worst <= TOLERANCE, ("%s: losses are the CPU's (%.1e)"):format(name, worst))
      t.is(bits(losses(gpu, backend, precision, routing)), bits(first), name .. ": the same bits again")
    end
  end
end

do -- layouts that the presets lack
  for name, overrides in pairs {
    ["a dense layer first"] = { layers = 2, dense_layers = 1 },
    ["no layers"] = { layers = 0 },
    ["a token count that is no multiple of anything"] = { layers = 1, sequence = 37, micro_batch = 1 },
    ["every token to every expert"] = { layers = 1, top_k = 8 },
  } do
    local worst = worst_of(losses(gpu, "rapidgemm", "bf16", "model", overrides),
      (losses(cpu, "rapidgemm", "fp32", "model", overrides)))
    t.ok(worst <= TOLERANCE, ("%s: losses are the CPU's (%.1e)"):format(name, worst))
  end
end

do -- working copies are the rounded masters, and the masters are fp32
  local _, model = losses(gpu, "rapidgemm", "bf16", "model")
  for _, name in ipairs { "layer1.expert13", "layer2.qkv", "head" } do
    local master, copy = model.parameters.value[name], model.parameters.working[name]
    local expected = lab.check(lab.tensor { device = gpu, dtype = "bf16", shape = master.shape }):convert(master)
    t.ok(master.dtype == "fp32" and copy.dtype == "bf16"
      and lab.compare(copy, expected).mismatched_bits == 0, name .. ": the copy is the master, rounded")
  end
end
t.done()
