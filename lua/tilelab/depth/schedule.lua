-- The order of a study's runs, and what of it is left after an interruption. Pure functions.
--
-- Whole runs follow each other: repetition outside, depth inside it, backends inside that. The
-- direction of the backends turns from depth to depth, and every even repetition is the mirror
-- image of the odd one: A1 B1 B2 A2 | A2 B2 B1 A1 for backends A, B and depths 1, 2. So the
-- backends form a palindrome (except for an odd number of depths repeated an odd number of times),
-- and with an even number of repetitions a steady drift (heat, clocks) shifts every backend and
-- depth by the same amount.

local schedule = {}

-- options: backends (names), layers (depths), repetitions.
-- Returns a list of {backend, layers, repetition, position}.
function schedule.build(options)
  local first = {}
  for i, depth in ipairs(options.layers) do
    local count = #options.backends
    for j = 1, count do
      local backend = options.backends[i % 2 == 1 and j or count + 1 - j]
      first[#first + 1] = {backend = backend, layers = depth}
    end
  end
  local runs = {}
  for repetition = 1, options.repetitions do
    for i = 1, #first do
      local cell = first[repetition % 2 == 1 and i or #first + 1 - i]
      runs[#runs + 1] = {backend = cell.backend, layers = cell.layers, repetition = repetition,
        position = #runs + 1}
    end
  end
  return runs
end

local function key(run)
  return string.format("%s/%s/%s", run.backend, math.tointeger(tonumber(run.layers)),
    math.tointeger(tonumber(run.repetition)))
end

-- "rapidgemm, 2 layers, repetition 1"
function schedule.name(run)
  return string.format("%s, %d layer%s, repetition %d", run.backend, run.layers,
    run.layers == 1 and "" or "s", run.repetition)
end

-- What comes after `count` updates of the run at `position`, in words.
local function following(runs, position, count, updates)
  if count == updates then position, count = position + 1, 0 end
  local run = runs[position]
  return run and string.format("update %d of %s", count + 1, schedule.name(run)) or "nothing"
end

-- What a study holds and lacks. rows: those of updates.tsv in file order, numbers or their text;
-- runs: of schedule.build; updates: how many a whole run has; newest(run, count): where a cut run of
-- `count` updates can go on, the update of a checkpoint or nil (may be left out).
-- Returns {complete = runs, cut = run or nil, from = update after which it goes on, 0 for a start,
-- remaining = runs in order, the cut one first, keep = rows without those that are measured again}; or
-- nil, message when the rows are not the start of this schedule.
function schedule.resume(rows, runs, updates, newest)
  local counts, by_key = {}, {}
  for _, run in ipairs(runs) do by_key[key(run)] = run end
  local position, keep = 1, {}
  for i, row in ipairs(rows) do
    local run = by_key[key(row)]
    if not run then
      return nil, string.format("row %d (backend %s, layers %s, repetition %s) is no run of this "
        .. "study: start over with --fresh, or give another --out", i, row.backend, row.layers,
        row.repetition)
    end
    if run.position == position + 1 and counts[position] == updates then position = run.position end
    local expected = (counts[run.position] or 0) + 1
    if run.position ~= position or tonumber(row.update) ~= expected or expected > updates then
      return nil, string.format("row %d is update %s of %s, where %s was to follow: the file was "
        .. "changed; start over with --fresh", i, row.update, schedule.name(run),
        following(runs, position, counts[position] or 0, updates))
    end
    counts[position] = expected
  end
  local result = {complete = {}, remaining = {}, keep = keep, from = 0}
  for i, run in ipairs(runs) do
    if counts[i] == updates then
      result.complete[#result.complete + 1] = run
    else
      if counts[i] then
        result.cut = run
        result.from = newest and newest(run, counts[i]) or 0
      end
      result.remaining[#result.remaining + 1] = run
    end
  end
  for i = 1, #result.complete * updates + result.from do keep[i] = rows[i] end
  return result
end

-- What must be equal for rows from before and after an interruption to belong to one study, in the
-- order in which a difference is reported: Lua patterns of provenance keys.
schedule.identity = {
  "^commit$", "^dirty$", "^flag_", "^device", "^driver$", "^cublaslt$", "^cudnn$", "^script_sha256$", "^lua_sha256$",
  "^kernel_sha256",
}

local function quoted(value)
  return value == nil and "not given" or "'" .. tostring(value) .. "'"
end

-- Compares two provenance tables (key -> text). Returns nil when they agree in every key of
-- schedule.identity, else a message that names the first difference.
function schedule.difference(recorded, present)
  local keys, seen = {}, {}
  for _, provenance in ipairs {recorded, present} do
    for name in pairs(provenance) do
      if not seen[name] then
        seen[name] = true
        keys[#keys + 1] = name
      end
    end
  end
  table.sort(keys)
  for _, pattern in ipairs(schedule.identity) do
    for _, name in ipairs(keys) do
      local before, now = recorded[name], present[name]
      if name:find(pattern) and tostring(before) ~= tostring(now) then
        return string.format("cannot resume: %s is %s now and was %s when the study began; start "
          .. "over with --fresh, or give another --out", name, quoted(now), quoted(before))
      end
    end
  end
  return nil
end

return schedule
