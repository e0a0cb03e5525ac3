-- What experiments/wgrad_epilogue.lua measures: each way to write or add weight gradients, checked, timed in
-- interleaved rounds beside the dense product, a stream of stores and a memset, and counted.

local lab = require "tilelab"
local draw = require "tilelab.draw.wgrad_epilogue"
local problem = require "tilelab.grouped_gemm.problem"
local wgrad = require "tilelab.grouped_gemm.wgrad"

local epilogue = {}

local SEED = 1
local THROTTLE_BELOW = 0.6 -- as in grouped_gemm.lua: copies run at the highest clock, products below it
local NONE = { zeroed = 0, stages = "-", block_n = "-" }

local function title(way)
  return ("%s, %s stages, %s columns%s"):format(way.way, way.stages, way.block_n, way.zeroed == 1 and ", zeroed" or "")
end

-- Contenders of lab.measure with what a row needs besides: way (of opt.ways, or one without tunables), plan,
-- bytes. Raises where a result is wrong.
local function entries_of(pool, p, opt)
  local list = {}
  local function add(way, plan, bytes, run)
    list[#list + 1] = { name = title(way), way = way, plan = plan, bytes = bytes, run = run }
  end
  local function other(way, plan, bytes, run)
    add(setmetatable({ way = way, beta = 0 }, { __index = NONE }), plan, bytes, run)
  end
  local dense = lab.check(pool:contenders("cublaslt_dense", p))[1]
  other("dense", dense.plan, dense.plan:bytes())
  local store, d
  for _, way in ipairs(opt.ways) do
    local contender = lab.check(wgrad.ragged(pool, "sm90_ragged", p, way.beta, way.tunables))
    local pass, text = contender:check()
    if not pass then error(("%s: %s: %s"):format(problem.name(p), title(way), text), 0) end
    local plan, y = contender.plan, contender.y
    store, d = contender.store, y
    local function zeroed_run()
      y:fill(0)
      plan:launch()
    end
    add(way, plan, plan:bytes() + (way.zeroed == 1 and y.bytes or 0), way.zeroed == 1 and zeroed_run or nil)
  end
  other("store", store, d.bytes)
  other("zero", nil, d.bytes, function() d:fill(0) end)
  return list
end

local function launch(entry)
  if entry.run then entry.run() else entry.plan:launch() end
end

-- Bytes that one launch read and wrote in device memory, by counter.
local function counted(entry, device)
  local label = lab.metrics.by_label(lab.check(lab.profile { device = device, groups = { "PAPER" }, quiet = true,
    run = function() launch(entry) end }))
  return label.dram_read, label.dram_write
end

local function write_rows(out, p, list, measured, device)
  local flops, store_us = 2 * p.rows * p.m * p.n, nil
  for _, entry in ipairs(list) do
    if entry.way.way == "store" then store_us = measured.by_name[entry.name].stats.median end
  end
  for _, entry in ipairs(list) do
    local timed, way = measured.by_name[entry.name], entry.way
    local product = way.way ~= "store" and way.way ~= "zero"
    local read, written = counted(entry, device)
    out:row { op = p.op, experts = p.experts, rows = p.rows, distribution = p.distribution, way = way.way,
      beta = way.beta, zeroed = way.zeroed, stages = way.stages, block_n = way.block_n, time_us = timed.stats.median,
      time_us_lo = timed.stats.median_lo, time_us_hi = timed.stats.median_hi, rounds = measured.rounds,
      tflops = product and flops / timed.stats.median * 1e-6 or "-",
      share_of_dense = product and measured:ratio(list[1].name, entry.name).median or "-",
      store_us = way.way ~= "dense" and store_us or "-", logical_bytes = entry.bytes, dram_read_bytes = read,
      dram_write_bytes = written, sm_clock_mhz = timed.clock_stats.median }
  end
end

-- opt: device (a GPU), ops, experts, distribution, rows, rounds, ways (list of {way, beta, zeroed, stages,
-- block_n, tunables}), out, record. Raises when a result is wrong.
function epilogue.run(opt)
  local device = opt.device
  local problems = problem.grid { ops = opt.ops, experts = opt.experts, distributions = { opt.distribution },
    rows = opt.rows, shrink = 1, seed = SEED }
  local pool = problem.pool(device, problems)
  lab.check(pool:contenders("cublaslt_dense", problems[1])) -- before the provenance, which names the library
  local out <close> = lab.recorded.open { experiment = "wgrad_epilogue", device = device, out = opt.out,
    kernels = { "gemm", "k_grouped_gemm", "probe" }, record = opt.record, seed = SEED,
    extra = { rounds = opt.rounds, mode = "cold" } }
  do
    local bar <close> = lab.progress { total = #problems, label = "wgrad_epilogue", unit = "problems" }
    for _, p in ipairs(problems) do
      local list, contenders = entries_of(pool, p, opt), {}
      for i, entry in ipairs(list) do
        contenders[i] = { name = entry.name, plan = not entry.run and entry.plan or nil, run = entry.run,
          device = device }
      end
      local measured = lab.measure { contenders = contenders, rounds = opt.rounds, mode = "cold", seed = SEED,
        throttle_below = THROTTLE_BELOW }
      write_rows(out, p, list, measured, device)
      lab.profile_close()
      bar:step(1, problem.name(p))
    end
  end
  lab.draw.print(draw.draw(out:close(), { folder = opt.out }))
  return true
end

return epilogue
