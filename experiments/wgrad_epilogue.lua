local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: what does it cost to write weight gradients, or to add to them? Sums that leave in parts beside
-- whole tiles, added by the copy engine or after loading what is there, zeroing included or not; against a
-- stream of stores, and in bytes of device memory.

local STAGES = { 4, 3, 2 } -- of the ring: what they leave of shared memory stages the sums

-- sm90_ragged loads what it adds to, few boxes ahead or many; sm90_cooperative, whose warpgroups share a tile, has
-- other ways, too.
local function ways()
  local list = {}
  local function add(way, beta, stages, block_n, zeroed, load_below)
    list[#list + 1] = { variant = load_below and "sm90_cooperative" or "sm90_ragged", way = way, beta = beta,
      zeroed = zeroed, stages = stages, block_n = block_n,
      tunables = load_below and { load_below = load_below, stages = stages, block_n = block_n }
        or beta == 1 and { add_stages = stages } or nil }
  end
  add("write", 0, 5, 192)
  for stages = 4, 5 do
    add("load", 1, stages, 192)
    add("load", 1, stages, 192, true)
  end
  for _, way in ipairs { { "write", 0, 1 }, { "reduce", 1, 1 }, { "load", 1, 1073741824 } } do
    for _, stages in ipairs(STAGES) do add(way[1], way[2], stages, 256, nil, way[3]) end
    add(way[1], way[2], 4, 128, nil, way[3])
    if way[1] == "reduce" then add(way[1], way[2], 4, 256, true, way[3]) end
  end
  return list
end

lab.main(function()
  local opt = lab.options {
    summary = "Weight gradients: what writing and adding cost, by way, stages and tile.",
    { "device", "string", "cuda", "GPU" },
    { "ops", "list", { "wgrad_w13", "wgrad_w2" }, "products", choices = { "wgrad_w13", "wgrad_w2" } },
    { "experts", "list", { 32, 128 }, "numbers of groups", of = "integer", min = 1, max = 65536 },
    { "distribution", "string", "multinomial", "of the rows over the experts",
      choices = { "uniform", "multinomial", "zipf" } },
    { "rows", "integer", 32768, "rows of all experts", min = 1, max = 1073741824 },
    { "rounds", "integer", 15, "every way once a round", min = 6 },
    { "preset", "string", nil, "width of the figures; default: each one's own",
      choices = { "acm-column", "acm-full", "ieee-column", "neurips" } },
    { "out", "string", "out/wgrad_epilogue", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the result under experiments/recorded" },
  }
  local device = lab.check(lab.gpu(opt.device))
  local epilogue = require "tilelab.grouped_gemm.epilogue"
  local entries = epilogue.entries(ways())
  return require("tilelab.grouped_gemm.contest").run { experiment = "wgrad_epilogue", device = device,
    problems = require("tilelab.grouped_gemm.problem").grid { ops = opt.ops, experts = opt.experts,
      distributions = { opt.distribution }, rows = opt.rows, shrink = 1, seed = 1 },
    rounds = opt.rounds, entries = function() return entries end, row = epilogue.row,
    columns = { "op", "experts", "way", "zeroed", "stages", "block_n", "time_us", "tflops", "share_of_dense",
      "store_us", "logical_bytes", "dram_read_bytes", "dram_write_bytes" },
    out = opt.out, record = opt.record, preset = opt.preset }
end)
