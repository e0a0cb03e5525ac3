-- Which kernel brings scales into their blocked layout fastest, for any shape, grouping and address.
--
--   scale_swizzle.variant(args) -> variant; args as for lab.plan, without a variant
--   scale_swizzle.plan(args) -> its plan, whose tunables are the kernel's own choice | nil, message, "illegal"
--
-- smxx_registers takes any of them. Two kernels for aligned rows are faster where the GPU does not hold all row tiles
-- at once, as measured on an H200 (scale_swizzle.tsv has some): of M groups with short rows smxx_windows, whose loads
-- wait for no group ends, by 3 %; of all but K groups with rows of 144 to 288 bytes sm90_bulk, which loads a row tile
-- by one instruction, by 5 to 10 %.

local lab = require "tilelab"

local scale_swizzle = {}

local TILE_ROWS, VECTOR = 128, 16
local SHORT_ROW, LONG_ROW, LONGEST_ROW = 64, 144, 288 -- bytes
local BANKS = 128      -- bytes: rows of a multiple of it lie in the same banks, and take sm90_bulk longer
local TURNS = 3        -- row tiles a multiprocessor holds at a time, at most
local GROUP_ROWS = 256 -- of a group on average, from which on few groups meet in a window

function scale_swizzle.variant(args)
  local scales, shape = args.scales, args.scales.shape
  local device, columns = scales.device, shape[#shape]
  if device.arch == 0 then return "cpu_plain" end
  local row_tiles = columns > 0 and scales.numel // columns // TILE_ROWS or 0
  if args.grouping == "k_groups" or columns % VECTOR ~= 0 or scales.alignment < VECTOR
    or row_tiles <= TURNS * device.multiprocessors then
    return "smxx_registers"
  end
  if args.grouping == "m_groups" and columns <= SHORT_ROW and shape[1] >= GROUP_ROWS * args.group_ends.shape[1] then
    return "smxx_windows"
  end
  local long = columns >= LONG_ROW and columns <= LONGEST_ROW and columns % BANKS ~= 0
  return long and device.arch == 90 and "sm90_bulk" or "smxx_registers"
end

function scale_swizzle.plan(args)
  local own = {}
  for key, value in pairs(args) do own[key] = value end
  own.op, own.variant = "scale_swizzle", scale_swizzle.variant(args)
  return lab.plan(own)
end

return scale_swizzle
