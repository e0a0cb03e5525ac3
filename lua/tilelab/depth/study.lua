-- The measuring half of the depth-scaling study: whole training runs, each backend at each depth,
-- one row of updates.tsv per update, flushed as it is measured. A study that was cut resumes at the
-- run that was cut, or with checkpoints at the last one of that run. The analysis (report.lua) reads
-- updates.tsv and nothing else.

local lab = require "tilelab"
local attention = require "tilelab.model.attention"
local backends = require "tilelab.model.backends"
local checkpoints = require "tilelab.depth.checkpoints"
local gemm_choices = require "tilelab.model.gemm_choices"
local provenance = require "tilelab.provenance"
local schedule = require "tilelab.depth.schedule"
local settings_of = require "tilelab.depth.settings"
local step = require "tilelab.model.step"
local texts = require "tilelab.model.text"
local wall = require "tilelab.depth.wall"

local layout = settings_of.layout

local study = { settings = settings_of.resolve }

-- What updates.tsv holds (kinds as in tilelab.recorded); lua/tilelab/draw/depth_scaling.lua explains it.
study.schema = {
  { "gpus", "integer" }, { "experts_per_gpu", "integer" }, { "model", "text" }, { "precision", "text" },
  { "routing", "text" }, { "backend", "text" }, { "layers", "integer" }, { "repetition", "integer" },
  { "update", "integer" }, { "tokens", "integer" }, { "time_s", "number" }, { "loss", "number" },
  { "load_max_over_mean", "number" }, { "experts_empty", "number" },
}
study.columns = lab.recorded.columns(study.schema)

-- The provenance of a study. Its "flag" lines, with commit, device and hashes, are what must agree
-- for a study to be resumed. resumed: where runs went on from a checkpoint, nil for nowhere; the first updates after
-- that are as cold as those after a start.
local function describe(settings, text, began, resumed)
  return lab.provenance { device = settings.device, seed = settings.seed, extra = {
    began = began, resumed = resumed, measured = backends.folders, flag_model = settings.model,
    flag_precision = settings.precision, flag_routing = settings.routing,
    flag_backends = table.concat(settings.backends, ","), flag_layers = table.concat(settings.layers, ","),
    flag_updates = settings.updates, flag_repetitions = settings.repetitions, flag_seed = settings.seed,
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

-- Checkpoints of the study that began then, nil where none are asked for.
local function open_checkpoints(settings, text, began)
  if not settings.checkpoint then return nil end
  return checkpoints.open { folder = settings.checkpoint, out = settings.out, every = settings.checkpoint_every,
    facts = { began = began, text_sha256 = text.sha256 } }
end

-- A study that has no rows yet.
local function begin(settings, text, path, runs)
  local began = os.date("!%Y-%m-%dT%H:%M:%SZ")
  set_aside(settings.gemms)
  local block = describe(settings, text, began)
  return { record = lab.check(lab.record.create(path, block, study.columns)), remaining = runs, from = 0,
    choices = gemm_choices.new(settings.gemms), provenance = block,
    checkpoints = open_checkpoints(settings, text, began) }
end

-- What is under way after an interruption, in words.
local function going_on(state)
  if not state.cut then return "" end
  if state.from == 0 then return "; the one that was cut starts again" end
  return ("; the one that was cut goes on after update %d"):format(state.from)
end

-- Opens updates.tsv, new or to be continued. Returns {record, remaining = the runs still to be made,
-- from = updates that the first of them has, choices = of GEMMs, checkpoints or nil, provenance}.
local function open_study(settings, text, fresh)
  local path, runs = settings.out .. "/updates.tsv", schedule.build(settings)
  settings.gemms = settings.out .. "/gemm_choices.tsv"
  if fresh then set_aside(path) end
  local file = lab.stat(path)
  if not file or file.bytes == 0 then -- empty: killed, or the disk was full, before the header
    return begin(settings, text, path, runs)
  end
  local data = lab.record.read(path, study.columns, { drop_cut_row = true })
  local began, resumed = data.provenance.began, data.provenance.resumed
  local block = describe(settings, text, began, resumed)
  local message = schedule.difference(data.provenance, provenance.parse(block))
  if message then lab.usage_error("%s: %s", path, message) end
  local store = open_checkpoints(settings, text, began)
  local state, reason = schedule.resume(data.rows, runs, settings.updates,
    store and function(run, count) return store:newest(run, count) end)
  if not state then lab.usage_error("%s: %s", path, reason) end
  for _, run in ipairs(store and state.complete or {}) do store:clear(run) end -- a kill may have left some
  if state.from > 0 then
    local place = ("%s after update %d"):format(schedule.name(state.cut), state.from)
    block = describe(settings, text, began, resumed and resumed .. "; " .. place or place)
  end
  if state.cut or data.cut then rewrite(path, block, state.keep) end
  print(("resuming %s: %d of %d runs are complete%s"):format(path, #state.complete, #runs, going_on(state)))
  state.record = lab.check(lab.record.append(path, study.columns))
  state.choices = lab.stat(settings.gemms) and gemm_choices.read(settings.gemms) or gemm_choices.new(settings.gemms)
  state.checkpoints, state.provenance = store, block
  return state
end

local function is_finite(value) return value == value and math.abs(value) < math.huge end

-- The model of a run, as it was after `from` updates, its GEMMs chosen.
local function build(settings, text, run, from, state)
  local model, message = step.build { device = settings.device, config = layout(settings, run.layers),
    backend = run.backend, seed = settings.seed, routing = settings.routing, precision = settings.precision,
    attention = settings.attention }
  if not model then lab.usage_error("%s: %s", schedule.name(run), message) end
  if from > 0 then
    local own = state.checkpoints:restore(model, run, from)
    if own then state.choices:merge(own) end
  elseif state.checkpoints then
    state.checkpoints:clear(run)
  end
  local timed = model:choose_gemms(state.choices, text)
  if timed > 0 then
    state.choices:write(settings.gemms, state.provenance)
    print(("%d shapes of dense GEMMs timed: %s"):format(timed, settings.gemms))
  end
  return model
end

-- One update and its row.
local function measure_update(settings, text, run, model, update, record)
  local device = settings.device
  device:synchronize()
  local start = lab.time_us()
  local loss = model:update(text)
  device:synchronize()
  local time_s = (lab.time_us() - start) * 1e-6
  if not is_finite(loss) then
    lab.usage_error("%s: the loss is %s at update %d; the rows before it are in %s/updates.tsv. "
      .. "Use a --learning-rate below %g, with --fresh", schedule.name(run), loss, update,
      settings.out, settings.config.learning_rate)
  end
  local fullest, empty = model:expert_load()
  record:row { gpus = device.arch == 0 and 0 or 1, experts_per_gpu = settings.config.experts,
    model = settings.model, precision = settings.precision, routing = settings.routing,
    backend = run.backend, layers = run.layers, repetition = run.repetition, update = update,
    tokens = model:tokens(), time_s = ("%.9g"):format(time_s), loss = ("%.9g"):format(loss),
    load_max_over_mean = ("%.4f"):format(fullest), experts_empty = ("%.4g"):format(empty) }
  return loss
end

-- One run from its update `from` + 1 to its end; every update is a row.
local function measure(settings, text, run, from, state, progress)
  local model, store = build(settings, text, run, from, state), state.checkpoints
  for update = from + 1, settings.updates do
    local loss = measure_update(settings, text, run, model, update, state.record)
    if model.note then print(("%s: launched one by one, not as a graph: %s"):format(schedule.name(run), model.note)) end
    model.note = nil
    progress:step(1, ("%s: loss %.4f"):format(schedule.name(run), loss))
    if store then store:save(model, run, update, settings.updates, state.choices) end
  end
  if store then store:clear(run) end
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
  local state = open_study(settings, text, fresh)
  local record <close> = state.record -- luacheck: ignore 211
  local progress <close> = lab.progress { total = #state.remaining * settings.updates - state.from, unit = "updates" }
  for i, run in ipairs(state.remaining) do
    local start, from = lab.time_us(), i == 1 and state.from or 0
    measure(settings, text, run, from, state, progress)
    wall.note(settings.out, run, from == 0 and (lab.time_us() - start) * 1e-6 or nil)
    collectgarbage() -- the model's buffers go back before the next one is built
  end
end

return study
