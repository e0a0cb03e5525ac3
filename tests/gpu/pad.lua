-- pad_index, pad_rows and unpad_rows on the GPU against the CPU, bit for bit.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local device = lab.device "cuda"

local TAIL = 5 -- rows past the last offset

local function on_gpu(host)
  return lab.tensor { device = device, dtype = host.dtype, shape = host.shape }:copy(host)
end

local function same(gpu, host)
  return lab.compare(gpu, host, { absolute = 0 }).mismatched_bits == 0
end

local function same_index(gpu, host)
  local got = lab.tensor { dtype = "i32", shape = gpu.shape }:copy(gpu):totable()
  for i, value in ipairs(host:totable()) do
    if got[i] ~= value then return false end
  end
  return true
end

-- Offsets of groups of those sizes, each group's start a multiple of `align`.
local function offsets_of(sizes, align)
  local offsets = { 0 }
  for i, size in ipairs(sizes) do offsets[i + 1] = offsets[i] + (size + align - 1) // align * align end
  return lab.tensor_from("cpu", "i32", offsets), offsets[#offsets]
end

local function index_case(name, sizes, align)
  local offsets = offsets_of(sizes, 1)
  local _, rows = offsets_of(sizes, align)
  local function run(variant, where, group_offsets)
    local padded = lab.tensor { device = where, dtype = "i32", shape = { #sizes + 1 } }
    local experts = lab.tensor { device = where, dtype = "i32", shape = { rows + TAIL } }
    lab.check(lab.plan { op = "pad_index", variant = variant, group_offsets = group_offsets, padded_offsets = padded,
      row_experts = experts, align = align }):launch()
    return padded, experts
  end
  local padded, experts = run("cpu_plain", lab.device "cpu", offsets)
  local gpu_padded, gpu_experts = run("smxx_vec16", device, on_gpu(offsets))
  t.ok(same_index(gpu_padded, padded) and same_index(gpu_experts, experts),
    ("pad_index: %s, align %d"):format(name, align))
end

-- y of both sides, poisoned before: rows past the last offset must still hold it.
local function move(op, x, to_rows, group_offsets, padded_offsets)
  local result = {}
  for _, where in ipairs { lab.device "cpu", device } do
    local gpu = where == device
    local y = lab.tensor { device = where, dtype = x.dtype, shape = { to_rows, x.shape[2] } }
    lab.check(lab.plan { op = op, variant = gpu and "smxx_vec16" or "cpu_plain", x = gpu and on_gpu(x) or x, y = y,
      group_offsets = gpu and on_gpu(group_offsets) or group_offsets,
      padded_offsets = gpu and on_gpu(padded_offsets) or padded_offsets }):launch()
    result[#result + 1] = y
  end
  return result[1], result[2]
end

local function rows_case(name, sizes, dtype, d)
  local offsets, rows = offsets_of(sizes, 1)
  local padded, padded_rows = offsets_of(sizes, 128)
  local x = lab.tensor { dtype = dtype, shape = { rows + TAIL, d } }:normal { seed = d }
  local y, gpu_y = move("pad_rows", x, padded_rows + TAIL, offsets, padded)
  t.ok(same(gpu_y, y), ("pad_rows: %s, d %d, %s"):format(name, d, dtype))
  local back, gpu_back = move("unpad_rows", y, rows + TAIL, offsets, padded)
  t.ok(same(gpu_back, back), ("unpad_rows: %s, d %d, %s"):format(name, d, dtype))
end

local function every_size(count)
  local sizes = {}
  for i = 1, count do sizes[i] = i * 37 % 301 end
  return sizes
end

local CASES = {
  { "one group", { 77 } },
  { "whole tiles", { 128, 256, 0, 384 } },
  { "empty groups", { 0, 0, 5, 0, 0, 129, 1, 0 } },
  { "all empty", { 0, 0, 0 } },
  { "one takes all", { 0, 0, 1517, 0 } },
  { "33 groups", every_size(33) },
}
for _, case in ipairs(CASES) do
  index_case(case[1], case[2], 1)
  index_case(case[1], case[2], 128)
  for _, d in ipairs { 8, 72, 256, 1280 } do rows_case(case[1], case[2], "bf16", d) end
  rows_case(case[1], case[2], "fp32", 20)
end
index_case("1025 groups", every_size(1025), 128)
rows_case("1025 groups", every_size(1025), "bf16", 16)

-- --- what it refuses ---------------------------------------------------------------------------

local function gpu(dtype, ...) return lab.tensor { device = device, dtype = dtype, shape = { ... } } end
local offsets = on_gpu((offsets_of({ 3, 4 }, 1)))
local padded = on_gpu((offsets_of({ 3, 4 }, 128)))
local function args(x, y)
  return { op = "pad_rows", variant = "smxx_vec16", x = x, y = y, group_offsets = offsets, padded_offsets = padded }
end
local legal, reason = lab.legal(args(gpu("bf16", 7, 12), gpu("bf16", 256, 12)))
t.ok(not legal, "rows of 24 bytes")
t.like(reason, "make d a multiple of 8", "with the remedy")
local plan = lab.check(lab.plan(args(gpu("bf16", 57):normal {}:view(1, { 7, 8 }), gpu("bf16", 256, 8))))
t.error(function() plan:launch() end, "aligned to 16 bytes", "rows at an odd address")
t.done()
