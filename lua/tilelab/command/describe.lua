-- tilelab describe METRIC: what a metric means, in NVIDIA's words and ours, with its roll-ups,
-- passes and groups; METRIC may be a label, a derived value too. Needs CUPTI, no GPU.

local lab = require "tilelab"
local core = require "tilelab_core"

local WIDTH = 96

local function line(key, text) print(("%-12s %s"):format(key, text)) end

local function print_list(key, words)
  local current = ""
  for _, word in ipairs(words) do
    if #current + #word + 14 > WIDTH then
      line(key, current)
      key, current = "", ""
    end
    current = current == "" and word or current .. " " .. word
  end
  line(key, current)
end

local function groups_with(name)
  local found = {}
  for _, group in ipairs(lab.metrics.groups()) do
    for _, metric in ipairs(group.metrics) do
      if metric == name then found[#found + 1] = group.name end
    end
  end
  return found
end

local function describe_derived(name)
  for _, row in ipairs(lab.metrics.derived()) do
    if row.label == name then
      line("derived", row.label)
      line("unit", row.unit)
      line("formula", row.formula)
      line("meaning", row.text)
      print_list("needs", row.needs)
      return true
    end
  end
end

-- The chip and use that know the metric: those asked for, else those of a group that has it.
local function where_from(opt, name)
  if opt.chip then return opt.chip, opt.use end
  for _, group in ipairs(lab.metrics.groups()) do
    for _, metric in ipairs(group.metrics) do
      if metric == name then return group.chip, group.use end
    end
  end
  return "GH100", opt.use
end

local function describe(opt, name)
  local ours = lab.metrics.find(name)
  name = ours and ours.name or name
  local chip, use = where_from(opt, name)
  local ok, metric, message, code = pcall(core.metric_describe, chip, name, use)
  local is_full = ok and metric and name ~= metric.base
  if not ok or is_full then
    local good, reason = core.metric_check(chip, name, use)
    if not good then lab.usage_error("%s", reason) end
  end
  lab.check(metric, message, code)
  line("metric", name)
  line("chip", chip)
  line("kind", ("%s of unit %s"):format(metric.kind, metric.hardware))
  if metric.unit ~= "" then line("unit", metric.unit) end
  if metric.description ~= "" then line("NVIDIA says", metric.description) end
  if ours then
    line("label", ("%s [%s]"):format(ours.label, ours.unit))
    line("meaning", ours.text)
  end
  if is_full then
    line("passes", tostring(lab.check(core.metric_passes(chip, { name }, use))) .. " by itself")
    local groups = groups_with(name)
    if #groups > 0 then print_list("groups", groups) end
  end
  print_list("roll-ups", metric.rollups)
end

lab.main(function()
  local opt = lab.options { name = "tilelab describe", arguments = "METRIC",
    summary = "Says what a metric means; METRIC is NVIDIA's name, with or without roll-up, or a label.",
    { "chip", "string", nil, "the chip, such as GH100 or GB100 (default: that of the metric's group)" },
    { "use", "string", "ranges", "totals of a region, or samples over time", choices = { "ranges", "samples" } },
  }
  if #opt ~= 1 then lab.usage_error("one metric at a time, got %d", #opt) end
  if not describe_derived(opt[1]) then describe(opt, opt[1]) end
end)
