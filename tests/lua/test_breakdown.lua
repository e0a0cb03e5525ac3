-- Where an update's time goes: records to launches, idle time, classes, the split of a gain, and the records
-- that come of it. No GPU: records are made up.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local attribute = require "tilelab.breakdown.attribute"
local classes = require "tilelab.breakdown.classes"
local expression = require "tilelab.expression"
local made_up = dofile("tests/lua/made_up.lua")
local rows = require "tilelab.breakdown.rows"
local split = require "tilelab.breakdown.split"

local MARKS = { open = 8, close = 16 }

local function kernel(symbol, start_ns, duration_us)
  return { kind = "kernel", symbol = symbol, start_ns = start_ns, duration_us = duration_us or 1 }
end
local function memset(bytes, start_ns)
  return { kind = "memset", symbol = "memset", bytes = bytes, start_ns = start_ns or 1, duration_us = 1 }
end
local open, close = memset(8), memset(16)

-- Labels.

local records = { memset(100), open, kernel "a", kernel "b", close, memset(24), open, memset(100), close, open, close }
local kept, labels = attribute.labels(records, { "one", "two", "three" }, MARKS)
t.is(#kept, 5, "marks are no records of the update")
t.is(("%s %s %s %s %s"):format(labels[1], labels[2], labels[3], labels[4], labels[5]), "false one one false two",
  "what lies between marks is of that launch; one may launch nothing")
local function refused(list, log, pattern, name)
  local good, message = attribute.labels(list, log, MARKS)
  t.ok(good == nil and message:find(pattern) ~= nil, name)
end
refused({ open, kernel "a", close }, { "one", "two" }, "1 launches are marked .* 2 were made", "a mark is missing")
refused({ open, kernel "a" }, { "one" }, "1 launches are marked", "an end is missing")
refused({ open, open, close }, { "one", "two" }, "record 2: a launch begins inside of launch 1", "marks that nest")
refused({ close }, {}, "record 1: an end without a launch", "an end alone")

-- Updates without marks.

t.ok(attribute.check({ kernel "x", memset(100), kernel "a", kernel "b", memset(24), memset(100) }, 2, kept),
  "the same records again, from the second on")
local function differs(list, pattern, name)
  local good, message = attribute.check(list, 1, kept)
  t.ok(good == nil and message:find(pattern) ~= nil, name)
end
differs({ memset(100), kernel "b" }, "record 2 of the update is b, where a was launched", "another kernel")
differs({ memset(101) }, "record 1 of the update is memset of 101 bytes, where memset of 100", "another size")
differs({ memset(100), kernel "a" }, "end before number 3 of the update, b", "too few")

-- Idle time.

local idle, span = attribute.idle { kernel("a", 1000, 5), kernel("b", 4000, 1), kernel("c", 8000, 2),
  { kind = "kernel", symbol = "no time stamp" }, kernel("d", 10000, 1), kernel("e", 9000, 0.5) }
t.is(table.concat(idle, " "), "0.0 0.0 2.0 0 0.0 0.0", "a gap counts before what ends it; kernels may overlap")
t.is(span, 10.0, "from the first start to the last end")
t.is(select(2, attribute.idle {}), 0, "nothing ran")

-- Classes.

t.is(classes.of({ op = "m_grouped_gemm" }, { layout = "nt" }) .. " " .. classes.of({ op = "m_grouped_gemm" },
  { layout = "nn" }) .. " " .. classes.of(nil) .. " " .. classes.of({ op = "new" }, {}),
  "grouped_fprop grouped_dgrad host_counts other", "classes by operation and layout")
for _, operation in ipairs(lab.operations()) do
  local name = classes.of({ op = operation.name }, {})
  local known = false
  for _, class in ipairs(classes.list) do known = known or class == name end
  t.ok(known, operation.name .. ": " .. name .. " is a class that is shown")
end
t.is(table.concat(classes.passes_of { { phase = "embedding fprop" }, { phase = "padding" }, { phase = "head bprop" },
  { phase = "padding" } }, " "), "forward forward backward backward", "padding is of the pass that it lies in")
local function product(op, layout, shape)
  return classes.product({ op = op }, { layout = layout, d = { shape = shape } }, 80)
end
t.is(table.concat({ product("m_grouped_gemm", "nt", { 9, 160 }), product("m_grouped_gemm", "nt", { 9, 192 }),
  product("m_grouped_gemm", "nn", { 9, 80 }), product("m_grouped_gemm", "nn", { 9, 192 }),
  product("k_grouped_gemm", nil, { 8, 160, 192 }), product("k_grouped_gemm", nil, { 8, 192, 80 }) }, " "),
  "fwd_w13 fwd_w2 dgrad_w2 dgrad_w13 wgrad_w13 wgrad_w2", "names of products")
do -- real rows only
  local plan = { op = "m_grouped_gemm", flops = function() return 1200 end,
    bytes = function() return 1000 + 240 + 480 end }
  local function rows_of(count, bytes) return { shape = { count, 4 }, bytes = bytes } end
  local args = { a = rows_of(12, 240), b = { shape = { 12, 4, 4 }, bytes = 1000 }, d = rows_of(12, 480) }
  args.b.shape[1] = 3
  local flops, bytes = classes.logical(plan, args, { slots = 10, rows = { [12] = true } })
  t.ok(math.abs(flops - 1000) < 1e-9 and math.abs(bytes - (1000 + 200 + 400)) < 1e-9, "pads are no work")
  plan.op = "combine"
  t.is(classes.logical(plan, args, { slots = 10, rows = { [12] = true } }), 1200, "what counts slots already stays")
end

-- Rows of a step.

local plan = { op = "rmsnorm", flops = function() return 4e6 end, bytes = function() return 4e6 end }
local label = { plan = plan, args = {}, pass = "forward", class = "norm", phase = "attention fprop" }
local step = { log = { label }, layout = { slots = 1, rows = {} }, pattern = { memset(3000), kernel "n" },
  labels = { false, label } }
local recorded = { updates = 2, copy_gbps = 4000, labels = { false, label, false, label },
  records = { memset(3000, 1000), kernel("n", 3000, 2), memset(3000, 6000), kernel("n", 7000, 2) } }
local list = rows.breakdown(step, recorded, { [label] = { tensor_active = 0, achieved_occupancy = 60 } }, { 5, 4, 6 })
t.is(#list, 4, "a row a class, the whole, and what was not recorded")
local norm, zeroing, all, unrecorded = list[1], list[2], list[3], list[4]
t.is(("%s %s %d %g %g %g %g"):format(norm.pass, norm.kernel_class, norm.launches, norm.time_us, norm.logical_gbps,
  norm.copy_ratio, norm.occupancy_pct), "forward norm 1 2 2000 0.5 60", "a class of one launch an update")
t.is(("%s %s %g %s %s"):format(zeroing.pass, zeroing.kernel_class, zeroing.logical_gbps, zeroing.copy_ratio,
  zeroing.occupancy_pct), "other zeroing 3 - -", "a memset has its own bytes, and no counters")
t.is(("%g %g %g"):format(all.time_us, all.idle_pct, norm.idle_pct + zeroing.idle_pct), "4 25 25",
  "idle time is that of the classes, added up")
t.is(unrecorded.time_us, 5.0, "the host's time without records: the median")
local sum = 0
for i = 1, 2 do sum = sum + list[i].share_of_update + list[i].idle_pct / 100 end
t.ok(math.abs(sum - 1) < 1e-12, "shares and idle time are the whole update")
t.is(rows.breakdown(step, recorded, nil, { 1 })[1].occupancy_pct, "-", "without counters")
local phases = rows.timeline(step, recorded)
t.is(("%d %s %g %s %g %g"):format(#phases, phases[1].phase, phases[1].stop_us, phases[2].phase, phases[2].start_us,
  phases[2].stop_us), "2 zeroing 1 attention fprop 1 3", "phases of the last update, from its first record")
local pair = { time_us = 100, mhz = 1500 }
local cycles = rows.cycles { { op = "fwd_w2", layer = 1, variant = "v", step = { { time_us = 110, mhz = 1500 } },
  alone = { pair } } }[1]
t.is(("%g %g %g"):format(cycles.step_kcycles, cycles.alone_kcycles, cycles.cycles_ratio), "165 150 1.1", "cycles")

-- The split.

local function of(layers, pass, class, time_us, idle_pct)
  return { layers = layers, pass = pass, kernel_class = class, time_us = time_us, idle_pct = idle_pct or 0 }
end
local cost = split.layer({ of(1, "forward", "grouped_fprop", 100), of(2, "forward", "grouped_fprop", 220),
  of(1, "other", "zeroing", 10), of(2, "other", "zeroing", 30), of(1, "update", "all", 125, 12),
  of(2, "update", "all", 275, 10), of(2, "update", "unrecorded", 999) }, 10)
t.is(("%g %g %g %g %g"):format(cost["grouped GEMM"], cost.zeroing, cost.idle, cost.other, cost.total), "12 2 1.25 0 15",
  "the deeper model less the shallower, a token")
t.is(split.layer({ of(1, "update", "all", 1) }, 10), nil, "one depth has no difference")

-- Records.

local folder <close> = t.folder()
local real = lab.recorded.folder
lab.recorded.folder = folder / "records"
print = function() end -- luacheck: ignore (what publish says is no TAP)
local data = made_up.record("layer_breakdown", folder / "out")
local text = lab.recorded.module("layer_breakdown").text(data)
t.like(text, "grouped GEMM +1%.0223 +1%.0939 +1%.1246 +%+", "the table of the split")
t.like(text, "padding copies +0%.0000 +0%.0000 +0%.1373 +%+0%.00 +%+%d", "padding is what the copies cost")
t.is(expression.value("max idle_pct where backend=rapidgemm pass=update kernel_class=all", data) < 1, true, "idle")
local files = lab.draw.record(data, { folder = folder / "figures" })
t.is(#files, 4, "time of a layer, and counters of each backend")
t.like(t.read(folder / "figures/layer_time.dat"), "grouped GEMM", "parts by kind of work")
local parts = t.read(folder / "figures/layer_time.dat")
t.ok(parts:find("padding, zeroing, counts", 1, true) and parts:find("idle", 1, true),
  "what padding costs is apart from waiting")
t.like(t.read(folder / "figures/layer_counters_rapidgemm.dat"), "dense gemm, backward", "counters by class and pass")
lab.recorded.folder = real
t.done()
