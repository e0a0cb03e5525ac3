-- The scale-swizzle study without a GPU: kernels of the CPU in the place of a GPU's, made-up records of their
-- launches and made-up counters; then its parts, one by one.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local limits = require "tilelab.scale_swizzle.limits"
local problem = require "tilelab.scale_swizzle.problem"
local rows = require "tilelab.rows"
local settings = require "tilelab.scale_swizzle.settings"
local study = require "tilelab.scale_swizzle.study"
local timing = require "tilelab.scale_swizzle.timing"

local folder <close> = t.folder()
local cpu = lab.device "cpu"

-- Problems.

local p = problem.new { grouping = "k_groups", rows = 300, columns = 96, groups = 5 }
t.is(#p.ends, 5, "an end for each group")
t.is(p.ends[5], 96, "the last group ends with the columns")
t.is(p.input_bytes, 300 * 96, "bytes of the input")
t.ok(p.output_bytes >= 384 * 96 and p.output_bytes <= p.room, "the output is padded, and fits")
t.is(problem.name(p), "k_groups (300,96) G=5", "name")
local tall = problem.new { grouping = "m_groups", rows = 300, columns = 10, groups = 5 }
t.is(tall.output_bytes % (128 * 12), 0, "rows and columns of m_groups are padded")
local slices = problem.new { grouping = "per_group_3d", rows = 130, columns = 9, groups = 3 }
t.is(slices.output_bytes, 3 * 256 * 12, "slices are padded one by one")
t.is(problem.new { grouping = "dense", rows = 130, columns = 9, groups = 1 }.bytes, 130 * 9 + 256 * 12, "dense")

-- Settings.

local seen, count = {}, 0
for _, setting in ipairs(settings.sweep(p)) do
  local tunables = setting.tunables
  if setting.variant == "sm90_tma" then tunables.num_stages, tunables.blocks_per_multiprocessor = 2, 4 end
  tunables.load_bytes = tunables.load_bytes or 16
  local key = ("%s %d %s"):format(setting.variant, tunables.block_threads,
    tostring(settings.tiles(p, setting.variant, tunables)))
  t.ok(not seen[key], key .. " is one row")
  seen[key], count = true, count + 1
end
t.ok(count > 30, "settings of K groups")
t.is(settings.tiles(p, "smxx_registers", { block_threads = 128, load_bytes = 16 }), 16, "tiles of a block")
t.is(settings.tiles(p, "smxx_registers", { block_threads = 128, load_bytes = 8 }), 8, "half with half the bytes")
t.is(settings.tiles(p, "smxx_windows", { block_threads = 128, window_tiles = 2 }), 32, "tiles of windows")
t.is(settings.text { load_bytes = 8, held_shared_kib = 28 }, "held_shared_kib=28 load_bytes=8", "in words")
t.is(settings.text {}, "-", "no setting")
local launch = { blocks = 10000, block = { 32, 4, 1 }, occupancy = { blocks_per_multiprocessor = 9 } }
t.is(settings.in_flight_kib(launch, 132, "smxx_registers", { load_bytes = 16 }), 72, "in flight: 9 blocks")
launch.blocks = 132
t.is(settings.in_flight_kib(launch, 132, "smxx_registers", { load_bytes = 16 }), 8, "a small grid has less")
t.is(settings.in_flight_kib(launch, 132, "smxx_smem", {}), nil, "what the compiler decides is not told")

-- A GPU that is none: every launch of a plan leaves a record.

local launched = {}
local function record(name, time, kind)
  launched[#launched + 1] = { kind = kind or "kernel", name = name, duration_us = time, blocks = 264,
    grid = { 264, 1, 1 }, block = { 32, 4, 1 }, registers = 54,
    occupancy = { percent = 50, limiter = "registers", waves = 1, blocks_per_multiprocessor = 9 } }
end
local TIME = { smxx_naive = 90, smxx_col_parallel = 50, smxx_vec16 = 40, smxx_smem = 20, sm90_tma = 15, sm90_bulk = 11,
  smxx_registers = 12, smxx_windows = 13 }
local VARIANTS, TUNABLES = {}, { "block_threads", "tiles_per_block", "load_bytes", "box_columns", "num_stages",
  "blocks_per_multiprocessor", "held_shared_kib", "window_tiles" }
local DEFAULTS = { block_threads = 128, tiles_per_block = 4, load_bytes = 16, box_columns = 64, num_stages = 2,
  blocks_per_multiprocessor = 2, held_shared_kib = 1, window_tiles = 2 }
for variant in pairs(TIME) do
  VARIANTS[#VARIANTS + 1] = { operation = "scale_swizzle", variant = variant, arch = "none" }
end

local real = { kernels = lab.kernels, plan = lab.plan, profile = lab.profile, records = lab.kernel_records,
  activity = lab.activity_records,
  flush = timing.flush, print = print, folder = lab.recorded.folder }
local wrong, refuse_counters, clumsy
function lab.kernels(op) return op == "scale_swizzle" and VARIANTS or real.kernels(op) end
function lab.plan(args)
  if args.op:find "^probe" then
    return { launch = function() record(args.variant, args.op == "probe_copy" and 10 or 1) end }
  end
  if not TIME[args.variant] then return real.plan(args) end
  if (args.tunables.held_shared_kib or 1) > 100 then return nil, "too much shared memory", "illegal" end
  local own, tunables = {}, {}
  for key, value in pairs(args) do own[key] = value end
  own.variant, own.tunables = "cpu_plain", nil
  local made = assert(real.plan(own))
  for _, name in ipairs(TUNABLES) do tunables[name] = args.tunables[name] or DEFAULTS[name] end
  return { variant = args.variant, device = cpu, tunables = function() return tunables end, launch = function()
    if wrong ~= args.variant then made:launch() end
    if clumsy == args.variant then error("clumsy", 0) end
    record("kernel_of_" .. args.variant, TIME[args.variant] + tunables.block_threads / 1000
      + tunables.held_shared_kib / 10)
  end }
end
function lab.kernel_records(fn)
  launched = {}
  fn()
  return launched
end
lab.activity_records = lab.kernel_records
function lab.profile(spec)
  local values = {}
  if refuse_counters then error("counters broke", 0) end
  spec.run()
  for i, name in ipairs(lab.metrics.collect(spec)) do values[name] = i end
  return values
end
function timing.flush() end
print = function() end -- luacheck: ignore
local stderr = io.stderr
io.stderr = io.open("/dev/null", "w") -- luacheck: ignore
lab.recorded.folder = folder / "records"

local function run(problems, controlled, more)
  local spec = { device = cpu, problems = problems, series_problems = controlled, rounds = 6, clean_rounds = 6,
    calls = 3, counted = true, out = folder / "out", record = true }
  for key, value in pairs(more or {}) do spec[key] = value end
  return study.run(spec)
end
local function rows_of(name) return lab.record.read(folder / ("out/" .. name .. ".tsv")).rows end
local eight = problem.new { grouping = "k_groups", rows = 300, columns = 96, groups = 8 }
local dense = problem.new { grouping = "dense", rows = 300, columns = 96, groups = 1 }
t.ok(run({ eight, tall, dense }, { eight, tall }), "a whole run")
local main_rows, cause_rows = rows_of "scale_swizzle", rows_of "scale_swizzle_causes"
local best = rows.where(main_rows, { grouping = "k_groups", variant = "smxx_registers", flush = "clean" })
t.is(#best, 1, "clean lines: the fastest setting of each variant")
t.is(best[1].block_threads, "64", "which is the one with the lowest time")
t.is(#rows.where(main_rows, { grouping = "k_groups", variant = "smxx_registers", flush = "dirty" }), 8, "every setting")
local counted = rows.where(main_rows, { grouping = "k_groups", variant = "smxx_registers", flush = "dirty",
  block_threads = best[1].block_threads, tiles_per_block = best[1].tiles_per_block })[1]
t.ok(counted.top_stall ~= "-" and counted.limiter == "registers" and tonumber(counted.occupancy_achieved_pct),
  "counters of the fastest")
t.ok(math.abs(tonumber(counted.copy_ratio) - 10 / 12.164) < 1e-3 and tonumber(counted.copy_us) == 10, "copy ratio")
t.is(#rows.where(main_rows, { variant = "host_loop", flush = "none" }), 1, "a host loop for eight K groups")
local others = rows.where(main_rows, { grouping = "dense", variant = "smxx_registers", flush = "dirty" })
t.is(#others, 4, "dense has sizes of a block")
t.is(rows.where(main_rows, { variant = "sm90_tma", flush = "clean" })[1].sectors_per_request_ld, "-",
  "loads by the copy engine have no sectors")
t.is(#rows.where(cause_rows, { series = "variants", grouping = "k_groups" }), 6, "all counters of each variant")
local held = rows.where(cause_rows, { series = "occupancy", variant = "smxx_smem" })
t.is(#held, 9, "settings that do not run are left out")
t.ok(tonumber(held[1].issue_active_pct) and held[1].stall_wait_pct == "-", "series have the counters of one pass")
t.ok(#rows.where(cause_rows, { series = "in_flight" }) > 5, "bytes in flight")
t.is(#rows.where(cause_rows, { series = "ahead", grouping = "m_groups" }), 5, "loads that wait for the group ends")
t.is(#rows.where(cause_rows, { series = "stores" }), 2, "stores for one group or two")
t.ok(lab.stat(lab.recorded.path("scale_swizzle", "cpu")), "it is recorded")
t.ok(lab.stat(lab.recorded.path("scale_swizzle_causes", "cpu")), "and so are the causes")
t.is(lab.record.read(folder / "out/scale_swizzle.tsv").provenance.null_us_1, "1.0000", "what a launch takes is known")
t.ok(lab.stat(folder / "out/scale_swizzle_time.gp"), "figures are drawn")

-- Nothing that goes wrong in one place takes the rest along.

wrong = "smxx_smem"
t.ok(not run({ eight, dense }, {}), "wrong results: the run says so")
t.ok(#rows_of "scale_swizzle" > 30 and #rows.where(rows_of "scale_swizzle", { variant = "smxx_smem" }) == 0,
  "and only they have no rows")
wrong, clumsy = nil, "smxx_vec16"
t.ok(run({ eight }, { eight }), "a kernel that cannot be launched is left out")
t.is(#rows.where(rows_of "scale_swizzle", { variant = "smxx_vec16" }), 0, "alone")
clumsy, refuse_counters = nil, true
t.ok(run({ eight }, {}), "counters that fail leave the times")
t.is(rows.where(rows_of "scale_swizzle", { variant = "smxx_registers" })[1].top_stall, "-", "and no values")
refuse_counters = nil
t.ok(run({ eight }, { eight }, { counted = false }), "nor are they needed")

-- Rounds.

local function contenders(copies)
  return { { launch = function() record("a", 2) end },
    { memcpy = true, launch = function() if copies then record("copy", 3, "copy") end end },
    { launch = function()
      record("read_all", 9)
      record("b", 4)
    end } }
end
local timed = timing.rounds { device = cpu, contenders = contenders(true), rounds = 7, flush = "dirty" }
t.is(("%g %g %g"):format(timed[1].stats.median, timed[2].stats.median, timed[3].stats.median), "2 3 4",
  "times of kernels and copies, whatever the order; those of the flush are left out")
t.is(#timed[1].samples_us, 7, "one a round")
t.is(timing.best(timed, { 2, 3 }), 2, "the best of some")
t.is(timing.ratio(timed[1], timed[3]), 0.5, "median of ratios")
timed = timing.rounds { device = cpu, contenders = contenders(false), rounds = 7, flush = "dirty" }
t.ok(timed[2] == false and timed[3].stats.median == 4, "without records of copies, the kernels have theirs")
t.is(timing.best(timed, { 1, 2 }), 1, "and the best is one of them")
do -- records of copies that come in some regions only
  local launches, kernel, copy = 0, { launch = function() record("a", 2) end }, { memcpy = true }
  function copy.launch()
    launches = launches + 1
    if launches > 100 then record("copy", 3, "copy") end
  end
  local part = timing.rounds { device = cpu, contenders = { kernel, copy }, rounds = 4100, flush = "dirty" }
  t.ok(part[2] == false and #part[1].samples_us == 4100, "copies that lack rounds are compared with nothing")
end
t.error(function()
  timing.rounds { device = cpu, contenders = { { launch = function() end } }, rounds = 3, flush = "dirty" }
end, "0 kernels were recorded in 3 rounds of 1", "a launch without a record")

lab.kernels, lab.plan, lab.profile, lab.kernel_records = real.kernels, real.plan, real.profile, real.records
lab.activity_records = real.activity
io.stderr = stderr -- luacheck: ignore
timing.flush, print, lab.recorded.folder = real.flush, real.print, real.folder -- luacheck: ignore

-- Ranks.

local function column(name) return function(row) return row[name] end end
local list = { { a = 1, b = 10 }, { a = 2, b = 20 }, { a = 2, b = 25 }, { a = 9, b = 26 } }
t.ok(math.abs(limits.rank_correlation(list, column "a", column "b") - 0.9486832980505138) < 1e-12, "ties share a rank")
t.is(limits.rank_correlation({ list[1], list[2] }, column "a", column "b"), nil, "two points tell nothing")
t.done()
