-- A case small enough for compute-sanitizer of every kernel that computes on tensor cores, moves rows
-- between padded and ragged groups, or brings scales into their blocked layout: several tiles a
-- cluster, an empty group, tails, both layouts.
--
-- What the tools see was tried by taking things out of sm90_ragged's epilogue. Without the barrier
-- before a TMA store, racecheck reports nothing, and the results are wrong: the async proxy is none of
-- its business, so poisoned outputs and these comparisons stand in. Without the proxy fence neither says
-- anything in a run; the fences are held by reading.

local lab = require "tilelab"
local grouped = require "tilelab.grouped"
local t = dofile("tests/lua/tap.lua")
local on_gpu = dofile("tests/lua/gpu.lua")
local device, gpu = on_gpu.device, on_gpu.tensor

local SIZES = { 200, 0, 33, 129 }


for _, layout in ipairs { "nt", "nn" } do
  for variant, alignment in pairs { sm90_ragged = 1, sm90_padded = 128 } do
    local args = grouped.operands { sizes = SIZES, n = 264, k = 136, device = device, layout = layout,
      alignment = alignment }
    local checker = grouped.checker { a = args.a, b = args.b, group_offsets = args.group_offsets, layout = layout }
    args.op, args.variant = "m_grouped_gemm", variant
    lab.check(lab.plan(args)):launch()
    local pass, text = checker:check(args.d)
    t.ok(pass, ("m_grouped_gemm/%s, %s: %s"):format(variant, layout, text))
  end
end

for variant, alignment in pairs { sm90_ragged = 1, sm90_cooperative = 1, sm90_padded = 128 } do
  local sizes = grouped.padded(SIZES, alignment)
  local offsets = grouped.offsets(sizes)
  local rows = offsets[#offsets]
  local args = { op = "k_grouped_gemm", variant = variant, beta = 1, a = grouped.fill(gpu("bf16", rows, 136), 1),
    b = grouped.fill(gpu("bf16", rows, 264), 2), d = gpu("fp32", #sizes, 136, 264):fill(0),
    group_offsets = lab.tensor_from(device, "i32", offsets),
    counts_host = variant == "sm90_padded" and lab.tensor_from("cpu", "i32", sizes) or nil }
  local checker = grouped.checker { op = args.op, a = args.a, b = args.b, group_offsets = args.group_offsets, beta = 1,
    relative = 0, scaled = grouped.wgrad_scaled(200) }
  lab.check(lab.plan(args)):launch()
  local pass, text = checker:check(args.d)
  t.ok(pass, ("k_grouped_gemm/%s: %s"):format(variant, text))
end

local offsets = grouped.offsets(SIZES)
local padded = grouped.offsets(grouped.padded(SIZES, 128))
local x, y, back = grouped.fill(gpu("bf16", 362, 264), 3), gpu("bf16", padded[5], 264), gpu("bf16", 362, 264)
local group_offsets, padded_offsets = lab.tensor_from(device, "i32", offsets), gpu("i32", 5)
lab.check(lab.plan { op = "pad_index", variant = "smxx_vec16", group_offsets = group_offsets,
  padded_offsets = padded_offsets, row_experts = gpu("i32", padded[5]) }):launch()
lab.check(lab.plan { op = "pad_rows", variant = "smxx_vec16", x = x, y = y, group_offsets = group_offsets,
  padded_offsets = padded_offsets }):launch()
lab.check(lab.plan { op = "unpad_rows", variant = "smxx_vec16", x = y, y = back, group_offsets = group_offsets,
  padded_offsets = padded_offsets }):launch()
t.ok(lab.compare(x, back).mismatched_bits == 0, "rows come back from a padded layout as they were")

-- Scales: rows aligned and not, ends that cut words, an empty group, more groups than a warp has lanes.
local function scale_case(grouping, columns, ends)
  local scales = gpu("u8", 150, columns):bits { seed = 4 }
  local room = grouping == "k_groups" and 256 * (columns + 4 + 4 * #ends) or 128 * (2 + #ends) * (columns + 3)
  local group_ends = lab.tensor_from(device, "i32", ends)
  local returned = gpu("u8", 150, columns)
  for _, kernel in ipairs(lab.kernels "scale_swizzle") do
    local blocked = gpu("u8", room)
    local args = { op = "scale_swizzle", variant = kernel.variant, grouping = grouping, scales = scales,
      group_ends = group_ends, blocked = blocked }
    if kernel.arch ~= "cpu" and lab.legal(args) then
      lab.check(lab.plan(args)):launch()
      args.op, args.variant, args.scales = "scale_unswizzle", "smxx_plain", returned:poison()
      lab.check(lab.plan(args)):launch()
      t.ok(lab.compare(returned, scales).mismatched_bits == 0,
        ("%s of %d columns, %s: the scales come back"):format(grouping, columns, kernel.variant))
    end
  end
end
scale_case("k_groups", 144, { 3, 3, 75, 144 })
scale_case("k_groups", 147, { 3, 3, 75, 147 })
scale_case("m_groups", 48, { 5, 5, 150 })
scale_case("m_groups", 9, { 5, 5, 150 })
local many = {}
for g = 1, 50 do many[g] = 3 * g end
scale_case("k_groups", 150, many)
scale_case("m_groups", 48, many)

t.done()
