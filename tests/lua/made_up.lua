-- Made-up records for tests: rows as the experiments write them, so that drawing, targets and the
-- README's numbers can be tested where nothing was measured.

local lab = require "tilelab"

local made_up = {}

local builders = {}

function builders.profiler_selftest(add)
  for n = 1, 32 do
    add { case = ("shared memory, %d-way conflict"):format(n), expected = n, measured = n, ratio = 1,
      metric = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum" }
    add { case = ("loads, stride %d words"):format(n), expected = math.min(4 * n, 32),
      measured = math.min(4 * n, 32), ratio = 1,
      metric = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio" }
  end
  add { case = "copy 16 GiB to 16 GiB", metric = "dram__bytes_read.sum", expected = 2 ^ 34,
    measured = 2 ^ 34 * 1.004, ratio = 1.004 }
  add { case = "copy 16 GiB to 16 GiB", metric = "dram__bytes_write.sum", expected = 2 ^ 34,
    measured = 2 ^ 34 * 0.998, ratio = 0.998 }
  add { case = "wgmma", metric = "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum",
    expected = 2 ^ 40, measured = 2 ^ 40, ratio = 1 }
  for _, limiter in ipairs { "registers", "shared memory", "threads", "blocks" } do
    add { case = "occupancy limited by " .. limiter, expected = 50, measured = 49.7, ratio = 0.994,
      metric = "sm__warps_active.avg.pct_of_peak_sustained_active" }
  end
end

function builders.ncu_agreement(add)
  local metrics = { { "dram__bytes.sum", "count" }, { "sm__warps_active.avg.pct_of_peak_sustained_active",
    "occupancy" }, { "sm__inst_executed_pipe_tensor.sum", "count" },
    { "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", "cycle_ratio" },
    { "dram__throughput.avg.bytes_per_second", "rate" } }
  for k = 1, 4 do
    for m, metric in ipairs(metrics) do
      local ratio = 1 + 0.001 * (k - m) * (metric[2] == "rate" and 20 or 2)
      add { kernel = "kernel_" .. k, metric = metric[1], kind = metric[2], tilelab = 100 * ratio, ncu = 100,
        ratio = ratio }
    end
  end
end

function builders.timeline(add)
  for m, metric in ipairs { "sm_busy", "tensor_busy", "dram_read_busy", "dram_write_busy" } do
    for i = 0, 2399 do
      local busy = i % 600 < 450 and 90 / m * (0.95 + 0.05 * math.cos(i)) or 0
      add { metric = metric, unit = "%", time_us = i * 20, value = i == 7 and "-" or busy }
    end
  end
end

function builders.launch_overhead(add)
  local times = { c_call = 2.1, lua_call = 3.4, lua_added = 1.3, counters = 8200 }
  for _, path in ipairs { "c_call", "lua_call", "lua_added", "counters" } do
    add { path = path, launches = 1, statistic = "median", time_us = times[path],
      time_us_lo = times[path] * 0.97, time_us_hi = times[path] * 1.02, samples = 40 }
    add { path = path, launches = 1, statistic = "minimum", time_us = times[path] * 0.9, time_us_lo = "-",
      time_us_hi = "-", samples = 40 }
  end
  add { path = "graph_replay", launches = 64, statistic = "median", time_us = 0.9, time_us_lo = 0.88,
    time_us_hi = 0.93, samples = 40 }
end

function builders.roofline(add)
  local function row(fields)
    local all = { ai = "-", gflops = "-", gbps = "-", ceiling_gflops = "-", time_us = "-", time_us_lo = "-",
      time_us_hi = "-", sm_clock_mhz = 1755, source = "counter" }
    for key, value in pairs(fields) do all[key] = value end
    add(all)
  end
  row { kind = "bandwidth", point = "copy", level = "dram", gbps = 4250 }
  row { kind = "bandwidth", point = "copy", level = "l2", gbps = 9100 }
  row { kind = "peak", point = "counter peak", level = "compute", gflops = 948900 }
  row { kind = "peak", point = "cublaslt_dense", level = "compute", gflops = 742000, source = "timing" }
  for k = 1, 10 do
    local ai = 0.2 * 2.4 ^ k
    local gflops = math.min(942000, 4250 * ai) * (0.95 - 0.02 * k)
    for _, level in ipairs { "dram", "l2" } do
      local of_level = level == "dram" and ai or ai / 1.8
      row { kind = "point", point = "kernel_" .. k, level = level, ai = of_level,
        gflops = gflops, gbps = gflops / of_level, ceiling_gflops = math.min(948900, 4250 * ai), time_us = 100,
        time_us_lo = 98, time_us_hi = 103, sm_clock_mhz = 1700 + 5 * k, source = "timing" }
    end
  end
end

function builders.kernel_counters(add)
  for k, limiter in ipairs { "registers, threads", "blocks", "registers, threads" } do
    local function row(quantity, value, unit, note)
      add { kernel = "kernel_" .. k, quantity = quantity, value = value, unit = unit, note = note or "-" }
    end
    row("theoretical_occupancy", 100 / k, "%", limiter)
    row("waves", k == 2 and 0.25 or k, "waves")
    row("achieved_occupancy", 80 / k, "%")
    for s, reason in ipairs { "long_scoreboard", "barrier", "drain", "selected" } do
      row("stall_" .. reason, s * k, "warp")
    end
    row("logical_bytes", k == 2 and 128 or 2e9, "byte")
    row("measured_bytes", k == 2 and 4096 or 2.1e9, "byte")
    row("gpc_clock", 1700 + 10 * k, "MHz")
  end
end

-- Shares of the dense product as an H200 might give them, 32 and 128 experts.
local SHARES = { { "cublaslt_dense", 1, 1 }, { "sm90_ragged", 0.97, 0.86 }, { "sm90_padded", 0.90, 0.66 },
  { "cublaslt_loop", 0.91, 0.52 }, { "torch_dense", 1, 1 }, { "torch_grouped_mm", 0.84, 0.63 } }

-- Microseconds of weight gradients, 32 and 128 experts: variant, beta, w13, w2.
local WGRAD = { { "cublaslt_dense", 0, { 699, 679 }, { 333, 320 } }, { "sm90_ragged", 0, { 879, 1309 }, { 408, 662 } },
  { "sm90_ragged", 1, { 941, 2185 }, { 453, 1118 } }, { "sm90_padded", 1, { 1266, 3011 }, { 614, 1580 } },
  { "cublaslt_loop", 0, { 950, 1700 }, { 470, 880 } } }
local STORE, ZERO = { { 250, 1007 }, { 127, 502 } }, { { 222, 879 }, { 111, 440 } }

local function wgrad_rows(add)
  for o, op in ipairs { "wgrad_w13", "wgrad_w2" } do
    for e, experts in ipairs { 32, 128 } do
      for d, distribution in ipairs { "uniform", "multinomial", "zipf" } do
        for _, each in ipairs(WGRAD) do
          local variant, dense = each[1], each[1] == "cublaslt_dense"
          local padded, dense_us = variant == "sm90_padded", WGRAD[1][2 + o][e]
          local time = each[2 + o][e] * (dense and 1 or 0.98 + 0.01 * d)
          local tflops = 2 * 32768 * (o == 1 and 2560 * 3072 or 3072 * 1280) / time * 1e-6
          add { op = op, experts = experts, rows = 32768, distribution = distribution, variant = variant,
            beta = each[2], time_us = time, time_us_lo = time * 0.995, time_us_hi = time * 1.01, call_us = 5,
            pad_us = padded and 150 or "-", unpad_us = "-", zero_us = padded and ZERO[o][e] or "-",
            store_us = dense and "-" or STORE[o][e], rounds = 20, tflops = tflops,
            tflops_padded = padded and tflops * (e == 1 and 1.06 or 1.25) or "-", share_of_dense = dense_us / time,
            dram_gbps = 2500, tensor_pct = 70, occupancy_pct = 18, sm_clock_mhz = 1700, power_w = 600 }
        end
      end
    end
  end
end

function builders.grouped_gemm(add)
  for o, op in ipairs { "fwd_w13", "fwd_w2", "dgrad_w2", "dgrad_w13" } do
    for e, experts in ipairs { 32, 128 } do
      for d, distribution in ipairs { "uniform", "multinomial", "zipf" } do
        for _, share in ipairs(SHARES) do
          local variant, dense_us = share[1], (o == 1 or o == 4) and 650 or 325
          local torch, padded = variant:find "^torch" ~= nil, variant == "sm90_padded"
          local ratio = share[1 + e] == 1 and 1 or share[1 + e] - 0.01 * d - 0.01 * (o - 1)
          local time, tflops = dense_us / ratio, 790 * ratio
          local function ours(value) return torch and "-" or value end
          add { op = op, experts = experts, rows = 32768, distribution = distribution, variant = variant, beta = 0,
            time_us = time, time_us_lo = time * 0.995, time_us_hi = time * 1.01, call_us = torch and 30 or 4.5,
            pad_us = padded and 90 or "-", unpad_us = padded and 80 or "-", zero_us = "-", store_us = "-",
            rounds = 20, tflops = tflops, tflops_padded = padded and tflops * (e == 1 and 1.05 or 1.25) or "-",
            share_of_dense = ratio, dram_gbps = ours(1500), tensor_pct = ours(80), occupancy_pct = ours(18),
            sm_clock_mhz = ours(1600 + 10 * o), power_w = ours(640) }
        end
      end
    end
  end
  wgrad_rows(add)
end

function builders.wgrad_epilogue(add)
  local TIME = { write = { 879, 1309 }, reduce = { 972, 3131 }, load = { 941, 2185 }, dense = { 699, 679 },
    store = { 250, 1007 }, zero = { 222, 879 } }
  for o, op in ipairs { "wgrad_w13", "wgrad_w2" } do
    for e, experts in ipairs { 32, 128 } do
      local d_bytes = experts * (o == 1 and 2560 * 3072 or 3072 * 1280) * 4
      local function row(way, zeroed, stages, block_n)
        local turns = block_n == 192
        local time = (TIME[way][e] + (zeroed == 1 and TIME.zero[e] or 0)) / o
          * (turns and 0.9 or stages == "-" and 1 or 1 + 0.06 * (4 - stages) + (block_n == 128 and 0.03 or 0))
        local product, adds = way ~= "store" and way ~= "zero", way == "reduce" or way == "load"
        local reads = product and 0.4e9 or 0
        add { op = op, experts = experts, rows = 32768, distribution = "multinomial",
          variant = way == "dense" and "cublaslt_dense" or turns and "sm90_ragged"
            or product and "sm90_cooperative" or way,
          way = way, beta = adds and 1 or 0,
          zeroed = zeroed, stages = stages, block_n = block_n, time_us = time, time_us_lo = time * 0.99,
          time_us_hi = time * 1.01, rounds = 15,
          tflops = product and 2 * 32768 * (o == 1 and 2560 * 3072 or 3072 * 1280) / time * 1e-6 or "-",
          share_of_dense = product and TIME.dense[e] / o / time or "-",
          store_us = way ~= "dense" and TIME.store[e] / o or "-",
          logical_bytes = reads + d_bytes * (1 + (adds and 1 or 0) + zeroed),
          dram_read_bytes = 1.5 * reads + (adds and d_bytes or 0), dram_write_bytes = d_bytes * (1 + zeroed),
          sm_clock_mhz = 1700, power_w = 600 }
      end
      row("dense", 0, "-", "-")
      for _, way in ipairs { "write", "reduce", "load" } do
        for stages = 4, 2, -1 do row(way, 0, stages, 256) end
        row(way, 0, 4, 128)
        if way == "reduce" then row(way, 1, 4, 256) end
      end
      row("write", 0, 5, 192)
      for stages = 4, 5 do
        row("load", 0, stages, 192)
        row("load", 1, stages, 192)
      end
      row("store", 0, "-", "-")
      row("zero", 0, "-", "-")
    end
  end
end

-- Products that move `experts` matrices of weights and compute `computed` rows: microseconds.
local function product_us(experts, computed) return math.max(experts * 4.1, computed * 0.0205) + 6 end

function builders.rows_per_expert(add)
  local function rows(per_expert, experts, distribution, exponent, waste)
    local real = per_expert * experts
    local dense_us, flops = product_us(1, real), 2 * real * 2560 * 3072
    local ragged_us = product_us(experts, real * 1.01 + 4 * experts) * (1 + 0.0005 * experts)
    local padded_rows = real + waste * experts
    for _, variant in ipairs { "cublaslt_dense", "sm90_ragged", "sm90_padded" } do
      local padded = variant == "sm90_padded"
      local time = variant == "cublaslt_dense" and dense_us or padded and product_us(experts, padded_rows) * 1.04
        or ragged_us
      local whole = time + (padded and 170 * real / 32768 + 12 or 0)
      add { op = "fwd_w13", rows_per_expert = per_expert, experts = experts, rows = real,
        distribution = distribution, exponent = exponent, variant = variant, time_us = time, time_us_lo = time * 0.98,
        time_us_hi = time * 1.03, pad_us = padded and (whole - time) * 0.6 or "-",
        unpad_us = padded and (whole - time) * 0.4 or "-", whole_us = whole, whole_us_lo = whole * 0.98,
        whole_us_hi = whole * 1.03, rounds = 20, tflops = flops / time * 1e-6, tflops_whole = flops / whole * 1e-6,
        share_of_dense = dense_us / time, dram_gbps = math.min(3900, experts * 15.7e3 / time),
        computed_rows = padded and padded_rows or variant == "sm90_ragged" and real + 4 * experts or real,
        ratio = time / ragged_us, ratio_lo = time / ragged_us * 0.99, ratio_hi = time / ragged_us * 1.01,
        whole_ratio = whole / ragged_us, whole_ratio_lo = whole / ragged_us * 0.99,
        whole_ratio_hi = whole / ragged_us * 1.01, sm_clock_mhz = 1500 + experts, power_w = 640 }
    end
  end
  for power = 4, 13 do
    local per_expert = 1 << power
    rows(per_expert, math.min(256, 32768 // per_expert), "multinomial", "-",
      per_expert < 128 and 128 - per_expert or 64)
  end
  for i, exponent in ipairs { 0, 0.4, 0.8, 1.2 } do
    rows(256, 128, ("zipf_%g"):format(exponent), exponent, 60 + 4 * i)
  end
end

function builders.raster(add)
  for e, experts in ipairs { 1, 32, 128 } do
    local function row(variant, band, time, hits, read)
      add { op = "fwd_w13", experts = experts, rows = 32768, distribution = "multinomial", variant = variant,
        band = band, time_us = time, time_us_lo = time * 0.996, time_us_hi = time * 1.004, rounds = 20,
        tflops = 515396 / time, share_of_dense = 680 / time, l2_hit_pct = hits, dram_read_bytes = read,
        dram_write_bytes = 0.15e9, logical_bytes = 0.37e9 + experts * 15.7e6, dram_gbps = read / time * 1e-3,
        sm_clock_mhz = 1500 + 10 * e, power_w = 650 }
    end
    row("cublaslt_dense", "-", 680, 71, 0.3e9)
    for i, band in ipairs { 1, 2, 4, 8, 16 } do
      row("sm90_ragged", band, 690 + 20 * e + (experts == 1 and 150 / band or 4 * (i - 4) ^ 2), 55 + 5 * i - 4 * e,
        0.22e9 + experts * 15.7e6 + (experts == 1 and 1.2e9 or 0.3e9) / band)
    end
  end
end

-- Steps of the ladder: name, variant, microseconds with 32 and 128 experts.
local STEPS = { { "a thread an element", "smxx_plain", 121000, 124000 },
  { "TMA, wgmma, 2 stages", "sm90_ragged", 1190, 1420 }, { "+ 6 stages", "sm90_ragged", 830, 1050 },
  { "+ store beside multiply", "sm90_ragged", 742, 930 }, { "+ loads shared by pairs", "sm90_ragged", 731, 905 },
  { "+ tails in steps of 8", "sm90_ragged", 702, 802 }, { "+ bands of 8 tiles", "sm90_ragged", 694, 790 },
  { "+ weights shared too", "sm90_ragged", 694, 781 } }

function builders.gemm_ladder(add)
  for e, experts in ipairs { 32, 128 } do
    local function row(step, name, variant, time, before)
      local gain = before and before / time or "-"
      local made = { op = "fwd_w13", experts = experts, rows = 32768, distribution = "multinomial", step = step,
        name = name, variant = variant, stages = step > 1 and 6 or "-", turns = step > 1 and 2 or "-",
        multicast = step > 1 and 2 or "-", tail = step > 1 and 8 or "-", band = step > 1 and 8 or "-",
        stack = step > 1 and 2 or "-", time_us = time, time_us_lo = time * 0.99, time_us_hi = time * 1.01,
        rounds = step == 1 and 6 or 20,
        tflops = 515396 / time, share_of_dense = 680 / time, gain = gain, gain_lo = gain,
        gain_hi = gain, tensor_pct = step == 1 and 0 or 58000 / time,
        dram_gbps = 1e6 / time, dram_pct = 25000 / time, l2_hit_pct = 60 + 3 * step, occupancy_pct = 20,
        sm_clock_mhz = 1500 + 10 * e, power_w = 650 }
      for i, reason in ipairs { "long_scoreboard", "gmma", "barrier", "wait", "short_scoreboard", "mio_throttle",
        "math_pipe_throttle" } do
        made["stall_" .. reason .. "_pct"] = (i * (step + 3)) % 5 * 5 + 1
      end
      made.stall_other_pct = 3
      add(made)
    end
    row(0, "cublaslt_dense", "cublaslt_dense", 680)
    for i, step in ipairs(STEPS) do row(i, step[1], step[2], step[2 + e], i > 1 and STEPS[i - 1][2 + e]) end
  end
end

-- Kernel classes of an update of two depths: pass, class, us of what does not grow, us of a layer.
local CLASSES = { { "forward", "grouped_fprop", 0, 20000, 620 }, { "forward", "dense_gemm", 14000, 6000, 640 },
  { "forward", "attention", 0, 2800, 590 }, { "forward", "norm", 250, 900 }, { "forward", "rope", 0, 250 },
  { "forward", "router", 0, 120 }, { "forward", "permute", 0, 1100 }, { "forward", "combine", 0, 1000 },
  { "forward", "swiglu", 0, 1100 }, { "backward", "grouped_dgrad", 0, 21000, 600 },
  { "backward", "grouped_wgrad", 0, 26000, 480 }, { "backward", "dense_gemm", 28000, 12000, 640 },
  { "backward", "attention", 0, 9500, 430 }, { "backward", "norm", 450, 900 }, { "backward", "swiglu", 0, 1900 },
  { "optimiser", "adamw", 3200, 11000 }, { "other", "zeroing", 220, 0 }, { "other", "inputs", 40, 0 } }

local COST = { rapidgemm = 1, deepgemm = 1.07, deepgemm_copy = 1.1 }

function builders.layer_breakdown(add)
  for _, backend in ipairs { "rapidgemm", "deepgemm", "deepgemm_copy" } do
    for layers = 1, 2 do
      local list, update_us = {}, 0
      local function class(pass, name, base, layer, tflops)
        if name == "zeroing" and backend ~= "rapidgemm" then layer = 1500 end
        local time = base + layers * layer * (name:find "^grouped" and COST[backend] or 1)
        local memory = not tflops and name ~= "zeroing" and name ~= "inputs"
        update_us = update_us + time * 1.01
        list[#list + 1] = { backend = backend, layers = layers, precision = "bf16", pass = pass, kernel_class = name,
          launches = 4 * layers, time_us = time, logical_gbps = memory and 3900 or "-",
          copy_ratio = memory and 0.95 or "-", tflops = tflops or "-",
          tensor_pct = tflops and tflops / 8 or 0, occupancy_pct = tflops and 18 or 60 }
      end
      for _, row in ipairs(CLASSES) do class(table.unpack(row)) end
      if backend ~= "rapidgemm" then class("forward", "host_counts", 0, 40) end
      if backend == "deepgemm_copy" then class("backward", "padding", 0, 9000) end
      for _, row in ipairs(list) do
        row.share_of_update, row.idle_pct = row.time_us / update_us, row.time_us / update_us
        add(row)
      end
      local function whole(name, time, idle)
        add { backend = backend, layers = layers, precision = "bf16", pass = "update", kernel_class = name,
          launches = 0, time_us = time, share_of_update = time / update_us, logical_gbps = "-",
          copy_ratio = "-", tflops = "-",
          tensor_pct = "-", occupancy_pct = "-", idle_pct = idle }
      end
      whole("all", update_us, 1 / 1.01)
      whole("unrecorded", update_us * 1.002, "-")
    end
  end
end

function builders.step_gemm_cycles(add)
  for b, backend in ipairs { "rapidgemm", "deepgemm", "deepgemm_copy" } do
    for o, op in ipairs { "fwd_w13", "fwd_w2", "dgrad_w2", "dgrad_w13", "wgrad_w13", "wgrad_w2" } do
      for layer = 1, 2 do
        local ratio = 1 + 0.006 * o + 0.004 * b
        add { backend = backend, layers = 2, precision = "bf16", op = op, layer = layer,
          variant = b == 1 and "sm90_ragged" or "sm90_padded", step_us = 1000 * ratio, step_mhz = 1600, alone_us = 1000,
          alone_mhz = 1600, step_kcycles = 1600 * ratio, alone_kcycles = 1600, cycles_ratio = ratio,
          cycles_ratio_lo = ratio - 0.002, cycles_ratio_hi = ratio + 0.004, rounds = 9 }
      end
    end
  end
end

function builders.step_timeline(add)
  local position, now = 0, 0
  local function phase(pass, name, us)
    position = position + 1
    add { backend = "rapidgemm", layers = 1, precision = "bf16", position = position, pass = pass, phase = name,
      start_us = now, stop_us = now + us, busy_us = us * 0.99, launches = 3 }
    now = now + us * 1.01
  end
  phase("other", "zeroing", 220)
  for _ = 1, 4 do
    for _, row in ipairs { { "embedding", 60 }, { "attention", 2800 }, { "router", 60 }, { "permute", 500 },
      { "moe", 9000 }, { "permute", 250 }, { "head", 4000 } } do phase("forward", row[1] .. " fprop", row[2]) end
    for _, row in ipairs { { "head", 8000 }, { "permute", 450 }, { "moe", 15000 }, { "attention", 6000 },
      { "embedding", 90 } } do phase("backward", row[1] .. " bprop", row[2]) end
  end
  phase("optimiser", "optimiser", 14000)
end

function builders.elementwise(add)
  for o, op in ipairs { "rmsnorm", "rope", "permute", "combine", "swiglu", "adamw" } do
    for p, precision in ipairs { "bf16", "fp32" } do
      local share = 0.8 + 0.03 * o - 0.02 * p
      add { op = op, case = "case " .. o, precision = precision, variant = "smxx_vec16", largest_bytes = 100663296 * p,
        logical_bytes = 402653184 * p, time_us = 100 * p / share, time_us_lo = 99 * p / share,
        time_us_hi = 101 * p / share, copy_us = 100 * p, copy_ratio = share,
        copy_ratio_lo = share - 0.01, copy_ratio_hi = share + 0.01,
        logical_gbps = 4026 * share, rounds = 11, sm_clock_mhz = 1900 }
    end
  end
end

function builders.attention(add)
  for s, sequence in ipairs { 1024, 2048, 4096, 8192 } do
    for _, row in ipairs { { "attention", "cudnn_sdpa", 600 }, { "attention_backward", "cudnn_sdpa", 470 },
      { "attention_backward", "cudnn_ordered", 440 } } do
      local tflops = row[3] * (0.8 + 0.05 * s)
      local time = 1e6 / tflops
      add { op = row[1], variant = row[2], batch = 16384 // sequence, sequence = sequence, heads = 24, kv_heads = 4,
        head_dim = 128, time_us = time, time_us_lo = time * 0.99, time_us_hi = time * 1.01, call_us = time + 40,
        tflops = tflops, rounds = 15, sm_clock_mhz = 1700, power_w = 650, workspace_bytes = 404000000 }
    end
  end
end

function builders.loss_agreement(add)
  for _, precision in ipairs { "bf16", "fp32" } do
    for _, backend in ipairs { "rapidgemm", "deepgemm" } do
      for update = 1, 10 do
        local loss = 6 / update ^ 0.3
        add { precision = precision, routing = "model", backend = backend, update = update, cpu_loss = loss,
          loss = loss * (precision == "bf16" and 1.002 or 1.0001),
          loss_ratio = precision == "bf16" and 1.002 or 1.0001 }
      end
    end
  end
end

-- Twelve runs of 100 updates.
function builders.depth_scaling(add)
  for repetition = 1, 2 do
    for layers = 1, 2 do
      for b, backend in ipairs { "rapidgemm", "deepgemm", "deepgemm_copy" } do
        for update = 1, 100 do
          local us = 1.83 + 1.8 * layers * (1 + 0.08 * (b - 1)) + 0.01 * (update * 7 % 13) + 0.003 * repetition
          add { gpus = 1, experts_per_gpu = 128, model = "30b-a3b", precision = "bf16", routing = "model",
            backend = backend, layers = layers, repetition = repetition, update = update, tokens = 65536,
            time_s = us * 0.065536, loss = 5 + 6 * 0.97 ^ update, load_max_over_mean = 2 + 3 / update,
            experts_empty = 0 }
        end
      end
    end
  end
end

function builders.depth_scaling_summary(add)
  local function row(figure, backend, value, unit, lo, hi)
    add { figure = figure, backend = backend, value = value, lo = lo or "-", hi = hi or "-", unit = unit }
  end
  row("study_minutes", "-", 8.7, "minutes")
  for b, backend in ipairs { "rapidgemm", "deepgemm", "deepgemm_copy" } do
    local dt = 1.8 + 0.15 * (b - 1)
    row("dt", backend, dt, "us/token", dt - 0.02, dt + 0.02)
    row("R", backend, 1e6 / dt, "token-layers/s", 1e6 / (dt + 0.02), "inf")
  end
  row("gain_R", "rapidgemm/deepgemm", 8.3, "%", 6.1, 10.2)
  row("mfu_layer", "rapidgemm", 47.5, "%")
end

-- Kernels of the scale swizzle: variant, share of a copy's speed at 4096 and at 512 columns, occupancy by the
-- launch and as achieved, bytes used of the sectors loaded and stored, percent.
local SWIZZLE = { { "smxx_naive", 0.134, 0.2, 100, 15, 6, 100 }, { "smxx_col_parallel", 0.227, 0.31, 100, 80, 12, 13 },
  { "smxx_vec16", 0.258, 0.33, 56, 50, 12, 100 }, { "smxx_smem", 0.77, 0.65, 81, 62, 96, 100 },
  { "sm90_tma", 0.87, 0.78, 38, 35, "-", 100 }, { "smxx_registers", 0.9, 0.87, 56, 51, 71, 100 } }

local function swizzle_copy_us(bytes) return 1.4 + bytes / 4e6 end

-- Calls fn(p, kernel, time_us, copy_us) for each K-grouped problem and each kernel.
local function each_swizzle(fn)
  for _, cols in ipairs { 4096, 512 } do
    for _, rows in ipairs { 8192, 7168, 5120, 2048 } do
      for _, groups in ipairs { 8, 32 } do
        local p = { grouping = "k_groups", rows = rows, cols = cols, groups = groups,
          bytes = rows * (2 * cols + 1.5 * groups) }
        for _, kernel in ipairs(SWIZZLE) do
          local share = kernel[cols == 4096 and 2 or 3] * (groups == 8 and 1 or 0.98)
          local copy_us = swizzle_copy_us(p.bytes)
          fn(p, kernel, copy_us / share, copy_us)
        end
      end
    end
  end
end

-- The same for the other groupings.
local function each_other(fn)
  for _, other in ipairs { { "m_groups", 131072, 224, 8, 0.94 }, { "m_groups", 131072, 64, 8, 0.91 },
    { "m_groups", 16640, 160, 8, 0.8 }, { "per_group_3d", 2560, 96, 32, 0.93 }, { "dense", 32768, 96, 1, 0.89 } } do
    local p = { grouping = other[1], rows = other[2], cols = other[3], groups = other[4] }
    p.bytes = 2 * p.rows * p.cols * (p.grouping == "per_group_3d" and p.groups or 1)
    local copy_us = swizzle_copy_us(p.bytes)
    for i, variant in ipairs { "sm90_bulk", "smxx_registers", "smxx_windows" } do
      if p.grouping == "m_groups" or variant ~= "smxx_windows" then
        fn(p, variant, copy_us / other[5] * (1 + 0.02 * i), copy_us)
      end
    end
  end
end

local function swizzle_row(p, variant, time_us, copy_us, more)
  local row = { grouping = p.grouping, rows = p.rows, cols = p.cols, groups = p.groups, variant = variant,
    time_us = time_us, time_us_lo = time_us * 0.99, time_us_hi = time_us * 1.02, copy_us = copy_us,
    copy_ratio = copy_us / time_us, logical_gbps = p.bytes / time_us * 1e-3 }
  for column, value in pairs(more) do row[column] = value end
  return row
end

-- Block sizes and tiles of a block, the fastest first.
local function each_block(naive, fn)
  for _, threads in ipairs { 128, 256, 512, 64 } do
    for _, tiles in ipairs(naive and { "-" } or { 16, 32, 8 }) do fn(threads, tiles) end
  end
end

function builders.scale_swizzle(add)
  local schema = require("tilelab.draw.scale_swizzle").schema
  local function row(p, variant, time_us, copy_us, more)
    local made = swizzle_row(p, variant, time_us, copy_us, more)
    for _, column in ipairs(schema) do made[column[1]] = made[column[1]] or "-" end
    add(made)
  end
  each_swizzle(function(p, kernel, time_us, copy_us)
    local naive, i = kernel[1] == "smxx_naive", 0
    if naive and p.groups == 8 then
      row(p, "host_loop", 30000, copy_us, { flush = "none", call_us = 30000 })
    end
    each_block(naive, function(threads, tiles)
      i = i + 1
      row(p, kernel[1], time_us * (0.995 + 0.005 * i), copy_us, { flush = "dirty", block_threads = threads,
        tiles_per_block = tiles, call_us = time_us + 6, occupancy_theoretical_pct = kernel[4], limiter = "registers",
        waves = 7.5, dram_gbps = i == 1 and 2000 or "-", occupancy_achieved_pct = i == 1 and kernel[5] or "-",
        bank_conflict_pct = i == 1 and 0 or "-", sectors_per_request_ld = i == 1 and kernel[1] ~= "sm90_tma" and 16
        or "-", sectors_per_request_st = i == 1 and 16 or "-", top_stall = i == 1 and "long_scoreboard" or "-" })
    end)
    row(p, kernel[1], time_us * 0.9, copy_us * 0.87, { flush = "clean", block_threads = 128,
      tiles_per_block = naive and "-" or 16 })
  end)
  each_other(function(p, variant, time_us, copy_us)
    row(p, variant, time_us, copy_us, { flush = "dirty", block_threads = 256, tiles_per_block = 32, call_us = 8,
      occupancy_achieved_pct = 40, top_stall = "long_scoreboard", bank_conflict_pct = 0, sectors_per_request_st = 16 })
  end)
end

local AHEAD = { sm90_bulk = { "ahead=1", "ahead=2" }, smxx_windows = { "-" },
  smxx_registers = { "prefetch_bytes=32", "prefetch_bytes=256" } }

function builders.scale_swizzle_causes(add)
  local schema = require("tilelab.draw.scale_swizzle_causes").schema
  local function row(series, p, variant, setting, time_us, copy_us, more)
    local made = swizzle_row(p, variant, time_us, copy_us, more)
    made.series, made.setting, made.registers = series, setting, 54
    for _, column in ipairs(schema) do made[column[1]] = made[column[1]] or "-" end
    add(made)
  end
  each_swizzle(function(p, kernel, time_us, copy_us)
    local more = { occupancy_theoretical_pct = kernel[4], occupancy_achieved_pct = kernel[5], limiter = "registers",
      load_efficiency_pct = kernel[6], store_efficiency_pct = kernel[7], bank_conflict_pct = 0, issue_active_pct = 30,
      alu_pct = 12, l1_pct = 40, instructions = 1e6, dram_gbps = 2000 }
    for i, reason in ipairs(require("tilelab.scale_swizzle.counters").STALLS) do
      more["stall_" .. reason .. "_pct"] = i == 1 and 40 or (i * kernel[5]) % 11
    end
    more.stall_other_pct = 10
    row("variants", p, kernel[1], "block_threads=128", time_us, copy_us, more)
    if p.rows == 8192 and p.groups == 8 and kernel[1] ~= "sm90_tma" then
      for step, kib in ipairs { 1, 14, 18, 22, 28, 37, 44, 56, 75, 113 } do
        local fewer = math.max(1, step - 1) -- the first two have as many blocks: all L1, and the least
        row("occupancy", p, kernel[1], "held_shared_kib=" .. kib, time_us * (1 + 0.002 * step ^ 3), copy_us,
          { occupancy_theoretical_pct = kernel[4] / fewer, occupancy_achieved_pct = kernel[5] / fewer,
            limiter = "registers", issue_active_pct = 30,
            in_flight_kib = kernel[1] == "smxx_registers" and 72 / fewer or nil })
      end
    end
    if p.rows == 8192 and p.groups == 8 and kernel[1] == "sm90_tma" then
      for _, blocks in ipairs { 2, 4 } do
        for _, stages in ipairs { 1, 2, 4 } do
          row("in_flight", p, kernel[1], ("blocks_per_multiprocessor=%d num_stages=%d"):format(blocks, stages),
            time_us * (1 + 1 / (blocks * stages)), copy_us, { in_flight_kib = 10 * blocks * stages,
              occupancy_achieved_pct = 6 * blocks, occupancy_theoretical_pct = 38 })
        end
      end
      for _, threads in ipairs { 64, 256 } do
        row("warps", p, kernel[1], "block_threads=" .. threads, time_us * (1 + 16 / threads), copy_us,
          { in_flight_kib = 160 })
      end
      for _, bytes in ipairs { 8, 16 } do
        row("load_bytes", p, "smxx_registers", ("held_shared_kib=56 load_bytes=%d"):format(bytes),
          time_us * (1.2 - bytes / 100), copy_us, { occupancy_theoretical_pct = 25, in_flight_kib = 2 * bytes })
      end
      for count = 1, 2 do
        row("stores", p, "smxx_registers", "groups_a_store=" .. count, time_us * (1.2 - count / 10), copy_us, {})
      end
    end
  end)
  each_other(function(p, variant, time_us, copy_us)
    for i, setting in ipairs(AHEAD[variant]) do
      if p.grouping == "m_groups" then row("ahead", p, variant, setting, time_us * (1.2 - i / 10), copy_us, {}) end
    end
    row("variants", p, variant, "block_threads=256", time_us, copy_us, { occupancy_achieved_pct = 40,
      load_efficiency_pct = variant == "smxx_registers" and 99 or nil, store_efficiency_pct = 100,
      bank_conflict_pct = 0 })
  end)
end

-- Experiments that can be made up, sorted.
function made_up.experiments()
  local names = {}
  for name in pairs(builders) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- Writes the record of an experiment to lab.recorded.folder by way of a run in `out`; `change` may
-- alter a row before it is written. Returns the data.
function made_up.record(experiment, out, change)
  local writer <close> = lab.recorded.open { experiment = experiment, device = "cpu", out = out,
    kernels = { "gemm" }, record = true, seed = 1, extra = { tokens_an_update = 65536, recorded_updates = 3,
      flag_model = "30b-a3b", flag_backends = "rapidgemm,deepgemm,deepgemm_copy", flag_layers = "1,2",
      flag_seed = 1 } }
  builders[experiment](function(row)
    if change then change(row) end
    writer:row(row)
  end)
  return writer:close()
end

return made_up
