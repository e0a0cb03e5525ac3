-- Groups of metrics by name, by labels of catalogue.lua. The three clocks are added to each group
-- of ranges. `chip` says for which chip a group is, GH100 (Hopper) by default; `use` "samples" is
-- for series over time instead of totals of a region.

local catalogue = require "tilelab.metrics.catalogue"

local clocks = { "sm_clock", "gpc_clock", "dram_clock" }

local stalls = {}
for i, name in ipairs(catalogue.stalls) do stalls[i] = catalogue.by_name[name].label end

local rows = {
  { "PAPER", "What a paper's table needs: occupancy, memory, tensor cores and clocks in a single pass.",
    { "achieved_occupancy", "dram_read", "dram_write", "dram_throughput", "tensor_elapsed", "tensor_active" } },
  { "OCC", "Achieved occupancy, what was launched, and what launches waited for.",
    { "achieved_occupancy", "active_warps", "blocks_launched", "clusters_launched",
      "launch_stalled_registers", "launch_stalled_shared", "launch_stalled_blocks", "launch_stalled_barriers" } },
  { "DRAM", "Bytes of device memory, and their share of the peak.",
    { "dram_read", "dram_write", "dram_rate", "dram_throughput", "dram_read_share", "dram_write_share" } },
  { "L2", "Hits, sectors and throughput of L2.",
    { "l2_hit_rate", "l2_throughput", "l2_read_sectors", "l2_write_sectors", "l2_sectors_from_sm",
      "l2_misses_from_sm", "l2_rate" } },
  { "TENSOR", "How busy the tensor cores were, with which instructions, and the FLOPs they did.",
    { "tensor_elapsed", "tensor_active", "tensor_half_elapsed", "wgmma_instructions", "hmma_instructions",
      "wgmma_bf16_flops", "wgmma_bf16_peak" } },
  { "SMEM", "Bank conflicts and wavefronts of shared memory.",
    { "shared_conflicts", "shared_conflicts_load", "shared_conflicts_store", "shared_conflicts_wgmma",
      "shared_wavefronts", "shared_wavefronts_load", "shared_wavefronts_store", "shared_wavefronts_wgmma",
      "shared_loads", "shared_stores", "shared_efficiency" } },
  { "COALESCE", "Sectors a request and bytes a sector of global accesses; TMA goes another way and does not show here.",
    { "sectors_per_load", "sectors_per_store", "load_efficiency", "store_efficiency" } },
  { "TMA", "Instructions and bytes of the TMA unit.",
    { "tma_instructions", "tma_elapsed", "tma_load", "tma_load_self", "tma_load_multicast" } },
  { "STALL", "Why warps did not issue, as a stack of average warps an issued instruction.", stalls },
  { "SOL", "Speed of light: the busiest part of each level, of its peak, and how evenly the multiprocessors worked.",
    { "sm_throughput", "memory_throughput", "l1_throughput", "l2_throughput", "gpu_dram_throughput",
      "sm_active_cycles", "sm_active_cycles_min", "sm_active_cycles_max", "elapsed_cycles" } },
  { "SPILL", "Traffic of local memory: spilled registers and arrays.",
    { "local_load_sectors", "local_store_sectors", "local_instructions" } },
  { "ROOFLINE", "FLOPs, bytes of each level, and the peaks of both.",
    { "wgmma_bf16_flops", "wgmma_bf16_per_cycle", "wgmma_bf16_peak", "dram_read", "dram_write", "dram_rate",
      "dram_peak_per_cycle", "l2_to_sm_cycles", "l2_to_sm_rate", "l2_to_sm_peak", "l2_clock" } },
  { "TENSOR_GB100", "The tensor cores of Blackwell (tcgen05).",
    { "tc_elapsed", "tc_instructions", "tc_pair_instructions", "tensor_memory_elapsed", "tc_bf16_flops" },
    chip = "GB100" },
  { "TIMELINE", "Activity of multiprocessors, tensor cores and memory as a series over time.",
    { "sm_busy", "instructions_per_cycle", "dram_read_busy", "dram_write_busy", "tensor_busy",
      "free_warps_busy_sm", "free_warps_idle_sm" }, use = "samples" },
}

local groups = {}
for _, row in ipairs(rows) do
  local group = { name = row[1], text = row[2], metrics = {}, chip = row.chip or "GH100", use = row.use or "ranges" }
  local function add(label) group.metrics[#group.metrics + 1] = assert(catalogue.by_label[label], label).name end
  for _, label in ipairs(row[3]) do add(label) end
  if group.use == "ranges" then
    for _, label in ipairs(clocks) do add(label) end
  end
  groups[#groups + 1] = group
end

return groups
