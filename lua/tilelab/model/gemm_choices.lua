-- Which of its library's algorithms each dense GEMM takes. The library suggests several for a shape;
-- they are timed once, and every model of a study takes the fastest, in every backend and layer and
-- after every interruption: algorithms differ in the order of their sums, and so in the last bits.
--
-- The file: a row a suggestion; time_us is "-" for one that cannot run. "algorithm" is the library's own
-- description, by which another version's suggestions are searched; the same version makes the same
-- suggestions in the same order.

local core = require "tilelab_core"
local lab = require "tilelab"

local choices = {}

choices.columns = { "layout", "m", "n", "k", "in", "out", "heuristic", "time_us", "chosen", "algorithm" }

local KEY = 6 -- of them, how many name the product

local Choices = {}
Choices.__index = Choices

-- None yet. `path`: where they will be, for messages.
function choices.new(path) return setmetatable({ entries = {}, order = {}, path = path }, Choices) end

-- What a GEMM's arguments have in common with those that share its choice.
function choices.key(arguments)
  local a, b, d = arguments.a, arguments.b, arguments.d
  local layout = arguments.layout or "nt"
  local m, n = d.shape[1], d.shape[2]
  local k = layout == "tn" and a.shape[1] or a.shape[2]
  return table.concat({ layout, m, n, k, b.dtype, d.dtype }, " ")
end

local function add(self, key, entry)
  if not self.entries[key] then self.order[#self.order + 1] = key end
  self.entries[key] = entry
end

local MOST = 8 -- suggestions

-- Sets the plan to a chosen algorithm: the suggestion that it was, or where the library has it now.
-- False where it is not suggested any more. same_library: the one that it was chosen with.
local function set(plan, entry, same_library)
  for offset = 0, MOST - 1 do
    plan:set_tunable("heuristic", (entry.heuristic - 1 + offset) % MOST + 1)
    if plan:algorithm() == entry.algorithm then return true end
  end
  plan:set_tunable("heuristic", entry.heuristic)
  return same_library and plan:algorithm() ~= nil
end

-- gemms: list of {plan, key}. Sets those whose choice is known; returns the others, one of each key.
-- Raises where the library does not know an algorithm any more.
function Choices:apply(gemms)
  local missing, seen, library = {}, {}, core.build().cublaslt
  local same = self.library == library and library ~= ""
  for _, gemm in ipairs(gemms) do
    local entry = self.entries[gemm.key]
    if entry and not set(gemm.plan, entry, same) then
      lab.usage_error("%s: the library does not suggest the algorithm that was chosen for the product %s; take "
        .. "the library that it was chosen with, or start over with --fresh", self.path, gemm.key)
    elseif not entry and not seen[gemm.key] then
      seen[gemm.key] = true
      missing[#missing + 1] = gemm
    end
  end
  return missing
end

-- Takes over what `other` has and this lacks.
function Choices:merge(other)
  for _, key in ipairs(other.order) do
    local own = self.entries[key]
    if own and own.algorithm ~= other.entries[key].algorithm then
      lab.usage_error("%s and %s choose different algorithms for the product %s: remove the one that does not belong "
        .. "to the study, or start over with --fresh", self.path, other.path, key)
    end
    if not own then add(self, key, other.entries[key]) end
  end
end

-- Times the suggestions for one {plan, key} on the plan's tensors, and notes the fastest.
function Choices:tune(gemm)
  local plan = gemm.plan
  local picked, times = plan:tune()
  local entry = { heuristic = picked.heuristic, trials = {} }
  for heuristic, time_us in ipairs(times) do
    plan:set_tunable("heuristic", heuristic)
    entry.trials[heuristic] = { time_us = time_us == time_us and ("%.3f"):format(time_us) or "-",
      algorithm = plan:algorithm() }
  end
  entry.algorithm = entry.trials[entry.heuristic].algorithm
  plan:set_tunable("heuristic", entry.heuristic)
  self.library = core.build().cublaslt
  add(self, gemm.key, entry)
end

-- Writes the file, the earlier one being there until it is whole. provenance: text.
function Choices:write(path, provenance)
  local record = lab.check(lab.record.create(path .. ".new", provenance, choices.columns))
  for _, key in ipairs(self.order) do
    local entry, row, i = self.entries[key], {}, 0
    for word in key:gmatch "%S+" do
      i = i + 1
      row[choices.columns[i]] = word
    end
    for heuristic, trial in ipairs(entry.trials) do
      row.heuristic, row.time_us, row.algorithm = heuristic, trial.time_us, trial.algorithm
      row.chosen = heuristic == entry.heuristic and "yes" or "no"
      record:row(row)
    end
  end
  lab.check(record:close())
  lab.check(os.rename(path .. ".new", path))
end

-- Reads what `write` wrote; raises file:line for what is wrong with it.
function choices.read(path)
  local data, self = lab.record.read(path, choices.columns), choices.new(path)
  self.library = data.provenance.cublaslt
  for _, row in ipairs(data.rows) do
    local words = {}
    for i = 1, KEY do words[i] = row[choices.columns[i]] end
    local key, heuristic = table.concat(words, " "), math.tointeger(data:number(row, "heuristic"))
    if not self.entries[key] then add(self, key, { trials = {} }) end
    local entry = self.entries[key]
    if heuristic ~= #entry.trials + 1 then
      lab.usage_error("%s: suggestion %s of the product %s, where %d was to follow: the file was changed; start over "
        .. "with --fresh", data:where(row), row.heuristic, key, #entry.trials + 1)
    end
    entry.trials[heuristic] = { time_us = row.time_us, algorithm = row.algorithm }
    if row.chosen == "yes" then entry.heuristic, entry.algorithm = heuristic, row.algorithm end
  end
  for _, key in ipairs(self.order) do
    if not self.entries[key].heuristic then
      lab.usage_error("%s: no algorithm is chosen for the product %s: the file was changed; start over with --fresh",
        path, key)
    end
  end
  return self
end

return choices
