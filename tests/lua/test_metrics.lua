-- Metric groups against CUPTI's own lists, pass counts, derived values; profiling without a GPU.
local t = dofile("tests/lua/tap.lua")
local core = require "tilelab_core"
local lab = require "tilelab"
local metrics = lab.metrics

local chips, missing = core.chips()

-- --- every shipped metric ---------------------------------------------------------------------

-- Passes on GH100, as measured on an H200; the clocks are in each group.
local passes = { PAPER = 1, OCC = 1, DRAM = 1, L2 = 5, TENSOR = 1, SMEM = 4, COALESCE = 4, TMA = 1,
  STALL = 6, SOL = 9, SPILL = 2, ROOFLINE = 1, TENSOR_GB100 = 2, TIMELINE = 1 }

if chips then
  for _, group in ipairs(metrics.groups()) do
    local unknown = {}
    for _, name in ipairs(group.metrics) do
      local ok, message = core.metric_check(group.chip, name, group.use)
      if not ok then unknown[#unknown + 1] = message end
    end
    t.is(table.concat(unknown, "\n"), "", group.name .. ": " .. group.chip .. " has every metric")
    t.is(core.metric_passes(group.chip, group.metrics, group.use), passes[group.name],
      group.name .. ": passes")
  end
  t.is(core.metric_passes("GH100", metrics.collect { groups = { "OCC", "DRAM", "TENSOR" } }), 1,
    "occupancy, memory and tensor cores together: one pass")
  local names = core.metric_names("GH100")
  t.ok(#names > 3000, "GH100 has thousands of metrics")
  t.is(core.metric_describe("GH100", "dram__bytes_read").unit, "byte", "a metric has a unit")
  local ok, message, code = core.metric_check("GH100", "sm__warp_active.avg")
  t.ok(not ok and code == "argument", "an unknown metric")
  t.like(message, "near names: sm__warps_active", "near names are told")
  t.error(function() core.metric_passes("GH100", { "dram__bytes_read" }) end, "needs a roll%-up",
    "a metric without roll-up")
  t.error(function() core.metric_names "GH99" end, "unknown chip 'GH99'.*GH100", "an unknown chip")
else
  t.skip(missing, 2 * #metrics.groups() + 8)
end

-- --- groups -----------------------------------------------------------------------------------

for _, group in ipairs(metrics.groups()) do
  local described = 0
  for _, name in ipairs(group.metrics) do
    local metric = metrics.find(name)
    if metric and metric.unit ~= "" and metric.text:find("%.$") then described = described + 1 end
  end
  t.is(described, #group.metrics, group.name .. ": every metric has label, unit and sentence")
end
t.is(metrics.find "achieved_occupancy".name, "sm__warps_active.avg.pct_of_peak_sustained_active",
  "a metric by its label")
t.is(#metrics.collect { groups = { "PAPER", "DRAM" }, metrics = { "dram_read" } },
  #metrics.group "PAPER".metrics + 3, "a metric of two groups is counted once")
t.error(function() metrics.group "PAPR" end, "unknown metric group 'PAPR'; did you mean PAPER", "near group")
metrics.add_group { name = "MINE", text = "Mine.", metrics = { "dram_read", "sm__inst_executed.sum" } }
t.is(metrics.group "MINE".metrics[1], "dram__bytes_read.sum", "a group of one's own, by label")
t.error(function() metrics.add_group { name = "MINE", metrics = { "dram_read" } } end, "already", "twice")
t.error(function() metrics.add_group { name = "EMPTY", metrics = {} } end, "list of metrics", "empty")
t.error(function() metrics.add_group { name = "X", metric = {} } end, "did you mean 'metrics'", "field")

-- --- derived values ---------------------------------------------------------------------------

local values = { ["dram__bytes_read.sum"] = 3e9, ["dram__bytes_write.sum"] = 1e9,
  ["sm__cycles_elapsed.avg.per_second"] = 1.5e9,
  ["sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum"] = 8e12,
  ["sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum.peak_sustained"] = 540672,
  ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] = 32,
  ["smsp__inst_executed_op_shared_ld.sum"] = 4, ["some__other.sum"] = 7 }
local derived = metrics.derive(values, { time_us = 1000 })
t.is(derived.dram_bytes, 4e9, "bytes of memory")
t.is(derived.dram_gbps, 4000, "GB/s by the time that was given")
t.is(derived.wgmma_tflops, 8000, "TFLOP/s")
t.is(derived.sm_clock_mhz, 1500, "clock")
t.is(derived.tensor_peak_tflops, 540672 * 1.5e9 / 1e12, "peak at the clock")
t.is(derived.dram_intensity, 2000, "intensity")
t.is(derived.tensor_utilisation, 100 * 8000 / (540672 * 1.5e9 / 1e12), "utilisation by time, of the peak at the clock")
t.is(derived.dram_utilisation, nil, "not without the peak")
values["dram__bytes.sum.peak_sustained"], values["dram__cycles_elapsed.avg.per_second"] = 1600, 3.2e9
t.is(metrics.derive(values, { time_us = 1000 }).dram_utilisation, 100 * 4000 / 5120, "of memory")
t.is(derived.wavefronts_per_load, 8, "wavefronts a load")
t.is(derived.shared_conflict_share, nil, "absent where a counter is")
t.is(metrics.derive(values).dram_gbps, nil, "no rate without a time")
t.is(metrics.derive({ ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] = 0,
  ["smsp__inst_executed_op_shared_ld.sum"] = 0 }).wavefronts_per_load, nil, "absent rather than 0/0")
t.is(metrics.derive({ ["dram__bytes_read.sum"] = "-", ["dram__bytes_write.sum"] = "-" }).dram_bytes, nil,
  "absent where counters were refused")
t.is(metrics.by_label(values)["some__other.sum"], 7, "a metric without label keeps its name")

local joined = metrics.logical { flops = 4e12, bytes = 2e9, values = values, time_us = 1000 }
t.is(joined.flops_ratio, 2, "measured over logical FLOPs")
t.is(joined.bytes_ratio, 2, "measured over logical bytes")
t.is(joined.tflops, 4000, "logical TFLOP/s")
t.is(joined.gbps, 2000, "logical GB/s")
t.is(metrics.logical { flops = 1, values = {} }.flops_ratio, nil, "no ratio without a counter")
local a = lab.tensor { device = "cpu", shape = { 4, 8 }, fill = 1 }
local plan = lab.plan { op = "gemm", variant = "cpu_plain", a = a, b = a,
  d = lab.tensor { device = "cpu", shape = { 4, 4 }, fill = 0 } }
t.is(metrics.logical { plan = plan, values = values }.flops, plan:flops(), "FLOPs of a plan")

-- --- occupancy --------------------------------------------------------------------------------

local occupancy = lab.occupancy { blocks = 264, threads = 256, registers = 128 }
t.is(occupancy.percent, 25, "occupancy")
t.is(occupancy.limiter, "registers", "its limiter")
t.is(occupancy.waves, 1, "waves")
t.is(occupancy.limits["shared memory"], 228, "limits by name")
t.is(occupancy.limits.barriers, nil, "an unknown limit is absent")
local none, reason = lab.occupancy { blocks = 1, threads = 32, arch = 100 }
t.ok(none == nil and reason:find "arch 100", "another GPU")
t.error(function() lab.occupancy { blocks = 1, thread = 32 } end, "did you mean 'threads'", "field")

-- --- profiling where there is nothing to profile ----------------------------------------------

local function refused(what, ok, message, code)
  t.ok(ok == nil and type(message) == "string" and code == "unsupported", what .. ": refused with a reason")
end
refused("counters of the CPU", lab.counters "cpu")
refused("profile on the CPU", lab.profile { device = "cpu", groups = { "PAPER" }, run = function() end })
refused("a series of the CPU", lab.timeline { device = "cpu", run = function() end })
refused("kernels of the CPU", lab.kernel_records(function() end, "cpu"))
t.error(function() lab.profile { groups = { "PAPER" } } end, "takes run = a function", "no function")
t.error(function() lab.profile { run = print } end, "takes groups or metrics", "no metrics")
t.error(function() lab.profile { run = print, group = { "PAPER" } } end, "did you mean 'groups'", "field")
local stderr, lines = io.stderr, {}
rawset(io, "stderr", { write = function(_, ...) lines[#lines + 1] = table.concat { ... } end })
for _ = 1, 2 do
  values = lab.profile { device = "cpu", groups = { "PAPER" }, run = error, optional = true }
end
rawset(io, "stderr", stderr)
t.is(values["dram__bytes_read.sum"], "-", "optional counters are dashes")
t.is(#lines, 1, "and the reason is told once")
lab.profile_close()

-- --- NVTX -------------------------------------------------------------------------------------

do
  local outer <close> = lab.nvtx "outer"
  t.is(lab.nvtx_call("inner", function(...) return core.nvtx_depth() + select("#", ...) end, 1, 2), 4,
    "ranges nest, arguments and results pass")
  t.error(function() lab.nvtx_call("inner", error, "inside") end, "inside", "an error passes")
  t.is(core.nvtx_depth(), 1, "and closes its range")
  local forgotten = lab.nvtx "forgotten"
  outer:close()
  t.is(core.nvtx_depth(), 0, "closing a range closes those inside it")
  forgotten:close()
  t.is(core.nvtx_depth(), 0, "closing again is fine")
end
t.is(lab.nvtx_phases(), os.getenv "TILELAB_NVTX" == "1", "ranges of phases are off")
t.is(lab.nvtx_phases(true), true, "and can be switched on")
lab.nvtx_phases(false)

t.done()
