-- How long a study took, beyond its updates: the host's time of each run from the building of its model to its
-- last update, in runs.tsv beside updates.tsv. A run that went on from a checkpoint has none.

local lab = require "tilelab"

local wall = {}

local COLUMNS = { "backend", "layers", "repetition", "wall_s" }

local function path_of(out) return out .. "/runs.tsv" end

local function read(out)
  return lab.stat(path_of(out)) and lab.record.read(path_of(out), COLUMNS).rows or {}
end

local function is(row, run)
  return row.backend == run.backend and tonumber(row.layers) == run.layers
    and tonumber(row.repetition) == run.repetition
end

-- Notes that `run` (schedule.build) took so many seconds, or nil where nobody knows; the first run of a study starts
-- the file anew.
function wall.note(out, run, seconds)
  local rows = run.position > 1 and read(out) or {}
  local record = lab.check(lab.record.create(path_of(out) .. ".new", "", COLUMNS))
  for _, row in ipairs(rows) do
    if not is(row, run) then record:row(row) end
  end
  if seconds then
    record:row { backend = run.backend, layers = run.layers, repetition = run.repetition,
      wall_s = ("%.3f"):format(seconds) }
  end
  lab.check(record:close())
  lab.check(os.rename(path_of(out) .. ".new", path_of(out)))
end

-- Minutes of all `runs` together; nil where one is not noted.
function wall.minutes(out, runs)
  local rows, sum = read(out), 0
  for _, run in ipairs(runs) do
    local found
    for _, row in ipairs(rows) do found = found or is(row, run) and row end
    if not found then return nil end
    sum = sum + tonumber(found.wall_s)
  end
  return sum / 60
end

return wall
