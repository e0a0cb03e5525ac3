-- Which kernel brings scales into their blocked layout fastest, for any shape, grouping and address.
--
--   scale_swizzle.variant(args) -> variant; args as for lab.plan, without a variant
--   scale_swizzle.plan(args) -> its plan, whose tunables are the kernel's own choice | nil, message, "illegal"
--
-- K groups go to smxx_registers. For the other groupings sm90_bulk, which loads a row tile by one instruction and
-- has four in flight a block, pays where blocks take more than one in turn and rows are long enough. As recorded on an
-- H200 (scale_swizzle.tsv) it reaches 0.97 of a copy's speed at (131072,224), smxx_registers 0.88; 0.90 and 0.89 for
-- 32 slices of (2560,96); 0.82 and 0.90 at (131072,64), 0.73 and 0.86 at (16640,160).

local lab = require "tilelab"

local scale_swizzle = {}

local TILE_ROWS, VECTOR = 128, 16
local LONG_ROW, LONGEST_ROW = 96, 512 -- bytes: what pays, and what sm90_bulk takes
local TURNS = 3                       -- row tiles a multiprocessor holds at a time, at most

function scale_swizzle.variant(args)
  local scales, shape = args.scales, args.scales.shape
  local device, columns = scales.device, shape[#shape]
  if device.arch == 0 then return "cpu_plain" end
  local row_tiles = columns > 0 and scales.numel // columns // TILE_ROWS or 0
  local long = columns % VECTOR == 0 and columns >= LONG_ROW and columns <= LONGEST_ROW
  if args.grouping ~= "k_groups" and device.arch == 90 and long and scales.alignment >= VECTOR
    and row_tiles > TURNS * device.multiprocessors then
    return "sm90_bulk"
  end
  return "smxx_registers"
end

function scale_swizzle.plan(args)
  local own = {}
  for key, value in pairs(args) do own[key] = value end
  own.op, own.variant = "scale_swizzle", scale_swizzle.variant(args)
  return lab.plan(own)
end

return scale_swizzle
