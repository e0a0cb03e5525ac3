-- Options of experiments/depth_scaling.lua -> the settings of a study: the device opened, every default
-- resolved, attention chosen, and the memory of the largest model known to be there.

local lab = require "tilelab"
local arguments = require "tilelab.depth.arguments"
local attention = require "tilelab.model.attention"
local backends = require "tilelab.model.backends"
local memory = require "tilelab.model.memory"
local precision = require "tilelab.model.precision"
local presets = require "tilelab.model.presets"
local published = require "tilelab.depth.published"
local step = require "tilelab.model.step"

local settings = {}

-- The layout of a run with that many layers.
function settings.layout(chosen, layers)
  return presets.config(chosen.model, { layers = layers, learning_rate = chosen.learning_rate,
    micro_batch = chosen.micro_batch })
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

-- Opens cuBLASLt, where dense GEMMs are its, so that a GPU without it is refused at once and provenance
-- names the library.
local function open_gemms(device, backend)
  if device.arch == 0 then return end
  local function square(dtype) return lab.check(lab.tensor { device = device, dtype = dtype, shape = { 16, 16 } }) end
  local legal, reason = lab.legal { op = "gemm", variant = backends.variant(backend, "gemm", device.name),
    a = square "bf16", b = square "bf16", d = square "fp32" }
  if not legal then lab.usage_error("--device %s: %s", device.name, reason) end
end

-- Bytes that a model may take: of a GPU those that are free, and what this process has and does not use.
local function free_bytes(device)
  if device.arch == 0 then return device.memory_bytes end
  local state = lab.check(device:memory())
  return state.free_bytes + state.reserved_bytes - state.used_bytes
end

-- What the largest model of each backend takes, before anything is measured; more than the device has free
-- is an error that names the flag.
local function check_memory(chosen)
  local device, most = chosen.device, math.max(table.unpack(chosen.layers))
  local free = free_bytes(device)
  for _, backend in ipairs(chosen.backends) do
    local bytes = lab.check(step.bytes { device = device, config = settings.layout(chosen, most), backend = backend,
      seed = chosen.seed, precision = chosen.precision, routing = chosen.routing,
      attention = chosen.attention })
    local text = memory.text(bytes)
    if bytes.total > free then
      lab.usage_error("--layers %d: %s of %s needs %s, but %s has %.1f GB%s; give fewer --layers, or a smaller "
        .. "--micro-batch%s", most, backend, chosen.model, text, device.name, free / 1e9,
        device.arch > 0 and (" free of %.1f"):format(device.memory_bytes / 1e9) or "",
        chosen.model == "tiny" and "" or " or --model tiny")
    end
    if device.arch > 0 then print(("%s, %d layers: %s"):format(backend, most, text)) end
  end
end

-- The step's attention, and on a GPU which one it is and why.
local function choose_attention(chosen, options, types)
  local choice, message = attention.choose { device = chosen.device, config = chosen.config,
    types = types, deterministic = options.deterministic, library = options.attention }
  if not choice then lab.usage_error("--attention %s: %s", options.attention or "cudnn", message) end
  if chosen.device.arch > 0 then
    print(("attention: %s%s"):format(attention.name(choice),
      choice.reason and "; " .. choice.reason or choice.converts and ", in bf16" or ""))
  end
  return choice
end

-- Raises usage errors that name the flag.
function settings.resolve(options)
  local message = arguments.check(options, backends.names())
  if message then lab.usage_error("%s", message) end
  for _, name in ipairs { "out", "checkpoint" } do
    if options[name] == "" then lab.usage_error("--%s: the name of a folder is expected", name) end
  end
  local chosen = {}
  for _, name in ipairs { "backends", "layers", "updates", "warmup", "top", "text", "routing",
    "repetitions", "seed", "out", "learning_rate", "checkpoint", "checkpoint_every" } do
    chosen[name] = options[name]
  end
  chosen.device = open_device(options.device, chosen.backends)
  open_gemms(chosen.device, backends.get(chosen.backends[1]))
  local on_cpu = chosen.device.arch == 0
  chosen.precision = options.precision or (on_cpu and "fp32" or "bf16")
  message = arguments.record_as(options.record_as, chosen) or options.record
    and arguments.record(chosen, on_cpu and "fp32" or "bf16")
  if message then lab.usage_error("%s", message) end
  local types
  types, message = precision.types(chosen.precision, backends.kind_of(chosen.device.name))
  if not types then lab.usage_error("--precision %s: %s", chosen.precision, message) end
  chosen.model = options.model or (on_cpu and "tiny" or "30b-a3b")
  chosen.micro_batch = options.micro_batch
  chosen.config, message = settings.layout(chosen)
  if not chosen.config then lab.usage_error("--model: %s", message) end
  if not chosen.micro_batch then
    chosen.micro_batch = chosen.config.micro_batch * (chosen.model == "30b-a3b" and published.GPUS or 1)
    chosen.config = settings.layout(chosen)
  end
  chosen.attention = choose_attention(chosen, options, types)
  check_memory(chosen)
  return chosen
end

return settings
