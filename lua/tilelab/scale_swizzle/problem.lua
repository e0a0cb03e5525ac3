-- Problems of the scale-swizzle study: shapes, groups, bytes, and the memory that they share.
--
--   problem.new{grouping =, rows =, columns =, groups =} -> {grouping, rows, columns, groups, ends (of m_groups
--       and k_groups), input_bytes, output_bytes = padded, room = of the output, whatever the ends are}
--   problem.name(p) -> "k_groups (8192,4096) G=8"
--   local pool = problem.pool(device, list)    memory for the largest of each
--   pool:operands(p) -> args of lab.plan without a variant
--   pool:check(p, blocked) -> whether pieces of the output all over it are right, and where they are not
--   pool:copies(p) -> list of {name, launch = function, memcpy = true where it is no kernel}: ways to copy half
--       of the problem's bytes, so that as many are moved in all
--
-- Groups share what they cut at ends drawn uniformly; `groups` of a dense problem is 1. The CPU's output is
-- computed when it is first needed and dropped with the next problem's.

local lab = require "tilelab"

local problem = {}

local TILE_ROWS, TILE_COLUMNS = 128, 4
local SEED = 7
local PIECE = 1048573 -- a prime: no two equal bytes of the input are a power of two apart
local PIECES, PIECE_BYTES = 8, 32768

local function up(value, multiple) return (value + multiple - 1) // multiple * multiple end

-- --- what is measured -------------------------------------------------------------------------

local function draw_ends(total, groups)
  local random, ends = lab.random(SEED, groups), {}
  for g = 1, groups - 1 do ends[g] = random:below(total + 1) end
  ends[groups] = total
  table.sort(ends)
  return ends
end

-- Of groups that end there, each rounded up.
local function padded_total(ends, align)
  local sum, begin = 0, 0
  for _, stop in ipairs(ends) do sum, begin = sum + up(stop - begin, align), stop end
  return sum
end

function problem.new(spec)
  local rows, columns, groups = spec.rows, spec.columns, spec.groups
  local p = { grouping = spec.grouping, rows = rows, columns = columns, groups = groups,
    input_bytes = rows * columns }
  local wide, tall = up(columns, TILE_COLUMNS), up(rows, TILE_ROWS)
  if p.grouping == "k_groups" then
    p.ends = draw_ends(columns, groups)
    p.output_bytes = padded_total(p.ends, TILE_COLUMNS) * tall
    p.room = up(columns + (TILE_COLUMNS - 1) * groups, TILE_COLUMNS) * tall
  elseif p.grouping == "m_groups" then
    p.ends = draw_ends(rows, groups)
    p.output_bytes = padded_total(p.ends, TILE_ROWS) * wide
    p.room = up(rows + (TILE_ROWS - 1) * groups, TILE_ROWS) * wide
  else
    local slices = p.grouping == "dense" and 1 or groups
    p.input_bytes, p.output_bytes = slices * rows * columns, slices * tall * wide
    p.room = p.output_bytes
  end
  p.bytes = p.input_bytes + p.output_bytes
  return p
end

function problem.name(p) return ("%s (%d,%d) G=%d"):format(p.grouping, p.rows, p.columns, p.groups) end

-- --- shared memory ----------------------------------------------------------------------------

local Pool = {}
Pool.__index = Pool

-- Words of each half of a copy; whole vectors.
local function copy_words(p) return up(p.bytes // 8, 4) end

local function fill(bytes)
  local source, at = bytes:view(0, { math.min(PIECE, bytes.numel) }):bits { seed = SEED }, PIECE
  while at < bytes.numel do
    local count = math.min(PIECE, bytes.numel - at)
    bytes:view(at, { count }):copy(source:view(0, { count }))
    at = at + count
  end
  return bytes
end

function problem.pool(device, list)
  local input, output, words = 1, 1, 4
  for _, p in ipairs(list) do
    input, output = math.max(input, p.input_bytes), math.max(output, p.room)
    words = math.max(words, copy_words(p))
  end
  local function tensor(dtype, count)
    return lab.check(lab.tensor { device = device, dtype = dtype, shape = { count } })
  end
  return setmetatable({ device = device, input = fill(tensor("u8", input)), output = tensor("u8", output),
    source = tensor("fp32", words):fill(1), target = tensor("fp32", words):fill(0) }, Pool)
end

function Pool:operands(p)
  local shape = p.grouping == "per_group_3d" and { p.groups, p.rows, p.columns } or { p.rows, p.columns }
  return { op = "scale_swizzle", grouping = p.grouping, scales = self.input:view(0, shape),
    group_ends = p.ends and lab.tensor_from(self.device, "i32", p.ends) or nil,
    blocked = self.output:view(0, { p.room }) }
end

local function on_host(x) return lab.check(lab.tensor { dtype = x.dtype, shape = x.shape }):copy(x) end

-- The same operands on the CPU, with what the reference makes of them.
function Pool:reference(p)
  if self.problem ~= p then
    local args = self:operands(p)
    args.scales, args.group_ends = on_host(args.scales), args.group_ends and on_host(args.group_ends)
    args.blocked, args.variant = lab.check(lab.tensor { dtype = "u8", shape = { p.room } }), "cpu_plain"
    lab.check(lab.plan(args)):launch()
    self.problem, self.wanted = p, args.blocked
  end
  return self.wanted
end

function Pool:check(p, blocked)
  local wanted, count = self:reference(p), math.min(PIECE_BYTES, p.output_bytes)
  for i = 0, PIECES - 1 do
    local at = (p.output_bytes - count) * i // (PIECES - 1)
    if lab.compare(on_host(blocked:view(at, { count })), wanted:view(at, { count })).mismatched_bits > 0 then
      return false, ("within bytes %d to %d of the output"):format(at, at + count - 1)
    end
  end
  return true
end

-- --- copies -----------------------------------------------------------------------------------

local function each_unrolled(fn)
  for _, threads in ipairs { 128, 256, 512, 1024 } do
    for _, vectors in ipairs { 1, 2, 4, 8 } do
      for hint = 1, 3 do fn { block_threads = threads, vectors_per_thread = vectors, cache_hint = hint } end
    end
  end
end

function Pool:copies(p)
  local words, list = copy_words(p), {}
  local source, target = self.source:view(0, { words }), self.target:view(0, { words })
  local function add(variant, tunables)
    local plan = lab.plan { op = "probe_copy", variant = variant, src = source, dst = target, tunables = tunables }
    if plan then list[#list + 1] = { name = variant, launch = function() plan:launch() end } end
  end
  add "smxx_vec16"
  each_unrolled(function(tunables) add("smxx_unrolled", tunables) end)
  list[#list + 1] = { name = "cudaMemcpyAsync", memcpy = true, launch = function() target:copy(source) end }
  return list
end

return problem
