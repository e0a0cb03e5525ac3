-- The grouped GEMM benchmark: its problems, its schema, and the figures of merit that its records are held
-- against, on made-up rows.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local core = require "tilelab_core"
local expression = require "tilelab.expression"
local grouped = require "tilelab.grouped"
local made_up = dofile("tests/lua/made_up.lua")
local problem = require "tilelab.grouped_gemm.problem"
local rows = require "tilelab.rows"
local summary = require "tilelab.grouped_gemm.summary"

local folder <close> = t.folder()
local real = lab.recorded.folder
lab.recorded.folder = folder / "records"
print = function() end -- luacheck: ignore (what publish says is no TAP)

local CPU_VARIANTS = { "cpu_ragged", "cpu_padded" }

-- Problems.

local list = problem.grid { ops = { "fwd_w13", "dgrad_w13" }, experts = { 4, 33 },
  distributions = grouped.distributions, rows = 1000, shrink = 16 }
t.is(#list, 12, "every combination")
local first, last = list[1], list[12]
t.is(("%s %d %s %s %d %d"):format(first.op, first.experts, first.distribution, first.layout, first.n, first.k),
  "fwd_w13 4 uniform nt 160 192", "widths are shrunk")
t.is(("%s %s %d %d"):format(last.op, last.layout, last.n, last.k), "dgrad_w13 nn 192 160", "of data gradients too")
t.is(first.padded_rows, 1024, "rows as padded")
t.is(table.concat(list[6].sizes, " "), table.concat(last.sizes, " "), "all products see the same sizes")
t.is(problem.size_row(first).sizes, "250 250 250 250", "as others read them")
local gradients = problem.grid { ops = { "wgrad_w13", "wgrad_w2" }, experts = { 4, 33 },
  distributions = { "multinomial", "zipf" }, rows = 1000, shrink = 16 }
local gradient = gradients[8]
t.is(("%s %s %d %d %s"):format(gradient.op, gradient.layout, gradient.m, gradient.n, tostring(gradient.k)),
  "wgrad_w2 tn 192 80 nil", "weight gradients have no k but the groups")
t.is(problem.size_row(gradient).k .. problem.size_row(first).m, "--", "which files say so")

local skewed = problem.new { op = "fwd_w2", experts = 33, rows = 1000, distribution = "zipf", exponent = 1.2,
  shrink = 16 }
t.is(problem.name(skewed), "fwd_w2, 33 experts, zipf 1.2", "a skew of its own is in the name")
local function most(sizes) return math.max(table.unpack(sizes)) end
t.ok(most(skewed.sizes) > most(grouped.sizes("zipf", 1000, 33, 0)), "and in the sizes")
t.is(table.concat(grouped.sizes("zipf", 1000, 33, 5, 0), " "), table.concat(grouped.sizes("multinomial", 1000, 33, 5),
  " "), "exponent 0 is no skew")

-- Steps keep what the step before had.

local steps = require("tilelab.grouped_gemm.ladder").entries { { "plain", variant = "smxx_plain", rounds = 6 },
  { "first", variant = "sm90_ragged", stages = 2, band = 1 }, { "deeper", stages = 6 }, { "wider", band = 8 } }
t.is(#steps, 5, "the dense product and each step")
t.is(("%s %s %d"):format(steps[2].variant, tostring(next(steps[2].tunables)), steps[2].rounds), "smxx_plain nil 6",
  "the plain kernel has no tunables")
local wider = steps[5]
t.is(("%s %d %d %s %d"):format(wider.variant, wider.tunables.stages, wider.tunables.band, tostring(wider.rounds),
  wider.step), "sm90_ragged 6 8 nil 4", "the last step has all")
t.is(steps[4].tunables.band, 1, "the one before does not")

-- Contenders of all problems share memory and agree with the reference.

do
  local pool = problem.pool(lab.device "cpu", list)
  for _, variant in ipairs(CPU_VARIANTS) do
    local agree = 0
    for _, p in ipairs(list) do agree = agree + (pool:contenders(variant, p)[1]:check() and 1 or 0) end
    t.is(agree, #list, variant .. " agrees everywhere")
  end
  local contender = pool:contenders("cpu_padded", list[5])[1]
  t.is(contender.flops, 2 * 1000 * 160 * 192, "FLOPs of real rows")
  t.is(contender.padded_flops, 2 * list[5].padded_rows * 160 * 192, "and of padded ones")
  contender.parts.unpad = nil
  local pass, text = contender:check()
  t.ok(not pass and text:find "in group %d+, row %d+, column %d+", "rows that were not copied back are found")
  local missing, reason = pool:contenders("sm90_padded", list[1])
  t.ok(missing == nil and type(reason) == "string", "a GPU's variant on the CPU: a reason")
end

-- Weight gradients, with both betas where there are two, beside other products in the same memory.

do
  local pool = problem.pool(lab.device "cpu", table.move(gradients, 1, #gradients, #list + 1, list))
  local names, agree = {}, 0
  for i, p in ipairs(gradients) do
    for _, variant in ipairs(CPU_VARIANTS) do
      for _, contender in ipairs(pool:contenders(variant, p)) do
        agree = agree + (contender:check() and 1 or 0)
        if i == 1 then names[#names + 1] = contender.name end
      end
    end
    pool:contenders("cpu_ragged", list[1])[1]:check()
  end
  t.is(table.concat(names, ", "), "cpu_ragged beta 0, cpu_ragged beta 1, cpu_padded beta 1", "what is timed")
  t.is(agree, 3 * #gradients, "weight gradients agree everywhere")
  local set, adds = table.unpack(pool:contenders("cpu_ragged", gradients[1]))
  local padded = pool:contenders("cpu_padded", gradients[1])[1]
  t.is(("%d %d %d"):format(set.flops, adds.beta, padded.padded_flops), ("%d 1 %d"):format(2 * 1000 * 160 * 192,
    2 * gradients[1].padded_rows * 160 * 192), "FLOPs")
  t.ok(padded.parts.pad and padded.parts.zero and not padded.parts.unpad and not set.parts.zero, "parts of padding")
  local begin = adds.begin
  adds.begin = function() adds.y:fill(0) end
  t.ok(not adds:check(), "a sum that did not begin where it should is found")
  adds.begin, set.begin = begin, begin
  t.ok(adds:check() and set:check(), "and beta 0 does not care")
  padded:check()
  padded.parts.pad = nil
  pool.padded_x:poison()
  t.ok(not padded:check(), "operands that were not padded are found")
end

-- Figures of merit. The made-up shares fall by 0.01 from product to product and by distribution.

local data = made_up.record("grouped_gemm", folder / "out")
local OPS = " op=fwd_w13,fwd_w2,dgrad_w2,dgrad_w13"
local function value(text, want)
  local ok, got = pcall(expression.value, text, data)
  t.ok(ok and math.abs(got - want) < 1e-9, text)
  if not ok or math.abs(got - want) >= 1e-9 then io.stdout:write("# ", tostring(got), "\n") end
end
value("count where variant=sm90_ragged,sm90_padded,cublaslt_dense,cublaslt_loop" .. OPS, 96)
value("min share_of_dense where variant=sm90_ragged experts=32 distribution=multinomial" .. OPS, 0.97 - 0.02 - 0.03)
value("min share_of_dense where variant=sm90_ragged experts=128 distribution=zipf" .. OPS, 0.86 - 0.03 - 0.03)
value("min (share_of_dense * tflops_padded / tflops) where variant=sm90_padded experts=128 distribution=multinomial"
  .. OPS, (0.66 - 0.02 - 0.03) * 1.25)
local ratio = 1
for o = 0, 3 do ratio = ratio * (0.95 - 0.01 * o) / (0.88 - 0.01 * o) end
value("geomean share_of_dense of variant=sm90_ragged over variant=sm90_padded where experts=32 "
  .. "distribution=multinomial" .. OPS, ratio ^ 0.25)
value("min share_of_dense of variant=sm90_ragged over variant=torch_grouped_mm where experts=128 "
  .. "distribution=multinomial" .. OPS, 0.84 / 0.61)
value("max call_us where variant=sm90_ragged" .. OPS, 4.5)
value("count where op=wgrad_w13,wgrad_w2", 60)
value("min (store_us / time_us) where variant=sm90_ragged beta=0 experts=128 distribution=multinomial "
  .. "op=wgrad_w13,wgrad_w2", 502 / 662)
value("value (time_us + zero_us) where variant=sm90_padded op=wgrad_w13 experts=32 distribution=multinomial / value "
  .. "time_us where variant=sm90_ragged beta=0 op=wgrad_w13 experts=32 distribution=multinomial", (1266 + 222) / 879)
value("min share_of_dense of variant=sm90_ragged beta=1 over variant=sm90_padded beta=1 where experts=128 "
  .. "distribution=multinomial op=wgrad_w13,wgrad_w2", 3011 / 2185)

-- The summary.

local text = summary.text(data)
t.like(text, "\nfwd_w13 +32  multinomial +750 %(0%.950%) +695 %(0%.880%) ", "throughputs with their shares")
t.like(text, "\nsm90_ragged over sm90_padded, 128 experts, zipf: 1%.%d+\n", "geometric means")
t.like(text, "\nsm90_ragged over torch_grouped_mm, 32 experts, uniform: 1%.%d+\n", "over torch as well")
t.is(select(2, text:gsub("\n[%w_]+ over ", "")), 18, "one for each number of experts and distribution")
t.like(text, "\nop +experts +distribution +sm90_ragged +sm90_ragged, beta 1 +sm90_padded, beta 1 +cublaslt_loop",
  "weight gradients have a table of their own")
t.like(text, "\nwgrad_w2 +128 +multinomial +389 %(0%.483%) +230 %(0%.286%) ", "with both betas")
t.like(text, "\nsm90_ragged over sm90_padded, weight gradients that are added, 128 experts, zipf: 1%.39%d\n",
  "and a factor of their own")
table.remove(data.rows, 2)
t.ok(not summary.text(data):find("sm90_ragged over sm90_padded, 32 experts, uniform", 1, true),
  "none where a product lacks one of the two")

-- The schema.

local path = lab.recorded.path("grouped_gemm", "cpu")
local whole = t.read(path)
local function refused(pattern, with, message, name)
  t.write(folder / "grouped_gemm.tsv", (whole:gsub(pattern, with, 1)))
  local ok, err = pcall(lab.recorded.read, folder / "grouped_gemm.tsv")
  t.ok(not ok and core.error_kind(err) == "refused" and tostring(err):find(message) ~= nil, name)
end
refused("\tsm90_ragged\t", "\tsm90_fast\t", "column 'variant' holds 'sm90_fast'", "a variant that is none")
refused("\nfwd_w13\t", "\nfwd_w3\t", "column 'op' holds 'fwd_w3', and should hold one of", "a product that is none")
refused("\tuniform\t", "\tflat\t", "column 'distribution' holds 'flat'", "a distribution that is none")
refused("\tpower_w\n", "\twatts\n", "the columns are", "another column")

-- Figures of a run of weight gradients alone, and of the other products alone.

local all = data.rows
for pattern, count in pairs { ["^wgrad"] = 2, ["^[fd]"] = 5 } do
  data.rows = {}
  for _, row in ipairs(all) do
    if row.op:find(pattern) then data.rows[#data.rows + 1] = row end
  end
  t.is(#lab.draw.record(data, { folder = folder / "figures" }), count, pattern .. ": figures")
end
data.rows = all
lab.draw.record(data, { folder = folder / "figures" })
t.like(t.read(folder / "figures/grouped_gemm_32.caption.txt"), "SM at 1610 to 1640 MHz", "the clock of the rows drawn")
for _, row in ipairs(data.rows) do
  if row.variant:find "^torch" then row.sm_clock_mhz = "999" end
end
lab.draw.record(data, { folder = folder / "figures" })
t.ok(not t.read(folder / "figures/grouped_gemm_32.caption.txt"):find "999", "not of torch's, which are not drawn there")
t.like(t.read(folder / "figures/grouped_gemm_share.caption.txt"), "SM at 999 to", "but where they are")

-- Where every other variant was wrong or left out, the dense product is drawn alone or nothing is.

for experiment, count in pairs { grouped_gemm = 3, rows_per_expert = 2, raster = 0, gemm_ladder = 0,
  wgrad_epilogue = 0 } do
  local alone = made_up.record(experiment, folder / "out")
  alone.rows = rows.where(alone.rows, { variant = "cublaslt_dense" })
  local ok, drawn = pcall(lab.draw.record, alone, { folder = folder / "alone" })
  t.ok(ok and #drawn == count, ("%s of the dense product alone: %s"):format(experiment, ok and #drawn or drawn))
end
lab.recorded.folder = real
t.done()
