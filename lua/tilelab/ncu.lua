-- The same launches under Nsight Compute's command line, for a second opinion on every counter.

local lab = require "tilelab"
local fields = require "tilelab.fields"
local shell = require "tilelab.shell"

local ncu = {}

-- "a","b ""c""","1,234" -> list of cells.
local function cells(line)
  local list, at = {}, 1
  while at <= #line do
    local cell, next_at
    if line:sub(at, at) == '"' then
      local stop = at + 1
      while true do
        stop = line:find('"', stop, true)
        if not stop then return nil end
        if line:sub(stop + 1, stop + 1) ~= '"' then break end
        stop = stop + 2
      end
      cell, next_at = line:sub(at + 1, stop - 1):gsub('""', '"'), stop + 2
    else
      local stop = line:find(",", at, true) or #line + 1
      cell, next_at = line:sub(at, stop - 1), stop + 1
    end
    list[#list + 1] = cell
    at = next_at
  end
  return list
end

-- The CSV that ncu prints with --metrics, one row a kernel and metric -> {metric = number} of the
-- kernel with that name; nil, message where there is none. Lines before the header are the program's.
function ncu.parse(text, kernel)
  local columns, values, seen = nil, {}, false
  for line in text:gmatch("[^\r\n]+") do
    local row = line:sub(1, 1) == '"' and cells(line)
    if row and not columns then
      local found = {}
      for i, name in ipairs(row) do found[name] = i end
      if found["Metric Name"] and found["Metric Value"] then columns = found end
    elseif row then
      if row[columns["Kernel Name"]]:find(kernel, 1, true) then
        seen = true
        values[row[columns["Metric Name"]]] = tonumber((row[columns["Metric Value"]]:gsub(",", "")))
      end
    end
  end
  if not columns then return nil, "ncu printed no table: " .. (text:match("==ERROR==.*") or text):sub(1, 400) end
  if not seen then return nil, ("ncu saw no kernel named %s"):format(kernel) end
  return values
end

-- Runs the script of this process again, under ncu and for one kernel.
local function count(program, kernel, names)
  local command = ("%s --csv --print-units base --clock-control none --metrics %s %s %s --only %s 2>&1")
    :format(shell.quote(program), table.concat(names, ","), shell.quote(shell.command()[1]),
      shell.quote(arg[0]), kernel)
  local pipe = io.popen(command)
  local text = pipe:read("a")
  pipe:close()
  return ncu.parse(text, kernel)
end

-- What a metric is, for how closely it must agree. What is per second or a share of elapsed cycles
-- depends on the clock, and on what a tool takes for the beginning and the end.
function ncu.kind(metric)
  if metric:find("per_second", 1, true) or metric:find("elapsed", 1, true) then return "rate" end
  if metric:find("warps_active", 1, true) then return "occupancy" end
  if metric:find("pct", 1, true) then return "cycle_ratio" end
  return "count"
end

local function ratio(ours, theirs)
  if theirs == 0 then return ours == 0 and 1 or "-" end
  return ours / theirs
end

-- settings: device, launches = {kernel name = {plan = arguments of lab.plan, groups =, metrics =}}, ncu =
-- program, out = record.
function ncu.compare(settings)
  for _, kernel in ipairs(fields.names(settings.launches)) do
    local launch = settings.launches[kernel]
    local plan = lab.check(lab.plan(launch.plan))
    local names = lab.metrics.collect { groups = launch.groups, metrics = launch.metrics }
    local ours = lab.check(lab.profile { device = settings.device, metrics = names, quiet = true,
      run = function() plan:launch() end })
    lab.profile_close() -- ncu needs the counters
    local theirs, message = count(settings.ncu, kernel, names)
    if not theirs then lab.usage_error("--ncu %s: %s", settings.ncu, message) end
    for _, name in ipairs(names) do
      if ours[name] and theirs[name] then
        settings.out:row { kernel = kernel, metric = name, kind = ncu.kind(name), tilelab = ours[name],
          ncu = theirs[name], ratio = ratio(ours[name], theirs[name]) }
        print(("%-16s %-74s %16.8g %16.8g"):format(kernel, name, ours[name], theirs[name]))
      end
    end
  end
end

return ncu
