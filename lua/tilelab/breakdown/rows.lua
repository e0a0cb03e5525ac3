-- From the records of a step to the rows of layer_breakdown.tsv, step_gemm_cycles.tsv and
-- step_timeline.tsv, whose columns lua/tilelab/draw/ explains.

local lab = require "tilelab"
local attribute = require "tilelab.breakdown.attribute"
local classes = require "tilelab.breakdown.classes"

local rows = {}

local function place(label, record)
  if label then return label.pass, label.class end
  return "other", classes.outside(record)
end

local function key_of(label, record)
  local pass, class = place(label, record)
  return pass .. " " .. class
end

-- Logical FLOPs and bytes of one update by key, and those of memsets outside of launches from their records.
local function work_of(step)
  local work = {}
  local function add(key, flops, bytes)
    local sum = work[key] or { flops = 0, bytes = 0 }
    sum.flops, sum.bytes, work[key] = sum.flops + flops, sum.bytes + bytes, sum
  end
  for _, label in ipairs(step.log) do
    if label.plan then
      local flops, bytes = classes.logical(label.plan, label.args, step.layout)
      add(key_of(label), flops, bytes)
    end
  end
  for i, record in ipairs(step.pattern) do
    if not step.labels[i] and record.bytes then add(key_of(false, record), 0, record.bytes) end
  end
  return work
end

-- Means of a counter over the launches of a key, weighted by their time; "-" where none was counted.
local function weighted(counted, time_of, name)
  local sum, weight = 0, 0
  for label, time_us in pairs(time_of) do
    local value = counted and counted[label] and counted[label][name]
    if type(value) == "number" and value == value then sum, weight = sum + time_us * value, weight + time_us end
  end
  return weight > 0 and sum / weight or "-"
end

local function position(list, name)
  for i, item in ipairs(list) do
    if item == name then return i end
  end
  return #list + 1
end

local function by_place(a, b)
  local x, y = position(classes.passes, a.pass), position(classes.passes, b.pass)
  if x ~= y then return x < y end
  return position(classes.list, a.kernel_class) < position(classes.list, b.kernel_class)
end

local EMPTY = { logical_gbps = "-", copy_ratio = "-", tflops = "-", tensor_pct = "-", occupancy_pct = "-" }

local function row(cells)
  for column, nothing in pairs(EMPTY) do
    if cells[column] == nil then cells[column] = nothing end
  end
  return cells
end

-- Rows of layer_breakdown.tsv without backend, layers and precision. recorded: of Step:record; counted: of
-- Step:count, or nil; host_us: times of updates without records.
function rows.breakdown(step, recorded, counted, host_us)
  local idle, span_us = attribute.idle(recorded.records)
  local sums = attribute.sums(recorded.records, recorded.labels, idle, key_of)
  local work, updates, list, total = work_of(step), recorded.updates, {}, { flops = 0, idle = 0, launches = 0 }
  local update_us = span_us / updates
  for _, sum in ipairs(sums) do
    local pass, class = place(recorded.labels[sum.records[1]], recorded.records[sum.records[1]])
    local time_us, done, time_of = sum.time_us / updates, work[sum.key] or { flops = 0, bytes = 0 }, {}
    for _, i in ipairs(sum.records) do
      local label = recorded.labels[i]
      if label then time_of[label] = (time_of[label] or 0) + (recorded.records[i].duration_us or 0) end
    end
    local gbps = done.bytes > 0 and time_us > 0 and done.bytes / time_us * 1e-3 or nil
    total.flops, total.idle = total.flops + done.flops, total.idle + sum.idle_us / updates
    total.launches = total.launches + sum.launches / updates
    list[#list + 1] = row { pass = pass, kernel_class = class, launches = math.floor(sum.launches / updates + 0.5),
      time_us = time_us, share_of_update = time_us / update_us, logical_gbps = gbps,
      copy_ratio = gbps and classes.memory_bound[class] and gbps / recorded.copy_gbps or nil,
      tflops = done.flops > 0 and done.flops / time_us * 1e-6 or nil,
      tensor_pct = weighted(counted, time_of, "tensor_active"),
      occupancy_pct = weighted(counted, time_of, "achieved_occupancy"),
      idle_pct = 100 * sum.idle_us / updates / update_us }
  end
  table.sort(list, by_place)
  list[#list + 1] = row { pass = "update", kernel_class = "all", launches = math.floor(total.launches + 0.5),
    time_us = update_us, share_of_update = 1, tflops = total.flops / update_us * 1e-6,
    idle_pct = 100 * total.idle / update_us }
  local host = lab.stats(host_us).median
  list[#list + 1] = row { pass = "update", kernel_class = "unrecorded", launches = 0, time_us = host,
    share_of_update = host / update_us, idle_pct = "-" }
  return list
end

-- Rows of step_gemm_cycles.tsv without backend, layers and precision; gemms: of Step:gemms_alone.
function rows.cycles(gemms)
  local list = {}
  for i, gemm in ipairs(gemms) do
    local columns = { step_us = {}, step_mhz = {}, alone_us = {}, alone_mhz = {}, ratio = {}, step = {}, alone = {} }
    for k, inside in ipairs(gemm.step) do
      local alone = gemm.alone[k]
      columns.step_us[k], columns.step_mhz[k] = inside.time_us, inside.mhz
      columns.alone_us[k], columns.alone_mhz[k] = alone.time_us, alone.mhz
      columns.step[k], columns.alone[k] = inside.time_us * inside.mhz, alone.time_us * alone.mhz
      columns.ratio[k] = columns.step[k] / columns.alone[k]
    end
    local function median(name) return lab.stats(columns[name]).median end
    local ratio = lab.stats(columns.ratio)
    list[i] = { op = gemm.op, layer = gemm.layer, variant = gemm.variant, step_us = median "step_us",
      step_mhz = median "step_mhz", alone_us = median "alone_us", alone_mhz = median "alone_mhz",
      step_kcycles = median "step" / 1000, alone_kcycles = median "alone" / 1000, cycles_ratio = ratio.median,
      cycles_ratio_lo = ratio.median_lo, cycles_ratio_hi = ratio.median_hi, rounds = #gemm.step }
  end
  return list
end

-- Rows of step_timeline.tsv without backend, layers and precision: the phases of the last recorded update, each
-- run of launches of one phase and pass being one.
function rows.timeline(step, recorded)
  local length, list, current = #step.pattern, {}, nil
  local from = (recorded.updates - 1) * length
  local origin
  for i = from + 1, from + length do
    local record, label = recorded.records[i], recorded.labels[i]
    local pass, class = place(label, record)
    local phase = label and label.phase or class
    if record.start_ns then
      origin = origin or record.start_ns
      local start = (record.start_ns - origin) * 1e-3
      if not current or current.phase ~= phase or current.pass ~= pass then
        current = { position = #list + 1, pass = pass, phase = phase, start_us = start, stop_us = start, busy_us = 0,
          launches = 0 }
        list[#list + 1] = current
      end
      current.stop_us = math.max(current.stop_us, start + record.duration_us)
      current.busy_us, current.launches = current.busy_us + record.duration_us, current.launches + 1
    end
  end
  return list
end

return rows
