-- Which kernel of the scale swizzle a caller gets.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local scale_swizzle = require "tilelab.scale_swizzle"

local h200 = { arch = 90, multiprocessors = 132 }
local function variant(grouping, shape, device, alignment, groups)
  local numel = 1
  for _, extent in ipairs(shape) do numel = numel * extent end
  return scale_swizzle.variant { grouping = grouping, group_ends = { shape = { groups or 8 } },
    scales = { device = device or h200, shape = shape, numel = numel, alignment = alignment or 256 } }
end
t.is(variant("k_groups", { 8192, 4096 }), "smxx_registers", "K groups")
t.is(variant("m_groups", { 131072, 224 }), "sm90_bulk", "many long rows")
t.is(variant("m_groups", { 131072, 256 }), "smxx_registers", "which would meet in banks")
t.is(variant("per_group_3d", { 32, 2560, 224 }), "sm90_bulk", "slices count together")
t.is(variant("per_group_3d", { 32, 2560, 96 }), "smxx_registers", "rows of middling length")
t.is(variant("m_groups", { 131072, 64 }), "smxx_windows", "short rows")
t.is(variant("m_groups", { 131072, 64 }, h200, 256, 512), "smxx_windows", "in groups of 256")
t.is(variant("m_groups", { 131072, 64 }, h200, 256, 513), "smxx_registers", "in groups of fewer")
t.is(variant("dense", { 131072, 64 }), "smxx_registers", "in no groups")
t.is(variant("m_groups", { 16640, 160 }), "smxx_registers", "few row tiles")
t.is(variant("m_groups", { 131072, 225 }), "smxx_registers", "rows that are no whole vectors")
t.is(variant("m_groups", { 131072, 1024 }), "smxx_registers", "rows longer than a stage")
t.is(variant("m_groups", { 131072, 224 }, h200, 8), "smxx_registers", "an odd address")
t.is(variant("m_groups", { 131072, 224 }, { arch = 80, multiprocessors = 108 }), "smxx_registers", "another GPU")
t.is(variant("dense", { 5, 0 }), "smxx_registers", "no columns")

local scales = lab.tensor { dtype = "u8", shape = { 5, 9 } }:bits { seed = 1 }
local blocked = lab.tensor { dtype = "u8", shape = { 128 * 12 } }
local plan = scale_swizzle.plan { scales = scales, blocked = blocked, grouping = "dense" }
t.is(plan.variant, "cpu_plain", "the CPU has one kernel")
plan:launch()
t.is(blocked:get(1), scales:get(1, 1), "which runs")
t.error(function() scale_swizzle.plan { scales = scales, grouping = "dense" } end, "blocked",
  "what is missing is named")
t.done()
