-- Checks of the study's options that a type cannot express. Each returns nil, or a message that
-- names the flag, the value and the remedy, for the caller to raise as a usage error.

local analysis = require "tilelab.depth.analysis"
local published = require "tilelab.depth.published"

local arguments = {}

-- updates, warmup: whole numbers.
function arguments.updates(updates, warmup)
  if updates < 1 then return string.format("--updates %d: a run needs at least 1", updates) end
  if warmup < 0 then return string.format("--warmup %d: give 0 or more", warmup) end
  if updates <= warmup then
    return string.format("--updates %d: the first %d are dropped (--warmup %d) and none is left; "
      .. "give --updates above %d or a smaller --warmup", updates, warmup, warmup, warmup)
  end
  return nil
end

-- top: fraction of the updates kept, after the warm-up.
function arguments.top(top, updates, warmup)
  if not (top > 0 and top <= 1) then
    local remedy = ""
    if top > 1 and top <= 100 then
      remedy = string.format("; for %g %% give --top %g", top, top / 100)
    end
    return string.format("--top %g: a fraction above 0 and up to 1 is expected%s", top, remedy)
  end
  local kept = updates - warmup
  if analysis.keep(top, kept) < 1 then
    return string.format("--top %g: keeps none of the %d updates after the warm-up; give --top "
      .. "%.2g or more, or more --updates", top, kept, math.ceil(100 / (2 * kept)) / 100)
  end
  return nil
end

-- More would be a slip of the pen, and its launches alone would fill the memory.
local MAX_LAYERS = 10000

-- layers: the list of depths.
function arguments.layers(layers)
  local text, seen = table.concat(layers, ","), {}
  for _, depth in ipairs(layers) do
    if depth < 1 or depth ~= math.floor(depth) then
      return string.format("--layers %s: %s is no depth; give whole numbers from 1, such as "
        .. "--layers 1,2", text, depth)
    end
    if depth > MAX_LAYERS then
      return string.format("--layers %s: give depths of %d or fewer", text, MAX_LAYERS)
    end
    if seen[depth] then
      return string.format("--layers %s: %s occurs twice; give different depths, such as "
        .. "--layers 1,2", text, depth)
    end
    seen[depth] = true
  end
  if #layers == 0 then return "--layers: give one depth, or two and more for a slope, such as --layers 1,2" end
  return nil
end

-- backends: the list given; known: the list of those there are.
function arguments.backends(backends, known)
  local seen, exists = {}, {}
  for _, backend in ipairs(known) do exists[backend] = true end
  local remedy = "choose from " .. table.concat(known, ", ")
  for _, backend in ipairs(backends) do
    if not exists[backend] then
      return string.format("--backends %s: there is no backend '%s'; %s",
        table.concat(backends, ","), backend, remedy)
    end
    if seen[backend] then
      return string.format("--backends %s: '%s' occurs twice; name it once",
        table.concat(backends, ","), backend)
    end
    seen[backend] = true
  end
  if #backends == 0 then return "--backends: none is given; " .. remedy end
  return nil
end

-- More would be a slip of the pen, and its schedule alone would fill the memory.
local MAX_REPETITIONS = 10000

function arguments.repetitions(repetitions)
  if repetitions > MAX_REPETITIONS then
    return string.format("--repetitions %d: give %d or fewer", repetitions, MAX_REPETITIONS)
  end
  if repetitions < 1 then
    return string.format("--repetitions %d: give 1 or more (2 for ABBA order)", repetitions)
  end
  return nil
end

-- What a study must be to be kept as the main one, which is drawn and tabled by the published protocol. study:
-- {warmup, top, routing, precision}, resolved; precision: the usual one of its device.
function arguments.record(study, precision)
  for _, rule in ipairs { { "warmup", published.WARMUP }, { "top", published.TOP }, { "routing", "model" },
    { "precision", precision } } do
    local name, usual = table.unpack(rule)
    if study[name] ~= usual then
      return ("--record: the record is of a study with --%s %s, not %s; leave one of the two out"):format(name, usual,
        study[name])
    end
  end
  return nil
end

-- What a study must be to be kept under that name beside the main one. study: {routing, precision, layers}, resolved.
function arguments.record_as(side, study)
  local function other(what, value, remedy)
    return ("--record-as %s: the study's %s is %s; give %s"):format(side, what, value, remedy)
  end
  if side == "multinomial" and study.routing ~= side then
    return other("routing", study.routing, "--routing multinomial")
  end
  if side == "fp32" and study.precision ~= side then return other("precision", study.precision, "--precision fp32") end
  if side == "depth3" then
    local deepest = math.max(table.unpack(study.layers))
    if deepest < 3 then return other("greatest depth", deepest, "--layers 3") end
  end
  return nil
end

-- The first fault of options {updates, warmup, top, layers, backends, repetitions}, or nil.
function arguments.check(options, known_backends)
  return arguments.updates(options.updates, options.warmup)
    or arguments.top(options.top, options.updates, options.warmup)
    or arguments.layers(options.layers)
    or arguments.backends(options.backends, known_backends)
    or arguments.repetitions(options.repetitions)
end

return arguments
