-- Ways to write or add weight gradients, for wgrad_epilogue: contenders beside the dense product, a stream of
-- stores and a memset, and the columns of wgrad_epilogue.tsv beyond those of contest.lua.

local contest = require "tilelab.grouped_gemm.contest"

local epilogue = {}

-- ways: list of {variant =, way =, beta =, zeroed =, stages =, block_n =, tunables =}. -> entries of contest.run,
-- which are these with the rest of what they need.
function epilogue.entries(ways)
  local entries = { { variant = contest.DENSE, way = "dense" } }
  for i, way in ipairs(ways) do
    way.name = ("%s, %s, %d stages, %d columns%s"):format(way.variant, way.way, way.stages, way.block_n,
      way.zeroed and ", zeroed" or "")
    entries[i + 1] = way
  end
  entries[#entries + 1] = { variant = "store", way = "store" }
  entries[#entries + 1] = { variant = "zero", way = "zero" }
  return entries
end

-- Bytes of the equation, and of the memset that is timed with it.
local function logical_bytes(contender)
  local written = contender.run and contender.y.bytes or 0
  return written + (contender.plan and contender.plan:bytes() or 0)
end

function epilogue.row(run, contender, measured)
  local entry = contender.entry
  local counters = run:counters(contender, measured.by_name[contender.name], { "PAPER" })
  return { way = entry.way, beta = contender.beta, zeroed = entry.zeroed and 1 or 0, stages = entry.stages or "-",
    block_n = entry.block_n or "-", store_us = contest.part_us(contender, measured, "store"),
    logical_bytes = logical_bytes(contender), dram_read_bytes = counters.dram_read,
    dram_write_bytes = counters.dram_write }
end

return epilogue
