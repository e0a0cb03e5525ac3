-- The breakdown of an update on the GPU, for `tiny`: records pair with launches, graphs replayed or not; shares and
-- idle time are the whole; counters and grouped GEMMs alone come for every launch.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local Step = require "tilelab.breakdown.step"
local attribute = require "tilelab.breakdown.attribute"
local backends = require "tilelab.model.backends"
local gemm_choices = require "tilelab.model.gemm_choices"
local presets = require "tilelab.model.presets"
local rows = require "tilelab.breakdown.rows"
local texts = require "tilelab.model.text"

local device = lab.device "cuda"
local probe, reason = lab.activity_records(function() end)
if not probe or not backends.supported(device.name, backends.names()) then
  t.skip(reason or "a kernel of the step is missing here")
  t.done()
  return
end

local config = presets.config "tiny"
Step.copy_bytes = 1 << 24
local settings = { device = device, model = "tiny", precision = "bf16", routing = "model", seed = 1, micro_batch = 2,
  text = lab.check(texts.load(nil, device, config.vocabulary, config.sequence)),
  choices = gemm_choices.new "gemm_choices.tsv" }

for _, backend in ipairs(backends.names()) do
  local step = Step.new(settings, backend, 2)
  for _ = 1, 3 do step:update() end
  step:learn()
  local launched = 0
  local model = step.model
  for _, list in ipairs { model.first, model.later, model.later, model.later, model.optimiser } do
    launched = launched + #list
  end
  t.is(#step.log, launched, backend .. ": every launch of an update is marked")
  local recorded, why = step:record(2)
  t.ok(recorded.copy_gbps > 100, backend .. ": a copy is recorded")
  t.is(why, nil, backend .. ": replayed graphs leave the records of launches")
  local idle, span = attribute.idle(recorded.records)
  t.ok(span > 0 and #idle == 2 * #step.pattern, backend .. ": two updates, record by record")
  local list = rows.breakdown(step, recorded, step:count(), step:timed(2))
  local sum, has = 0, {}
  for _, row in ipairs(list) do
    has[row.kernel_class] = row
    if row.pass ~= "update" then sum = sum + row.share_of_update + row.idle_pct / 100 end
  end
  t.ok(sum > 0.999 and sum < 1.05, ("%s: shares and idle time are the whole: %.4f"):format(backend, sum))
  for _, class in ipairs { "grouped_fprop", "grouped_dgrad", "grouped_wgrad", "dense_gemm", "attention", "norm", "rope",
    "permute", "combine", "swiglu", "zeroing", "adamw", "cross_entropy", "embedding" } do
    t.ok(has[class] and has[class].time_us > 0, backend .. ": " .. class)
  end
  t.is(has.padding ~= nil, backend == "deepgemm_copy", backend .. ": padding where there are copies")
  if lab.counters(device) then
    t.ok(has.grouped_fprop.tensor_pct > 0 and has.norm.occupancy_pct > 0, backend .. ": counters by class")
  else
    t.skip "counters are refused"
  end
  local gemms = rows.cycles(step:gemms_alone(2))
  t.is(#gemms, 12, backend .. ": six products of two layers")
  for _, gemm in ipairs(gemms) do
    t.ok(gemm.cycles_ratio > 0.2 and gemm.cycles_ratio < 5, ("%s: %s, layer %d: %.2f"):format(backend, gemm.op,
      gemm.layer, gemm.cycles_ratio))
  end
  collectgarbage()
end
t.done()
