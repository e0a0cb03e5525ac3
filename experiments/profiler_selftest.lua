local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: do the counters say what is known beforehand? Kernels whose bytes, FLOPs, wavefronts,
-- sectors and occupancy follow from what they do, profiled one by one.

local GIB = 1024 * 1024 * 1024

-- Sectors of 32 bytes that 32 lanes touch, `stride` words apart, from an aligned start.
local function sectors(stride)
  local count, last = 0, nil
  for lane = 0, 31 do
    local sector = math.floor(lane * stride * 4 / 32)
    if sector ~= last then count, last = count + 1, sector end
  end
  return count
end

local function fp32(device, ...) return lab.check(lab.tensor { device = device, dtype = "fp32", shape = { ... } }) end

local function cases(device)
  local list = {}
  local function case(name, plan, expected) list[#list + 1] = { name = name, plan = plan, expected = expected } end
  local half = 16 * GIB
  local src, dst = fp32(device, half / 4):fill(1.5), fp32(device, half / 4)
  case("copy 16 GiB to 16 GiB", { op = "probe_copy", variant = "smxx_vec16", src = src, dst = dst },
    { ["dram__bytes_read.sum"] = half, ["dram__bytes_write.sum"] = half })
  local bf16 = function(...)
    return lab.tensor { device = device, dtype = "bf16", shape = { ... } }:normal { seed = 1 }
  end
  local blocks, repeats = 4 * device.multiprocessors, 1000
  case("wgmma", { op = "probe_mma", variant = "sm90_wgmma", a = bf16(64, 64), b = bf16(256, 64),
    d = fp32(device, blocks, 64, 256), repeats = repeats },
    { ["sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum"] = 2 * 64 * 256 * 64 * blocks * repeats })
  for ways = 1, 32 do
    case(("shared memory, %d-way conflict"):format(ways), { op = "probe_conflict", variant = "smxx_plain",
      dst = fp32(device, 32), ways = ways, loads = 64 },
      { ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] = 64 * ways })
  end
  for stride = 1, 32 do
    case(("loads, stride %d words"):format(stride), { op = "probe_stride", variant = "smxx_plain", src = src,
      dst = fp32(device, 256 * 1024), stride = stride },
      { ["l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"] = sectors(stride) })
  end
  return list
end

-- One block of the occupancy probe for every place, each limited by something else.
local limits = {
  { by = "registers", registers = "many", threads = 256 },
  { by = "shared memory", threads = 128, shared_bytes = 60 * 1024 },
  { by = "threads", threads = 1024 },
  { by = "blocks", threads = 32 },
}

lab.main(function()
  local selftest = require "tilelab.selftest"
  local opt = lab.options {
    summary = "Profile kernels whose counters are known beforehand.",
    { "device", "string", "cuda", "GPU to test" },
    { "out", "string", "out/profiler_selftest", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the result under experiments/recorded" },
  }
  local device = lab.check(lab.gpu(opt.device))
  local out = lab.check(lab.recorded.open { experiment = "profiler_selftest", device = device, out = opt.out,
    kernels = { "probe" }, record = opt.record, seed = 1 })
  selftest.counters(device, cases(device), out)
  selftest.occupancy(device, limits, out)
  lab.draw.print(lab.draw.record(out:close(), { folder = opt.out }))
end)
