-- Which launch of the step each kernel record belongs to, and how long nothing ran. Pure functions.
--
-- One update is run with a mark, a memset of a size that nothing else has, before and after each launch.
-- So each record between two marks is of that launch; those outside are copies of tokens and zeroing.
-- Updates that are measured run without marks; they must launch the same kernels in the same order, record
-- by record, and take the labels over. What differs is an error, not a guess.

local attribute = {}

-- records: of the update with marks (lab.activity_records); log: what the launches were, in their order
-- (any values); marks = {open = bytes, close = bytes}. Returns the records without the marks and the label
-- of each (false outside); or nil and a message.
function attribute.labels(records, log, marks)
  local kept, labels, position, inside = {}, {}, 0, false
  for i, record in ipairs(records) do
    if record.kind == "memset" and record.bytes == marks.open then
      if inside then return nil, ("record %d: a launch begins inside of launch %d"):format(i, position) end
      position, inside = position + 1, true
    elseif record.kind == "memset" and record.bytes == marks.close then
      if not inside then return nil, ("record %d: an end without a launch"):format(i) end
      inside = false
    else
      kept[#kept + 1], labels[#labels + 1] = record, inside and log[position] or false
    end
  end
  if inside or position ~= #log then
    return nil, ("%d launches are marked among the records, and %d were made"):format(position, #log)
  end
  return kept, labels
end

local function identity(record)
  return record.kind == "kernel" and record.symbol or ("%s of %d bytes"):format(record.kind, record.bytes)
end

-- Whether `records`, from `first` (1-based) on, are what `pattern` is. Returns true, or nil and a message.
function attribute.check(records, first, pattern)
  for i, expected in ipairs(pattern) do
    local found = records[first + i - 1]
    if not found then
      return nil, ("the records end before number %d of the update, %s"):format(i, identity(expected))
    end
    if identity(found) ~= identity(expected) then
      return nil, ("record %d of the update is %s, where %s was launched before: the step does not launch the "
        .. "same each time"):format(i, identity(found), identity(expected))
    end
  end
  return true
end

-- Microseconds before each record in which nothing ran since the first began: list by position, and the time
-- from the first start to the last end. Records may overlap and need not be sorted; those without a time
-- stamp count as nothing.
function attribute.idle(records)
  local order, idle, first, last = {}, {}, nil, nil
  for i, record in ipairs(records) do
    idle[i] = 0
    if record.start_ns then order[#order + 1] = i end
  end
  table.sort(order, function(a, b)
    local x, y = records[a].start_ns, records[b].start_ns
    return x < y or x == y and a < b
  end)
  for _, i in ipairs(order) do
    local record = records[i]
    local stop = record.start_ns + record.duration_us * 1e3
    if not first then first, last = record.start_ns, record.start_ns end
    idle[i] = math.max(0, record.start_ns - last) * 1e-3
    last = math.max(last, stop)
  end
  return idle, first and (last - first) * 1e-3 or 0
end

-- Sums over records: list of {key = key(label, record), launches, time_us, idle_us, records = positions}, in the
-- order of first occurrence, and by_key. `idle`: of attribute.idle.
function attribute.sums(records, labels, idle, key)
  local result = { by_key = {} }
  for i, record in ipairs(records) do
    local name = key(labels[i], record)
    local sum = result.by_key[name]
    if not sum then
      sum = { key = name, launches = 0, time_us = 0, idle_us = 0, records = {} }
      result.by_key[name], result[#result + 1] = sum, sum
    end
    sum.launches = sum.launches + 1
    sum.time_us = sum.time_us + (record.duration_us or 0)
    sum.idle_us = sum.idle_us + idle[i]
    sum.records[#sum.records + 1] = i
  end
  return result
end

return attribute
