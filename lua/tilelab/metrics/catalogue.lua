-- Metrics that tilelab ships: NVIDIA's name, a short label, the unit of the value as CUPTI gives
-- it, and one sentence. Labels are unique; derived values (derived.lua) have labels of their own.
--
-- Percentages of a peak are of the sustained peak: "elapsed" over all cycles of the profiled
-- region, "active" over the cycles in which that part of the chip had work.

local rows = {
  -- Clocks: in every group, since a rate without its clock says nothing.
  { "sm__cycles_elapsed.avg.per_second", "sm_clock", "Hz",
    "Clock of the multiprocessors while the region ran; too low in a short region, unlike gpc_clock." },
  { "gpc__cycles_elapsed.avg.per_second", "gpc_clock", "Hz",
    "Clock of the processing clusters; the multiprocessors share it." },
  { "dram__cycles_elapsed.avg.per_second", "dram_clock", "Hz", "Clock of the memory." },

  -- Occupancy.
  { "sm__warps_active.avg.pct_of_peak_sustained_active", "achieved_occupancy", "%",
    "Warps resident on a multiprocessor that has any, of the 64 it can hold." },
  { "sm__warps_active.avg.per_cycle_active", "active_warps", "warp",
    "The same as a number of warps." },
  { "sm__ctas_launched.sum", "blocks_launched", "block", "Thread blocks that were started." },
  { "gpc__cgas_launched.sum", "clusters_launched", "cluster",
    "Clusters of thread blocks that were started." },
  { "tpc__warp_launch_cycles_stalled_shader_cs_reason_register_allocation.sum", "launch_stalled_registers", "cycle",
    "Cycles in which a block waited for registers; several reasons may hold at once." },
  { "tpc__warp_launch_cycles_stalled_shader_cs_reason_shmem_allocation.sum", "launch_stalled_shared", "cycle",
    "Cycles in which a block waited for shared memory." },
  { "tpc__warp_launch_cycles_stalled_shader_cs_reason_cta_allocation.sum", "launch_stalled_blocks", "cycle",
    "Cycles in which a block waited for a free block slot." },
  { "tpc__warp_launch_cycles_stalled_shader_cs_reason_barrier_allocation.sum", "launch_stalled_barriers", "cycle",
    "Cycles in which a block waited for named barriers." },

  -- Device memory.
  { "dram__bytes_read.sum", "dram_read", "byte", "Bytes read from device memory." },
  { "dram__bytes_write.sum", "dram_write", "byte",
    "Bytes written to device memory; what stays in L2 when the region ends is missing." },
  { "dram__bytes.sum.per_second", "dram_rate", "byte/s",
    "Bytes moved over the time of the profiled region, which is longer than the kernel's own." },
  { "dram__bytes.sum.peak_sustained", "dram_peak_per_cycle", "byte/cycle",
    "Bytes a memory cycle can move at most." },
  { "dram__throughput.avg.pct_of_peak_sustained_elapsed", "dram_throughput", "%",
    "Use of the busiest part of the memory system, of its peak." },
  { "dram__bytes_read.sum.pct_of_peak_sustained_elapsed", "dram_read_share", "%",
    "Bytes read, of the memory's peak." },
  { "dram__bytes_write.sum.pct_of_peak_sustained_elapsed", "dram_write_share", "%",
    "Bytes written, of the memory's peak." },

  -- L2.
  { "lts__t_sector_hit_rate.pct", "l2_hit_rate", "%", "Sectors found in L2, of those looked up." },
  { "lts__throughput.avg.pct_of_peak_sustained_elapsed", "l2_throughput", "%",
    "Use of the busiest part of L2, of its peak." },
  { "lts__t_sectors_op_read.sum", "l2_read_sectors", "sector",
    "32-byte sectors read in L2, whoever asked." },
  { "lts__t_sectors_op_write.sum", "l2_write_sectors", "sector", "32-byte sectors written in L2." },
  { "lts__t_sectors_srcunit_tex.sum", "l2_sectors_from_sm", "sector",
    "Sectors that the multiprocessors asked L2 for." },
  { "lts__t_sectors_srcunit_tex_lookup_miss.sum", "l2_misses_from_sm", "sector",
    "Of these, the ones that were not there." },
  { "lts__t_bytes.sum.per_second", "l2_rate", "byte/s",
    "Bytes requested of L2 over the time of the profiled region." },
  { "lts__lts2xbar_cycles_active.sum", "l2_to_sm_cycles", "cycle",
    "Cycles in which a slice of L2 sent 32 bytes." },
  { "lts__lts2xbar_cycles_active.sum.per_second", "l2_to_sm_rate", "1/s", "The same, a second." },
  { "lts__lts2xbar_cycles_active.sum.peak_sustained", "l2_to_sm_peak", "1/cycle",
    "The same at most, an L2 cycle: the slices that can send." },
  { "lts__cycles_elapsed.avg.per_second", "l2_clock", "Hz", "Clock of L2." },

  -- Tensor cores.
  { "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", "tensor_elapsed", "%",
    "Cycles in which the tensor cores worked, of all cycles of the region." },
  { "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "tensor_active", "%",
    "The same, of the cycles in which the multiprocessor had work." },
  { "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed", "tensor_half_elapsed", "%",
    "The part of tensor_elapsed that is fp16, bf16 or fp8, mma.sync and wgmma alike." },
  { "sm__inst_executed_pipe_tensor_op_gmma.sum", "wgmma_instructions", "inst",
    "Warp instructions of wgmma; 0 means that the kernel does not use it." },
  { "sm__inst_executed_pipe_tensor_op_hmma.sum", "hmma_instructions", "inst",
    "Warp instructions of fp16, bf16 and fp8 matrix products, wgmma included." },
  { "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum", "wgmma_bf16_flops", "flop",
    "FLOPs that wgmma did on bf16 with fp32 accumulators, padding included." },
  { "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum.per_cycle_elapsed",
    "wgmma_bf16_per_cycle", "flop/cycle",
    "The same over the cycles of the region." },
  { "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum.peak_sustained", "wgmma_bf16_peak", "flop/cycle",
    "The same at most: 4096 a multiprocessor on H100 and H200." },

  -- Shared memory.
  { "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "shared_conflicts", "conflict",
    "Extra wavefronts for bank conflicts, of all accesses." },
  { "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "shared_conflicts_load", "conflict",
    "Those of loads." },
  { "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", "shared_conflicts_store", "conflict",
    "Those of stores." },
  { "l1tex__data_bank_conflicts_type_arbitration.sum", "shared_arbitration", "conflict",
    "Extra wavefronts because others had the banks: what the copy engine writes, what loads bring." },
  { "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_gmma.sum", "shared_conflicts_wgmma", "conflict",
    "Those of wgmma operands; a wrong swizzle shows here." },
  { "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "shared_wavefronts", "wavefront",
    "Passes through the shared-memory pipe, of all accesses." },
  { "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "shared_wavefronts_load", "wavefront",
    "Those of loads." },
  { "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "shared_wavefronts_store", "wavefront",
    "Those of stores." },
  { "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum", "shared_wavefronts_wgmma", "wavefront",
    "Those of wgmma operands." },
  { "smsp__inst_executed_op_shared_ld.sum", "shared_loads", "inst",
    "Warp instructions that load from shared memory." },
  { "smsp__inst_executed_op_shared_st.sum", "shared_stores", "inst",
    "Warp instructions that store to shared memory." },
  { "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct", "shared_efficiency", "%",
    "Bytes that a wavefront moved, of the 128 it can." },

  -- Coalescing.
  { "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio", "sectors_per_load", "sector",
    "Sectors a warp's global load touches; 4 is ideal for 32 times 4 bytes." },
  { "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio", "sectors_per_store", "sector",
    "The same of global stores." },
  { "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", "load_efficiency", "%",
    "Bytes that were asked for, of the sectors that global loads fetched." },
  { "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct", "store_efficiency", "%",
    "The same of global stores." },

  -- TMA.
  { "sm__inst_executed_pipe_tma.sum", "tma_instructions", "inst",
    "Warp instructions for the TMA unit." },
  { "sm__pipe_tma_cycles_active.avg.pct_of_peak_sustained_elapsed", "tma_elapsed", "%",
    "Cycles in which the TMA pipe worked, of all cycles of the region." },
  { "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum", "tma_load", "byte",
    "Bytes that TMA loads brought from L2." },
  { "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld_dest_self.sum", "tma_load_self", "byte",
    "Those for the multiprocessor that asked." },
  { "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld_dest_multicast.sum", "tma_load_multicast", "byte",
    "Those for several multiprocessors of a cluster." },

  -- Speed of light.
  { "sm__throughput.avg.pct_of_peak_sustained_elapsed", "sm_throughput", "%",
    "Use of the busiest part of the multiprocessors, of its peak." },
  { "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "memory_throughput", "%",
    "Use of the busiest part of L1, L2 and memory, of its peak." },
  { "l1tex__throughput.avg.pct_of_peak_sustained_active", "l1_throughput", "%",
    "Use of the busiest part of L1, of its peak." },
  { "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "gpu_dram_throughput", "%",
    "Use of the busiest part of the memory system, of its peak." },
  { "sm__cycles_active.avg", "sm_active_cycles", "cycle",
    "Cycles in which a multiprocessor had a warp, on average." },
  { "sm__cycles_active.min", "sm_active_cycles_min", "cycle",
    "The same of the multiprocessor that had least." },
  { "sm__cycles_active.max", "sm_active_cycles_max", "cycle",
    "The same of the one that had most." },
  { "gpc__cycles_elapsed.max", "elapsed_cycles", "cycle", "Cycles of the region." },

  -- Spilling.
  { "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "local_load_sectors", "sector",
    "Sectors of local memory that were loaded: spilled registers and arrays." },
  { "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", "local_store_sectors", "sector",
    "Sectors of local memory that were stored." },
  { "smsp__sass_inst_executed_op_local.sum", "local_instructions", "inst",
    "Warp instructions on local memory." },

  -- Blackwell (sm_100).
  { "sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed", "tc_elapsed", "%",
    "Cycles in which the fifth-generation tensor cores worked (tcgen05), of all cycles." },
  { "sm__inst_executed_pipe_tc.sum", "tc_instructions", "inst", "Instructions of tcgen05." },
  { "sm__inst_executed_pipe_tc_scope_2cta.sum", "tc_pair_instructions", "inst",
    "Those that two blocks do together." },
  { "sm__mem_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", "tensor_memory_elapsed", "%",
    "Cycles in which tensor memory worked, of all cycles." },
  { "sm__ops_path_tensor_op_utchmma_src_bf16_dst_fp32_sparsity_off.sum", "tc_bf16_flops", "flop",
    "FLOPs that tcgen05 did on bf16 with fp32 accumulators, padding included." },

  -- Samples over time (core/pmsampling.h has a metric list of its own).
  { "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", "sm_busy", "%",
    "Cycles in which a multiprocessor had a warp, on average." },
  { "sm__inst_executed_realtime.avg.per_cycle_elapsed", "instructions_per_cycle", "inst/cycle",
    "Warp instructions a multiprocessor executed a cycle." },
  { "sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed", "tensor_busy", "%",
    "Cycles in which the tensor cores worked." },
  { "dramc__read_throughput.avg.pct_of_peak_sustained_elapsed", "dram_read_busy", "%",
    "Reads of device memory, of its peak." },
  { "dramc__write_throughput.avg.pct_of_peak_sustained_elapsed", "dram_write_busy", "%",
    "Writes of device memory, of its peak." },
  { "tpc__warps_inactive_sm_active_realtime.avg.pct_of_peak_sustained_elapsed", "free_warps_busy_sm", "%",
    "Free warp slots of multiprocessors with work: occupancy that something limits." },
  { "tpc__warps_inactive_sm_idle_realtime.avg.pct_of_peak_sustained_elapsed", "free_warps_idle_sm", "%",
    "Warp slots of multiprocessors without work: an uneven or last wave." },
}

-- Why a warp did not issue: the average number of warps of a scheduler in that state, at each
-- instruction that it issued.
local stalls = {
  { "barrier", "waiting for the other warps of the block at a barrier" },
  { "branch_resolving", "waiting for the target of a branch" },
  { "dispatch_stall", "ready, but held back by the dispatcher" },
  { "drain", "finished, waiting for their stores to leave" },
  { "gmma", "waiting for a warpgroup to arrive at wgmma" },
  { "imc_miss", "waiting for a constant that was not cached" },
  { "lg_throttle", "waiting for room in the queue of local and global memory" },
  { "long_scoreboard", "waiting for data from global or local memory" },
  { "math_pipe_throttle", "waiting for a busy arithmetic or tensor pipe" },
  { "membar", "waiting at a memory barrier" },
  { "mio_throttle", "waiting for room in the queue of shared memory and special instructions" },
  { "misc", "for a reason without a name" },
  { "no_instruction", "waiting for their next instruction to be fetched" },
  { "not_selected", "ready, while another warp issued" },
  { "selected", "issuing: not a stall" },
  { "short_scoreboard", "waiting for data from shared memory or special functions" },
  { "sleeping", "asleep by their own wish" },
  { "tex_throttle", "waiting for room in the texture queue" },
  { "wait", "waiting a fixed number of cycles for their last instruction" },
}

local catalogue = { list = {}, by_name = {}, by_label = {} }

local function add(name, label, unit, text)
  assert(not catalogue.by_name[name], name)
  assert(not catalogue.by_label[label], label)
  local metric = { name = name, label = label, unit = unit, text = text }
  catalogue.list[#catalogue.list + 1] = metric
  catalogue.by_name[name], catalogue.by_label[label] = metric, metric
end

for _, row in ipairs(rows) do add(row[1], row[2], row[3], row[4]) end

catalogue.stalls = {} -- names in the order of the list above
for _, row in ipairs(stalls) do
  local name = ("smsp__average_warps_issue_stalled_%s_per_issue_active.ratio"):format(row[1])
  add(name, "stall_" .. row[1], "warp", ("Warps %s, at each issued instruction."):format(row[2]))
  catalogue.stalls[#catalogue.stalls + 1] = name
end

return catalogue
