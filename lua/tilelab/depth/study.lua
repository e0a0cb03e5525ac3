-- The measuring half of the depth-scaling study: whole training runs, each backend at each depth,
-- in a palindromic order, one row of updates.tsv per update, flushed as it is measured. A study
-- that was cut resumes at the run that was cut. The analysis reads updates.tsv and nothing else.

local lab = require "tilelab"
local presets = require "tilelab.model.presets"
local backends = require "tilelab.model.backends"
local step = require "tilelab.model.step"
local texts = require "tilelab.model.text"
local schedule = require "tilelab.depth.schedule"

local study = {}

study.columns = { "gpus", "experts_per_gpu", "model", "precision", "routing", "backend", "layers",
  "repetition", "update", "tokens", "time_s", "loss" }

-- Opens the device, or the best one that has every operation of the study.
local function open_device(options)
  local name = options.device or backends.best_device(options.backends)
  local device, message = lab.device(name)
  if not device then lab.usage_error("--device %s: %s", name, message) end
  local ok, missing = backends.supported(device.name, options.backends)
  if not ok then
    lab.usage_error("--device %s: no kernel of operation '%s' there yet; use --device cpu", name, missing)
  end
  return device
end

local function choose_precision(options, device)
  local precision = options.precision or "fp32"
  if device.arch == 0 and precision ~= "fp32" then
    lab.usage_error("--precision %s: the CPU trains in fp32; drop the flag or use --precision fp32", precision)
  end
  return precision
end

-- Settings of the study, all flags resolved. Raises usage errors that name the flag.
function study.settings(options)
  local device = open_device(options)
  local settings = {
    device = device, model = options.model or (device.arch == 0 and "tiny" or "30b-a3b"),
    precision = choose_precision(options, device), backends = options.backends,
    layers = options.layers, updates = options.updates, warmup = options.warmup,
    top = options.top, routing = options.routing, repetitions = options.repetitions,
    seed = options.seed, out = options.out, text = options.text, learning_rate = options.learning_rate,
  }
  local config, message = presets.config(settings.model, { learning_rate = options.learning_rate })
  if not config then lab.usage_error("--model: %s", message) end
  settings.config = config
  message = schedule.validate {
    backends = settings.backends, known_backends = backends.names(), layers = settings.layers,
    updates = settings.updates, warmup = settings.warmup, top = settings.top,
    repetitions = settings.repetitions }
  if message then lab.usage_error("%s", message) end
  return settings
end

-- What must agree for two parts of a study to be one: "key: value" text, with the provenance.
local function describe(settings, text)
  local function join(list) return table.concat(list, ",") end
  return lab.provenance { device = settings.device, seed = settings.seed, script = arg and arg[0],
    extra = {
      { "model", settings.model }, { "precision", settings.precision }, { "routing", settings.routing },
      { "backends", join(settings.backends) }, { "layers", join(settings.layers) },
      { "updates", settings.updates }, { "repetitions", settings.repetitions },
      { "learning_rate", settings.config.learning_rate }, { "text", text.name },
      { "text_sha256", text.sha256 },
    } }
end

-- Opens updates.tsv: fresh, or to go on after the runs that are complete. Returns the record and
-- the runs still to do.
local function open_record(settings, provenance, fresh)
  local path = settings.out .. "/updates.tsv"
  local plan = schedule.runs(settings)
  if fresh then lab.set_aside(path) end
  if not lab.exists(path) then
    local record, message = lab.record.create(path, provenance, study.columns)
    if not record then lab.usage_error("--out %s: %s", settings.out, message) end
    return record, plan
  end
  local record, remaining, message = schedule.resume(path, plan, provenance, study.columns, settings)
  if not record then lab.usage_error("%s", message) end
  return record, remaining
end

local function name_of(run)
  return ("%s, %d layer%s, repetition %d"):format(run.backend, run.layers, run.layers == 1 and "" or "s",
    run.repetition)
end

-- One whole run; every update is a row.
local function measure(settings, text, run, record, progress)
  local config = presets.config(settings.model, { layers = run.layers,
    learning_rate = settings.learning_rate })
  local model, message = step.build { device = settings.device, config = config, backend = run.backend,
    seed = settings.seed, routing = settings.routing }
  if not model then error { usage = ("%s: %s"):format(name_of(run), message) } end
  local device, tokens = settings.device, model:tokens()
  for update = 1, settings.updates do
    device:synchronize()
    local start = lab.time_us()
    local loss = model:update(text)
    device:synchronize()
    local time_s = (lab.time_us() - start) * 1e-6
    if loss ~= loss or math.abs(loss) == math.huge then
      lab.usage_error("%s: the loss is %s at update %d; the rows before it stay in %s/updates.tsv. "
        .. "Lower --learning-rate (now %g) or change --seed.", name_of(run), tostring(loss), update,
        settings.out, config.learning_rate)
    end
    record:row { gpus = device.arch == 0 and 0 or 1, experts_per_gpu = config.experts,
      model = settings.model, precision = settings.precision, routing = settings.routing,
      backend = run.backend, layers = run.layers, repetition = run.repetition, update = update,
      tokens = tokens, time_s = ("%.9g"):format(time_s), loss = ("%.9g"):format(loss) }
    progress:step(("%s, loss %.4f"):format(name_of(run), loss))
  end
end

-- Measures what is still to do. Returns the rows of updates.tsv, as the analysis reads them.
function study.run(settings, fresh)
  local ok, message = lab.mkdir(settings.out)
  if not ok then lab.usage_error("--out %s: %s", settings.out, message) end
  local text
  text, message = texts.load(settings.text, settings.device, settings.config.vocabulary,
    settings.config.sequence)
  if not text then lab.usage_error("--text: %s", message) end
  local record, remaining = open_record(settings, describe(settings, text), fresh)
  local progress = lab.progress { total = #remaining * settings.updates, unit = "updates" }
  for _, run in ipairs(remaining) do
    measure(settings, text, run, record, progress)
    collectgarbage() -- the model's buffers go back before the next one is built
  end
  progress:done()
  record:close()
end

return study
