-- Settings of the scale-swizzle kernels that the study times: what is swept, and what is held while one thing
-- is varied.
--
--   settings.sweep(p) -> list of {variant =, tunables =}: every variant, block size and number of tiles a block
--       takes; the other tunables are the plan's own choice
--   settings.series(p) -> list of {series =, variant =, tunables =}: one thing varied at a time
--   settings.tiles(p, variant, tunables) -> tiles of 128 by 4 that a block transposes at a time, nil where that
--       depends on the groups
--   settings.in_flight_kib(record, multiprocessors, variant, tunables) -> what a multiprocessor has asked memory
--       for when every block waits, by the launch's shape; nil where the compiler decides that
--   settings.text(tunables) -> "load_bytes=8 row_bytes=64", "-" for none

local core = require "tilelab_core"
local lab = require "tilelab"

local settings = {}

local BOX_SLACK, BOX_ROWS = 16, 128 -- columns that sm90_tma loads beyond a box, and the box's rows

-- Every combination of choices: {name = {values}} -> list of {name = value}.
local function product(axes)
  local list = { {} }
  for name, values in pairs(axes) do
    local longer = {}
    for _, item in ipairs(list) do
      for _, value in ipairs(values) do
        local copy = { [name] = value }
        for key, other in pairs(item) do copy[key] = other end
        longer[#longer + 1] = copy
      end
    end
    list = longer
  end
  return list
end

local K_GROUPS = {
  { "smxx_naive", { block_threads = { 128, 256, 512 } } },
  { "smxx_col_parallel", { block_threads = { 128, 256, 512 }, tiles_per_block = { 4, 8, 16 } } },
  { "smxx_vec16", { block_threads = { 128, 256, 512 }, tiles_per_block = { 4, 8, 16, 32 } } },
  { "smxx_smem", { block_threads = { 64, 128, 256, 512 } } },
  { "sm90_tma", { block_threads = { 64, 128, 256 }, box_columns = { 64, 128 } } },
  { "smxx_registers", { block_threads = { 64, 128, 256, 512 }, load_bytes = { 8, 16 } } },
}
local OTHERS = {
  { "smxx_registers", { block_threads = { 64, 128, 256, 512 } } },
  { "sm90_bulk", { block_threads = { 128, 256, 512 } } },
}
local M_GROUPS = { OTHERS[1], OTHERS[2], { "smxx_windows", { block_threads = { 64, 128, 256, 512 } } } }
local OF_GROUPING = { k_groups = K_GROUPS, m_groups = M_GROUPS, dense = OTHERS, per_group_3d = OTHERS }

function settings.sweep(p)
  local list = {}
  for _, item in ipairs(OF_GROUPING[p.grouping]) do
    for _, tunables in ipairs(product(item[2])) do list[#list + 1] = { variant = item[1], tunables = tunables } end
  end
  return list
end

-- --- one thing at a time ----------------------------------------------------------------------

local HELD = { 1, 14, 18, 22, 28, 37, 44, 56, 75, 113, 227 } -- KiB a block asks for and leaves alone; 1: none

function settings.series(p)
  local list = {}
  local function add(series, variant, tunables)
    list[#list + 1] = { series = series, variant = variant, tunables = tunables }
  end
  if p.grouping ~= "k_groups" then
    -- Whether loads wait for the group ends, L2 has been asked for what they will need, or they need no ends.
    for _, bytes in ipairs { 32, 256 } do add("ahead", "smxx_registers", { prefetch_bytes = bytes }) end
    for choice = 1, 2 do add("ahead", "sm90_bulk", { ahead = choice }) end
    add("ahead", "smxx_windows", {})
    return list
  end
  -- Occupancy alone: the same kernel and grid, fewer blocks at once.
  for _, kib in ipairs(HELD) do
    for _, variant in ipairs { "smxx_naive", "smxx_col_parallel", "smxx_vec16", "smxx_smem", "smxx_registers" } do
      add("occupancy", variant, { held_shared_kib = kib })
    end
  end
  -- Bytes in flight alone: the same warps, more boxes asked for.
  for blocks, stages in pairs { [2] = { 1, 2, 3, 4, 6, 8 }, [4] = { 1, 2, 3, 4 } } do
    for _, count in ipairs(stages) do
      add("in_flight", "sm90_tma", { block_threads = 128, box_columns = 64, blocks_per_multiprocessor = blocks,
        num_stages = count })
    end
  end
  -- The other way round: the same bytes in flight, more warps that wait for them.
  for _, threads in ipairs { 64, 128, 256 } do
    add("warps", "sm90_tma", { block_threads = threads, box_columns = 64, blocks_per_multiprocessor = 2,
      num_stages = 8 })
  end
  -- Half the bytes a load, at occupancies that shared memory holds alike.
  for _, kib in ipairs { 28, 56, 113 } do
    for _, bytes in ipairs { 8, 16 } do
      add("load_bytes", "smxx_registers", { load_bytes = bytes, held_shared_kib = kib })
    end
  end
  -- How the lanes of a load lie: bytes of a row side by side.
  for _, bytes in ipairs { 64, 128, 256 } do add("row_bytes", "smxx_registers", { row_bytes = bytes }) end
  for _, bytes in ipairs { 32, 256 } do add("prefetch", "smxx_registers", { prefetch_bytes = bytes }) end
  -- Stores of a piece of a row in which two groups meet: for one group after the other, or for both.
  for count = 1, 2 do add("stores", "smxx_registers", { groups_a_store = count }) end
  return list
end

-- --- what a setting means ---------------------------------------------------------------------

local tiles = {
  smxx_col_parallel = function(_, t) return t.tiles_per_block end,
  smxx_vec16 = function(_, t) return t.tiles_per_block end,
  smxx_smem = function() return 32 end,
  sm90_tma = function(_, t) return t.box_columns // 4 end,
  sm90_bulk = function(p) return (p.columns + 3) // 4 end,
  smxx_registers = function(p, t)
    return t.block_threads // 32 * (p.grouping == "k_groups" and t.load_bytes or 16) // 4
  end,
  smxx_windows = function(_, t) return t.block_threads // 32 * 4 * t.window_tiles end,
}

function settings.tiles(p, variant, tunables) return tiles[variant] and tiles[variant](p, tunables) end

-- Bytes that a thread asks for before it waits.
local asked = {
  smxx_naive = function() return 1 end,
  smxx_col_parallel = function() return 4 end,
  smxx_vec16 = function() return 16 end,
  smxx_registers = function(t) return 4 * t.load_bytes end,
  smxx_windows = function(t) return 16 * (4 * t.window_tiles + 3) end,
}

function settings.in_flight_kib(record, multiprocessors, variant, tunables)
  if not record.occupancy then return nil end
  local blocks = math.min(record.occupancy.blocks_per_multiprocessor, record.blocks / multiprocessors)
  if variant == "sm90_tma" then
    return blocks * tunables.num_stages * (tunables.box_columns + BOX_SLACK) * BOX_ROWS / 1024
  end
  local threads = record.block[1] * record.block[2] * record.block[3]
  return asked[variant] and blocks * threads * asked[variant](tunables) / 1024
end

function settings.text(tunables)
  local parts = {}
  for name, value in pairs(tunables) do parts[#parts + 1] = ("%s=%d"):format(name, value) end
  table.sort(parts)
  return #parts > 0 and table.concat(parts, " ") or "-"
end

-- The plan of a setting, admitted: it launches and writes what it should; or nil, and why not.
function settings.admit(pool, p, setting)
  local args = pool:operands(p)
  args.variant, args.tunables = setting.variant, setting.tunables
  local known = false
  for _, kernel in ipairs(lab.kernels(args.op)) do known = known or kernel.variant == args.variant end
  if not known then return nil, ("this build has no %s/%s"):format(args.op, args.variant), "illegal" end
  local plan, reason = lab.plan(args)
  if not plan then return nil, reason, "illegal" end
  args.blocked:poison()
  local ok, message = pcall(function()
    plan:launch()
    pool.device:synchronize()
  end)
  if not ok then
    if core.error_kind(message) == "interrupted" then error(message, 0) end
    return nil, tostring(message), "illegal"
  end
  local right, where = pool:check(p, args.blocked)
  if not right then return nil, "wrong " .. where, "wrong" end
  return plan
end

return settings
