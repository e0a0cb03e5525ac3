-- The algorithms of dense GEMMs: timed once a shape, written, read and taken again. The library is made
-- up: its suggestions have names, of which some cannot run.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local gemm_choices = require "tilelab.model.gemm_choices"

-- A plan with these {name, time_us} as its suggestions.
local function plan(suggestions)
  local made = { heuristic = 1, tuned = 0 }
  function made.set_tunable(_, _, value) made.heuristic = value end
  function made.algorithm() return suggestions[made.heuristic] and suggestions[made.heuristic][1] end
  function made.tune()
    local times, best = {}, nil
    for i, suggestion in ipairs(suggestions) do
      times[i] = suggestion[2]
      if times[i] == times[i] and not (best and times[best] <= times[i]) then best = i end
    end
    made.heuristic, made.tuned = best, made.tuned + 1
    return { heuristic = best }, times
  end
  return made
end

local function tensor(dtype, ...) return { dtype = dtype, shape = { ... } } end

t.is(gemm_choices.key { a = tensor("bf16", 64, 32), b = tensor("bf16", 16, 32), d = tensor("fp32", 64, 16) },
  "nt 64 16 32 bf16 fp32", "what names a product: layout, sizes and types")
t.is(gemm_choices.key { layout = "tn", a = tensor("fp32", 32, 64), b = tensor("fp32", 32, 16),
  d = tensor("fp32", 64, 16) }, "tn 64 16 32 fp32 fp32", "and of a weight gradient")

local NAN = 0 / 0
local small, large = "nt 64 16 32 bf16 fp32", "nt 4096 16 32 bf16 fp32"
local suggested = { { "aa", 3 }, { "bb", NAN }, { "cc", 2 } }
local first, second, other = plan(suggested), plan(suggested), plan { { "dd", 1 } }
local gemms = { { plan = first, key = small }, { plan = second, key = small }, { plan = other, key = large } }

local choices = gemm_choices.new "there"
local missing = choices:apply(gemms)
t.ok(#missing == 2 and missing[1].plan == first and missing[2].plan == other, "one of each shape is missing")
for _, gemm in ipairs(missing) do choices:tune(gemm) end
t.is(#choices:apply(gemms), 0, "and then none")
t.ok(first.tuned == 1 and second.tuned == 0, "a shape is timed once")
t.is(first:algorithm() .. second:algorithm() .. other:algorithm(), "ccccdd", "all plans of a shape take the fastest")

local folder <close> = t.folder()
local path = folder / "gemm_choices.tsv"
choices:write(path, lab.provenance {})
local data = lab.record.read(path, gemm_choices.columns)
local text = {}
for _, row in ipairs(data.rows) do
  text[#text + 1] = table.concat({ row.m, row.heuristic, row.time_us, row.chosen, row.algorithm }, " ")
end
t.is(table.concat(text, ", "), "64 1 3.000 no aa, 64 2 - no bb, 64 3 2.000 yes cc, 4096 1 1.000 yes dd",
  "a row a suggestion, with its time")

local read = gemm_choices.read(path)
first, second, other = plan(suggested), plan { { "cc", 9 }, { "aa", 1 } }, plan { { "dd", 1 } }
gemms = { { plan = first, key = small }, { plan = second, key = small }, { plan = other, key = large } }
t.is(#read:apply(gemms), 0, "what was written is known when it is read")
t.is(first:algorithm() .. second:algorithm() .. other:algorithm(), "ccccdd", "also where the library's order changed")
t.ok(first.tuned + second.tuned + other.tuned == 0, "without a time being taken")
read:write(path, lab.provenance {})
t.is(#lab.record.read(path).rows, 4, "and written again as it was")

t.error(function() read:apply { { plan = plan { { "ee", 1 } }, key = small } } end,
  "gemm_choices.tsv: the library does not suggest the algorithm .* nt 64 16 32 bf16 fp32; .*%-%-fresh",
  "an algorithm that the library does not know any more")

local more = gemm_choices.new "elsewhere"
more:tune { plan = plan { { "aa", 1 } }, key = "nn 1 1 1 fp32 fp32" }
read:merge(more)
t.is(#read.order, 3, "choices of a checkpoint are taken over")
more:tune { plan = plan { { "aa", 1 } }, key = small }
t.error(function() read:merge(more) end, "gemm_choices.tsv and elsewhere choose different", "unless they contradict")

local function damaged(name, pattern, change)
  local content = t.read(path)
  t.write(folder / "bad.tsv", (content:gsub(change[1], change[2])))
  t.error(function() gemm_choices.read(folder / "bad.tsv") end, pattern, name)
end
damaged("no algorithm is chosen", "no algorithm is chosen for the product nt 4096", { "yes\tdd", "no\tdd" })
damaged("a suggestion is missing", "suggestion 3 of the product nt 64 .*, where 2", { "[^\n]*\tbb\n", "" })
t.done()
