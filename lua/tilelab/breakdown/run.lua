-- The run of experiments/layer_breakdown.lua: every backend at every depth, three records, the table of the
-- split and the figures. What a part that fails would have given is left out, and said.

local lab = require "tilelab"
local core = require "tilelab_core"
local Step = require "tilelab.breakdown.step"
local attention = require "tilelab.model.attention"
local backends = require "tilelab.model.backends"
local gemm_choices = require "tilelab.model.gemm_choices"
local presets = require "tilelab.model.presets"
local progress = require "tilelab.progress"
local rows = require "tilelab.breakdown.rows"
local texts = require "tilelab.model.text"

local RECORDS = { "layer_breakdown", "step_gemm_cycles", "step_timeline" }

local function check(opt)
  local known = table.concat(backends.names(), ", ")
  for _, name in ipairs(opt.backends) do
    if not backends.get(name) then
      lab.usage_error("--backends: there is no backend '%s'; choose from %s", name, known)
    end
  end
  for _, depth in ipairs(opt.layers) do
    if depth < 1 then lab.usage_error("--layers: %d is no depth", depth) end
  end
end

-- The writer of a record, opened by its first row: the provenance then names the libraries that the step uses, and
-- the attention that was chosen, which is the same for all backends and depths.
local function writer_of(out, name, step, opt)
  if not out[name] then
    out[name] = lab.recorded.open { experiment = name, device = opt.device, out = opt.out, record = opt.record,
      seed = opt.seed, kernels = opt.kernels, extra = { tokens_an_update = opt.tokens, recorded_updates = opt.updates,
        flag_model = opt.model, flag_precision = opt.precision, flag_routing = opt.routing,
        flag_micro_batch = opt.micro_batch, flag_text = opt.text.name, flag_text_sha256 = opt.text.sha256,
        flag_attention = attention.name(step.model.attention), flag_gemms = opt.gemms or "chosen anew" } }
  end
  return out[name]
end

local function put(out, name, list, step, opt)
  for _, row in ipairs(list) do
    row.backend, row.layers, row.precision = step.backend, step.layers, opt.precision
    writer_of(out, name, step, opt):row(row)
  end
end

local function say(format, ...)
  progress.break_line()
  io.stderr:write(format:format(...), "\n")
end

-- What fn returns. What it raises is said and gives nil, so that what was measured before stays; Ctrl-C passes.
local function attempt(what, fn)
  local ok, result = pcall(fn)
  if ok then return result end
  if core.error_kind(result) == "interrupted" then error(result, 0) end
  say("%s: left out: %s", what, tostring(result))
end

local function measure(opt, out, name, backend, layers)
  local step = Step.new(opt, backend, layers)
  local reason = step.model.attention.reason
  if reason and not next(out) then say("attention: %s; %s", attention.name(step.model.attention), reason) end
  for _ = 1, opt.warmup do step:update() end
  local host_us = step:timed(opt.updates)
  step:learn()
  local recorded, why = step:record(opt.updates)
  if why then say("%s: recorded launch by launch, not from graphs: %s", name, why) end
  local counted = opt.counters and attempt(name .. ", counters", function() return lab.check(step:count()) end)
  put(out, "layer_breakdown", rows.breakdown(step, recorded, counted or nil, host_us), step, opt)
  if layers == opt.layers[#opt.layers] then put(out, "step_timeline", rows.timeline(step, recorded), step, opt) end
  local gemms = opt.rounds > 0 and attempt(name .. ", grouped GEMMs alone", function()
    return step:gemms_alone(opt.rounds)
  end)
  if gemms then put(out, "step_gemm_cycles", rows.cycles(gemms), step, opt) end
  return gemms or opt.rounds == 0
end

-- The algorithms of the dense GEMMs, for --gemms of a run that is to be like this one.
local function write_choices(opt)
  if #opt.choices.order == 0 then return end
  opt.choices:write(opt.out .. "/gemm_choices.tsv", lab.provenance { device = opt.device, seed = opt.seed })
end

local function measure_all(opt, out)
  local whole = true
  local bar <close> = lab.progress { total = #opt.backends * #opt.layers, label = "layer_breakdown", unit = "models" }
  for _, backend in ipairs(opt.backends) do
    for _, layers in ipairs(opt.layers) do
      local name = ("%s, %d layer%s"):format(backend, layers, layers == 1 and "" or "s")
      whole = attempt(name, function() return measure(opt, out, name, backend, layers) end) and whole or false
      collectgarbage() -- the buffers go back before the next model takes its own
      collectgarbage()
      bar:step(1, name)
    end
  end
  return whole
end

return function(opt)
  check(opt)
  local config = lab.check(presets.config(opt.model, { micro_batch = opt.micro_batch }))
  opt.text = lab.check(texts.load(opt.text, opt.device, config.vocabulary, config.sequence))
  opt.choices = opt.gemms and gemm_choices.read(opt.gemms) or gemm_choices.new(opt.out .. "/gemm_choices.tsv")
  opt.kernels = { "probe" }
  for folder in backends.folders:gmatch "%S+" do opt.kernels[#opt.kernels + 1] = folder end
  lab.check(lab.mkdir(opt.out))
  opt.tokens = config.micro_batch * config.sequence * config.update_frequency
  local out = {}
  local whole = measure_all(opt, out)
  write_choices(opt)
  local figures, text = {}, nil
  for _, name in ipairs(RECORDS) do
    local writer = out[name]
    local data = writer and (whole and writer or writer:keep()):close()
    if data and name == "layer_breakdown" then text = lab.recorded.module(name).text(data) end
    if data then table.move(lab.draw.record(data, { folder = opt.out }), 1, 99, #figures + 1, figures) end
  end
  if text then io.write("\nWhat one more layer costs, and what of it is saved\n\n", text, "\n\n") end
  lab.draw.print(figures)
  return whole
end
