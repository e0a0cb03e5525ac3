-- Values computed from counters, each in this one place: label, unit, formula as text, sentence,
-- the labels it needs, and the function. `v` holds counters and earlier derived values by label;
-- `v.time_us` is the time of the same work measured without counters, never the profiled one.
--
-- A value is absent where something it needs is, or where it would divide by zero.

local function ratio(a, b)
  if b == 0 then return nil end
  return a / b
end

local rows = {
  { "sm_clock_mhz", "MHz", "sm_clock / 1e6", "Clock of the multiprocessors while counters ran.",
    { "sm_clock" }, function(v) return v.sm_clock / 1e6 end },
  { "dram_clock_mhz", "MHz", "dram_clock / 1e6", "Clock of the memory while counters ran.",
    { "dram_clock" }, function(v) return v.dram_clock / 1e6 end },

  { "dram_bytes", "byte", "dram_read + dram_write", "Bytes moved to and from device memory.",
    { "dram_read", "dram_write" }, function(v) return v.dram_read + v.dram_write end },
  { "dram_gbps", "GB/s", "dram_bytes / time", "Bandwidth of device memory, by the time without counters.",
    { "dram_bytes", "time_us" }, function(v) return ratio(v.dram_bytes, v.time_us * 1e3) end },

  { "l2_bytes", "byte", "32 (l2_read_sectors + l2_write_sectors)", "Bytes that L2 read and wrote.",
    { "l2_read_sectors", "l2_write_sectors" },
    function(v) return 32 * (v.l2_read_sectors + v.l2_write_sectors) end },
  { "l2_miss_rate_from_sm", "%", "100 l2_misses_from_sm / l2_sectors_from_sm",
    "Sectors that multiprocessors asked L2 for and that were not there.",
    { "l2_misses_from_sm", "l2_sectors_from_sm" },
    function(v) return ratio(100 * v.l2_misses_from_sm, v.l2_sectors_from_sm) end },

  { "wgmma_tflops", "TFLOP/s", "wgmma_bf16_flops / time",
    "FLOPs of wgmma, padding included, by the time without counters.",
    { "wgmma_bf16_flops", "time_us" }, function(v) return ratio(v.wgmma_bf16_flops, v.time_us * 1e6) end },
  { "tensor_peak_tflops", "TFLOP/s", "wgmma_bf16_peak sm_clock",
    "What the tensor cores could do on bf16 at the clock of this region.",
    { "wgmma_bf16_peak", "sm_clock" }, function(v) return v.wgmma_bf16_peak * v.sm_clock / 1e12 end },

  { "shared_conflict_share", "%", "100 shared_conflicts / shared_wavefronts",
    "Wavefronts of shared memory that bank conflicts added.",
    { "shared_conflicts", "shared_wavefronts" },
    function(v) return ratio(100 * v.shared_conflicts, v.shared_wavefronts) end },
  { "wavefronts_per_load", "wavefront", "shared_wavefronts_load / shared_loads",
    "Passes a load from shared memory takes: n for an n-way bank conflict.",
    { "shared_wavefronts_load", "shared_loads" },
    function(v) return ratio(v.shared_wavefronts_load, v.shared_loads) end },
  { "wavefronts_per_store", "wavefront", "shared_wavefronts_store / shared_stores",
    "The same of stores.",
    { "shared_wavefronts_store", "shared_stores" },
    function(v) return ratio(v.shared_wavefronts_store, v.shared_stores) end },

  { "imbalance", "ratio", "sm_active_cycles_max / sm_active_cycles",
    "The busiest multiprocessor over the average one; 1 is even.",
    { "sm_active_cycles_max", "sm_active_cycles" },
    function(v) return ratio(v.sm_active_cycles_max, v.sm_active_cycles) end },

  { "spill_bytes", "byte", "32 (local_load_sectors + local_store_sectors)", "Traffic of local memory at L1.",
    { "local_load_sectors", "local_store_sectors" },
    function(v) return 32 * (v.local_load_sectors + v.local_store_sectors) end },

  -- The hierarchical roofline. Work and traffic are totals, so intensity needs no time.
  { "dram_peak_gbps", "GB/s", "dram_peak_per_cycle dram_clock", "What device memory could move at its clock.",
    { "dram_peak_per_cycle", "dram_clock" }, function(v) return v.dram_peak_per_cycle * v.dram_clock / 1e9 end },
  -- Shares of the peak by the time without counters: a counted region also holds the start and the
  -- stop of the counters, so its shares of elapsed cycles are too low where kernels are short.
  { "dram_utilisation", "%", "100 dram_gbps / dram_peak_gbps", "Bandwidth of device memory, of its peak.",
    { "dram_gbps", "dram_peak_gbps" }, function(v) return ratio(100 * v.dram_gbps, v.dram_peak_gbps) end },
  { "tensor_utilisation", "%", "100 wgmma_tflops / tensor_peak_tflops",
    "FLOPs of wgmma, of what the tensor cores can do at the counted clock.",
    { "wgmma_tflops", "tensor_peak_tflops" },
    function(v) return ratio(100 * v.wgmma_tflops, v.tensor_peak_tflops) end },
  { "l2_peak_gbps", "GB/s", "32 l2_to_sm_peak l2_clock", "What L2 could send to the multiprocessors at its clock.",
    { "l2_to_sm_peak", "l2_clock" }, function(v) return 32 * v.l2_to_sm_peak * v.l2_clock / 1e9 end },
  { "l2_to_sm_bytes", "byte", "32 l2_to_sm_cycles", "Bytes that L2 sent to the multiprocessors.",
    { "l2_to_sm_cycles" }, function(v) return 32 * v.l2_to_sm_cycles end },
  { "l2_to_sm_gbps", "GB/s", "l2_to_sm_bytes / time", "The same by the time without counters.",
    { "l2_to_sm_bytes", "time_us" }, function(v) return ratio(v.l2_to_sm_bytes, v.time_us * 1e3) end },
  { "dram_intensity", "flop/byte", "wgmma_bf16_flops / dram_bytes", "FLOPs a byte of device memory.",
    { "wgmma_bf16_flops", "dram_bytes" }, function(v) return ratio(v.wgmma_bf16_flops, v.dram_bytes) end },
  { "l2_intensity", "flop/byte", "wgmma_bf16_flops / l2_to_sm_bytes", "FLOPs a byte that L2 sent.",
    { "wgmma_bf16_flops", "l2_to_sm_bytes" }, function(v) return ratio(v.wgmma_bf16_flops, v.l2_to_sm_bytes) end },
}

local derived = { list = {}, by_label = {} }

-- Raises where a label is taken; `needs` may name what is derived before.
function derived.add(row)
  local value = { label = row[1], unit = row[2], formula = row[3], text = row[4], needs = row[5], compute = row[6] }
  if derived.by_label[value.label] then error(("there is a derived value %s already"):format(value.label), 2) end
  derived.by_label[value.label] = value
  derived.list[#derived.list + 1] = value
end

for _, row in ipairs(rows) do derived.add(row) end

return derived
