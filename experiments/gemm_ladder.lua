local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: what does each technique of sm90_ragged bring? From a plain kernel to the final one, each step
-- with its counters. A step changes what it names and keeps the rest of the step before; the order is free.
-- `rounds`: of a step so slow that it is timed apart.

local STEPS = {
  { "a thread an element", variant = "smxx_plain", rounds = 6 },
  { "TMA, wgmma, 2 stages", variant = "sm90_ragged", stages = 2, turns = 1, multicast = 1, tail = 128, band = 1,
    stack = 1 },
  { "+ 6 stages", stages = 6 },
  { "+ store beside multiply", turns = 2 },
  { "+ loads shared by pairs", multicast = 2 },
  { "+ tails in steps of 8", tail = 8 },
  { "+ bands of 8 tiles", band = 8 },
  { "+ weights shared too", stack = 2 },
}

lab.main(function()
  local opt = lab.options {
    summary = "From a plain grouped GEMM to the final one, a technique at a time.",
    { "device", "string", "cuda", "GPU" },
    { "op", "string", "fwd_w13", "product", choices = { "fwd_w13", "fwd_w2", "dgrad_w2", "dgrad_w13" } },
    { "experts", "list", { 32, 128 }, "numbers of groups", of = "integer", min = 1, max = 65536 },
    { "rows", "integer", 32768, "rows of all experts", min = 1, max = 1073741824 },
    { "rounds", "integer", 20, "every step once a round", min = 6 },
    { "preset", "string", nil, "width of the figures; default: each one's own",
      choices = { "acm-column", "acm-full", "ieee-column", "neurips" } },
    { "out", "string", "out/gemm_ladder", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the result under experiments/recorded" },
  }
  local device = lab.check(lab.gpu(opt.device))
  local ladder = require "tilelab.grouped_gemm.ladder"
  return require("tilelab.grouped_gemm.contest").run { experiment = "gemm_ladder", device = device,
    problems = require("tilelab.grouped_gemm.problem").grid { ops = { opt.op }, experts = opt.experts,
      distributions = { "multinomial" }, rows = opt.rows, shrink = 1, seed = 1 },
    rounds = opt.rounds, entries = function() return ladder.entries(STEPS) end, row = ladder.row,
    columns = { "experts", "name", "time_us", "tflops", "share_of_dense", "gain", "tensor_pct", "dram_gbps",
      "l2_hit_pct", "occupancy_pct" },
    out = opt.out, record = opt.record, preset = opt.preset }
end)
