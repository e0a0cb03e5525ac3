-- The measuring half of the depth-scaling study: whole training runs, each backend at each depth,
-- one row of updates.tsv per update, flushed as it is measured. A study that was cut resumes at the
-- run that was cut. The analysis (report.lua) reads updates.tsv and nothing else.

local lab = require "tilelab"
local arguments = require "tilelab.depth.arguments"
local attention = require "tilelab.model.attention"
local backends = require "tilelab.model.backends"
local memory = require "tilelab.model.memory"
local precision = require "tilelab.model.precision"
local presets = require "tilelab.model.presets"
local provenance = require "tilelab.provenance"
local schedule = require "tilelab.depth.schedule"
local step = require "tilelab.model.step"
local texts = require "tilelab.model.text"

local study = {}

-- What updates.tsv holds (kinds as in tilelab.recorded); lua/tilelab/draw/depth_scaling.lua explains it.
study.schema = {
  { "gpus", "integer" }, { "experts_per_gpu", "integer" }, { "model", "text" }, { "precision", "text" },
  { "routing", "text" }, { "backend", "text" }, { "layers", "integer" }, { "repetition", "integer" },
  { "update", "integer" }, { "tokens", "integer" }, { "time_s", "number" }, { "loss", "number" },
  { "load_max_over_mean", "number" }, { "experts_empty", "number" },
}
study.columns = lab.recorded.columns(study.schema)

-- GPUs of the published study, whose micro-batches one device here does at once.
local PUBLISHED_GPUS = { ["30b-a3b"] = 4 }

-- The layout of a run with that many layers.
local function layout(settings, layers)
  return presets.config(settings.model, { layers = layers, learning_rate = settings.learning_rate,
    micro_batch = settings.micro_batch })
end

local function open_device(name, backend_names)
  name = name or backends.best_device(backend_names)
  local device = lab.device_option(name)
  local supported, missing = backends.supported(device.name, backend_names)
  if not supported then
    lab.usage_error("--device %s: it has no kernel for %s; use --device cpu", name, missing)
  end
  return device
end

-- What the largest model of each backend takes, before anything is measured; more than the device has
-- is an error that names the flag.
local function check_memory(settings)
  local device, most = settings.device, math.max(table.unpack(settings.layers))
  for _, backend in ipairs(settings.backends) do
    local bytes = lab.check(step.bytes { device = device, config = layout(settings, most), backend = backend,
      seed = settings.seed, precision = settings.precision, routing = settings.routing,
      attention = settings.attention })
    local text = memory.text(bytes)
    if bytes.total > device.memory_bytes then
      lab.usage_error("--layers %d: %s of %s needs %s, but %s has %.1f GB; give fewer --layers, or a smaller "
        .. "--micro-batch%s", most, backend, settings.model, text, device.name, device.memory_bytes / 1e9,
        settings.model == "tiny" and "" or " or --model tiny")
    end
    if device.arch > 0 then print(("%s, %d layers: %s"):format(backend, most, text)) end
  end
end

-- The step's attention, and on a GPU which one it is and why.
local function choose_attention(settings, options, types)
  local choice, message = attention.choose { device = settings.device, config = settings.config,
    types = types, deterministic = options.deterministic, library = options.attention }
  if not choice then lab.usage_error("--attention %s: %s", options.attention, message) end
  if settings.device.arch > 0 then
    print(("attention: %s%s"):format(attention.name(choice),
      choice.reason and "; " .. choice.reason or choice.converts and ", in bf16" or ""))
  end
  return choice
end

-- Options of experiments/depth_scaling.lua -> the settings of a study, the device opened and every
-- default resolved. Raises usage errors that name the flag.
function study.settings(options)
  local message = arguments.check(options, backends.names())
  if message then lab.usage_error("%s", message) end
  if options.out == "" then lab.usage_error("--out: the name of a folder is expected") end
  local settings = {}
  for _, name in ipairs { "backends", "layers", "updates", "warmup", "top", "text", "routing",
    "repetitions", "seed", "out", "learning_rate" } do
    settings[name] = options[name]
  end
  settings.device = open_device(options.device, settings.backends)
  local on_cpu = settings.device.arch == 0
  settings.precision = options.precision or (on_cpu and "fp32" or "bf16")
  local types
  types, message = precision.types(settings.precision, backends.kind_of(settings.device.name))
  if not types then lab.usage_error("--precision %s: %s", settings.precision, message) end
  settings.model = options.model or (on_cpu and "tiny" or "30b-a3b")
  settings.micro_batch = options.micro_batch
  settings.config, message = layout(settings)
  if not settings.config then lab.usage_error("--model: %s", message) end
  if not settings.micro_batch then
    settings.micro_batch = settings.config.micro_batch * (PUBLISHED_GPUS[settings.model] or 1)
    settings.config = layout(settings)
  end
  settings.attention = choose_attention(settings, options, types)
  check_memory(settings)
  return settings
end

-- The provenance of a study. Its "flag" lines, with commit, device and hashes, are what must agree
-- for a study to be resumed.
local function describe(settings, text, began)
  return lab.provenance { device = settings.device, seed = settings.seed, extra = {
    began = began, measured = backends.folders, flag_model = settings.model, flag_precision = settings.precision,
    flag_routing = settings.routing, flag_backends = table.concat(settings.backends, ","),
    flag_layers = table.concat(settings.layers, ","), flag_updates = settings.updates,
    flag_repetitions = settings.repetitions, flag_seed = settings.seed,
    flag_learning_rate = settings.config.learning_rate, flag_micro_batch = settings.micro_batch,
    flag_attention = attention.name(settings.attention), flag_text = text.name, flag_text_sha256 = text.sha256,
  } }
end

-- Renames an earlier result file to updates.1.tsv, updates.2.tsv, ...: measured rows are never
-- thrown away.
local function set_aside(path)
  if not lab.stat(path) then return end
  local stem, number = path:gsub("%.tsv$", ""), 1
  while lab.stat(("%s.%d.tsv"):format(stem, number)) do number = number + 1 end
  lab.check(os.rename(path, ("%s.%d.tsv"):format(stem, number)))
end

-- Rewrites the file without the rows of a cut run: aside, then renamed over it.
local function rewrite(path, provenance_text, rows)
  local record = lab.check(lab.record.create(path .. ".new", provenance_text, study.columns))
  for _, row in ipairs(rows) do record:row(row) end
  lab.check(record:close())
  lab.check(os.rename(path .. ".new", path))
end

-- Opens updates.tsv, new or to be continued. Returns the record and the runs still to be made.
local function open_record(settings, text, fresh)
  local path, runs = settings.out .. "/updates.tsv", schedule.build(settings)
  if fresh then set_aside(path) end
  local file = lab.stat(path)
  if not file or file.bytes == 0 then -- empty: killed, or the disk was full, before the header
    local block = describe(settings, text, os.date("!%Y-%m-%dT%H:%M:%SZ"))
    return lab.check(lab.record.create(path, block, study.columns)), runs
  end
  local data = lab.record.read(path, study.columns, { drop_cut_row = true })
  local block = describe(settings, text, data.provenance.began)
  local message = schedule.difference(data.provenance, provenance.parse(block))
  if message then lab.usage_error("%s: %s", path, message) end
  local state
  state, message = schedule.resume(data.rows, runs, settings.updates)
  if not state then lab.usage_error("%s: %s", path, message) end
  if state.cut or data.cut then rewrite(path, block, state.keep) end
  print(("resuming %s: %d of %d runs are complete%s"):format(path, #state.complete, #runs,
    state.cut and "; the one that was cut starts again" or ""))
  return lab.check(lab.record.append(path, study.columns)), state.remaining
end

local function is_finite(value) return value == value and math.abs(value) < math.huge end

-- One whole run; every update is a row.
local function measure(settings, text, run, record, progress)
  local config = layout(settings, run.layers)
  local model, message = step.build { device = settings.device, config = config,
    backend = run.backend, seed = settings.seed, routing = settings.routing, precision = settings.precision,
    attention = settings.attention }
  if not model then lab.usage_error("%s: %s", schedule.name(run), message) end
  local device = settings.device
  for update = 1, settings.updates do
    device:synchronize()
    local start = lab.time_us()
    local loss = model:update(text)
    device:synchronize()
    local time_s = (lab.time_us() - start) * 1e-6
    if not is_finite(loss) then
      lab.usage_error("%s: the loss is %s at update %d; the rows before it are in %s/updates.tsv. "
        .. "Use a --learning-rate below %g, with --fresh", schedule.name(run), loss, update,
        settings.out, config.learning_rate)
    end
    local fullest, empty = model:expert_load()
    record:row { gpus = device.arch == 0 and 0 or 1, experts_per_gpu = config.experts,
      model = settings.model, precision = settings.precision, routing = settings.routing,
      backend = run.backend, layers = run.layers, repetition = run.repetition, update = update,
      tokens = model:tokens(), time_s = ("%.9g"):format(time_s), loss = ("%.9g"):format(loss),
      load_max_over_mean = ("%.4f"):format(fullest), experts_empty = ("%.4g"):format(empty) }
    progress:step(1, ("%s: loss %.4f"):format(schedule.name(run), loss))
  end
end

-- Measures what is missing from settings.out/updates.tsv.
function study.run(settings, fresh)
  lab.check(lab.mkdir(settings.out))
  local text, message
  settings.lock, message = lab.lock(settings.out) -- held until the report is written, too
  if not settings.lock then lab.usage_error("%s; wait for it, or give another --out", message) end
  text, message = texts.load(settings.text, settings.device, settings.config.vocabulary,
    settings.config.sequence)
  if not text then lab.usage_error("--text: %s", message) end
  local record <close>, runs = open_record(settings, text, fresh)
  local progress <close> = lab.progress { total = #runs * settings.updates, unit = "updates" }
  for _, run in ipairs(runs) do
    measure(settings, text, run, record, progress)
    collectgarbage() -- the model's buffers go back before the next one is built
  end
end

return study
