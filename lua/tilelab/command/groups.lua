-- tilelab groups [GROUP...]: the metric groups, or all metrics of some. Needs no GPU; pass counts
-- need CUPTI.

local lab = require "tilelab"
local core = require "tilelab_core"
local text_table = require "tilelab.text_table"

local function passes_of(group)
  return core.metric_passes(group.chip, group.metrics, group.use)
end

local function print_groups()
  local cells = { { "group", "chip", "metrics", "passes", "" } }
  local refusal
  for _, group in ipairs(lab.metrics.groups()) do
    local passes, message = passes_of(group)
    refusal = refusal or not passes and message
    cells[#cells + 1] = { group.name, group.chip, tostring(#group.metrics), passes and tostring(passes) or "-",
      group.text }
  end
  print(text_table.align(cells, { [3] = true, [4] = true }))
  if refusal then print("\npass counts: " .. refusal) end
end

local function has_all(labels, needs)
  for _, label in ipairs(needs) do
    if not labels[label] then return false end
  end
  return true
end

local function print_group(group)
  local passes, refusal = passes_of(group)
  print(("%s (%s): %s"):format(group.name, group.chip, group.text))
  print(passes and ("%d metrics, %d %s\n"):format(#group.metrics, passes, passes == 1 and "pass" or "passes")
    or ("%d metrics; pass count: %s\n"):format(#group.metrics, refusal))
  local cells, labels = { { "label", "unit", "NVIDIA's name", "" } }, { time_us = true }
  for _, name in ipairs(group.metrics) do
    local metric = lab.metrics.find(name) or { label = "-", unit = "-", text = "" }
    labels[metric.label] = true
    cells[#cells + 1] = { metric.label, metric.unit, name, metric.text }
  end
  print(text_table.align(cells, {}))
  cells = { { "derived", "unit", "formula", "" } }
  for _, row in ipairs(lab.metrics.derived()) do
    if has_all(labels, row.needs) then
      labels[row.label] = true
      cells[#cells + 1] = { row.label, row.unit, row.formula, row.text }
    end
  end
  if #cells > 1 then print("\n" .. text_table.align(cells, {})) end
end

lab.main(function()
  local opt = lab.options { name = "tilelab groups", arguments = "[GROUP...]",
    summary = "Lists the metric groups, or the metrics of some." }
  if #opt == 0 then return print_groups() end
  for i, name in ipairs(opt) do
    local found, group = pcall(lab.metrics.group, name)
    if not found then lab.usage_error("%s", (group:gsub("^.-: ", "", 1))) end
    if i > 1 then print "" end
    print_group(group)
  end
end)
