-- Metric groups and what is computed from them.
--
--   lab.metrics.groups() -> list of {name, text, metrics = {full names}, chip, use}
--   lab.metrics.group(name) -> one of them
--   lab.metrics.add_group{name = "MINE", text = "one sentence", metrics = {full names or labels},
--       chip = "GH100", use = "ranges"}
--   lab.metrics.find(name or label) -> {name, label, unit, text}, nil for what is not in the catalogue
--   lab.metrics.collect{groups = {"PAPER"}, metrics = {...}} -> full names, each once
--   lab.metrics.by_label(values) -> {label = value}; what is not in the catalogue keeps its name
--   lab.metrics.derive(values[, {time_us = t}]) -> {label = value} of all that can be computed
--   lab.metrics.derived() -> list of {label, unit, formula, text, needs}
--   lab.metrics.logical{plan = plan, values = values[, time_us = t]}, or flops = and bytes = instead
--       of plan -> {flops, bytes, measured_flops, measured_bytes, flops_ratio, bytes_ratio, tflops,
--       gbps}; ratios are measured over logical: above 1 is padding, or data moved more than once.
--       What was not counted is absent
--
-- `values` is what lab.profile returns. Names are checked against the chip when they are profiled.

local core = require "tilelab_core"
local catalogue = require "tilelab.metrics.catalogue"
local derived = require "tilelab.metrics.derived"
local fields = require "tilelab.fields"
local groups = require "tilelab.metrics.groups"

local metrics = {}

function metrics.groups() return groups end
function metrics.derived() return derived.list end

function metrics.find(name) return catalogue.by_name[name] or catalogue.by_label[name] end

local function full_name(name)
  local metric = catalogue.by_label[name]
  return metric and metric.name or name
end

local function nearest_group(name)
  local names = {}
  for i, group in ipairs(groups) do names[i] = group.name end
  local nearest = core.nearest(name:upper(), names)
  return nearest and ("did you mean %s?"):format(nearest)
    or ("there are %s"):format(table.concat(names, ", "))
end

function metrics.group(name)
  for _, group in ipairs(groups) do
    if group.name == name then return group end
  end
  error(("unknown metric group '%s'; %s"):format(tostring(name), nearest_group(tostring(name))), 2)
end

local group_fields = { "name", "text", "metrics", "chip", "use" }

function metrics.add_group(spec)
  fields.check("a metric group", spec, group_fields, 2)
  if type(spec.name) ~= "string" or type(spec.metrics) ~= "table" or #spec.metrics == 0 then
    error("a metric group has a name and a list of metrics", 2)
  end
  for _, group in ipairs(groups) do
    if group.name == spec.name then error(("there is a metric group %s already"):format(spec.name), 2) end
  end
  local names = {}
  for i, name in ipairs(spec.metrics) do names[i] = full_name(name) end
  groups[#groups + 1] = { name = spec.name, text = spec.text or "", metrics = names,
    chip = spec.chip or "GH100", use = spec.use or "ranges" }
end

function metrics.collect(spec)
  local names, seen = {}, {}
  local function add(name)
    name = full_name(name)
    if not seen[name] then names[#names + 1], seen[name] = name, true end
  end
  for _, name in ipairs(spec.groups or {}) do
    for _, metric in ipairs(metrics.group(name).metrics) do add(metric) end
  end
  for _, name in ipairs(spec.metrics or {}) do add(name) end
  return names
end

function metrics.by_label(values)
  local result = {}
  for name, value in pairs(values) do
    local metric = catalogue.by_name[name]
    result[metric and metric.label or name] = value
  end
  return result
end

local function complete(values, needs)
  for _, label in ipairs(needs) do
    if type(values[label]) ~= "number" then return false end
  end
  return true
end

function metrics.derive(values, context)
  local known, result = metrics.by_label(values), {}
  known.time_us = context and context.time_us
  for _, row in ipairs(derived.list) do
    if complete(known, row.needs) then
      local value = row.compute(known)
      known[row.label], result[row.label] = value, value
    end
  end
  return result
end

-- Counters of tensor-core FLOPs, by label; kernels on other units have none.
local flop_labels = { "wgmma_bf16_flops", "tc_bf16_flops" }

local logical_fields = { "plan", "flops", "bytes", "values", "time_us" }

function metrics.logical(spec)
  fields.check("lab.metrics.logical", spec, logical_fields, 2)
  local known, result = metrics.by_label(spec.values or {}), {}
  result.flops = spec.flops or spec.plan and spec.plan:flops()
  result.bytes = spec.bytes or spec.plan and spec.plan:bytes()
  for _, label in ipairs(flop_labels) do
    local flops = known[label]
    if type(flops) == "number" and flops > 0 then
      result.measured_flops = (result.measured_flops or 0) + flops
    end
  end
  result.measured_bytes = metrics.derive(spec.values or {}).dram_bytes
  local function over(a, b) return a and b and b > 0 and a / b or nil end
  result.flops_ratio = over(result.measured_flops, result.flops)
  result.bytes_ratio = over(result.measured_bytes, result.bytes)
  if spec.time_us and spec.time_us > 0 then
    result.tflops = result.flops and result.flops / spec.time_us / 1e6
    result.gbps = result.bytes and result.bytes / spec.time_us / 1e3
  end
  return result
end

return metrics
