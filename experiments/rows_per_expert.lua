local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: from how many rows an expert, and from how much skew, does a grouped GEMM pay that needs no
-- padding? Useful throughput of both layouts, what padding costs, and the rows that each computes.

local GPU = { variants = { "cublaslt_dense", "sm90_ragged", "sm90_padded" }, rows = 32768, most_experts = 256,
  rounds = 20, shrink = 1 }
local CPU = { variants = { "cpu_ragged", "cpu_padded" }, rows = 2048, most_experts = 16, rounds = 5, shrink = 16 }

-- Rows drawn multinomially; as many experts as the rows of all allow, at most most_experts, whose weights
-- fit into memory: below rows / most_experts rows an expert the total falls instead.
local function problems(opt)
  local problem, list = require "tilelab.grouped_gemm.problem", {}
  local function add(distribution, per_expert, exponent)
    local experts = math.max(1, math.min(opt.most_experts, math.floor(opt.rows / per_expert)))
    list[#list + 1] = problem.new { op = opt.op, experts = experts, rows = experts * per_expert, exponent = exponent,
      distribution = distribution, shrink = opt.shrink, seed = 1 }
  end
  for _, per_expert in ipairs(opt.rows_per_expert) do add("multinomial", per_expert) end
  for _, exponent in ipairs(opt.exponents) do add("zipf", opt.skewed_rows, exponent) end
  return list
end

lab.main(function()
  local opt = lab.options {
    summary = "Where a layout without padding pays: rows an expert, and skew.",
    { "device", "string", "cuda", "cuda, cuda:N or cpu" },
    { "op", "string", "fwd_w13", "product", choices = { "fwd_w13", "fwd_w2", "dgrad_w2", "dgrad_w13" } },
    { "rows_per_expert", "list", { 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192 }, "means", of = "integer",
      min = 1, max = 1073741824 },
    { "exponents", "list", { 0, 0.4, 0.8, 1.2 }, "of zipf sizes", of = "number", min = 0 },
    { "skewed_rows", "integer", 256, "rows an expert, on average, of the zipf sizes", min = 1, max = 1073741824 },
    { "rows", "integer", nil, "rows of all experts; default: 32768, on the CPU 2048", min = 1, max = 1073741824 },
    { "most_experts", "integer", nil, "whose weights fit into memory; default: 256, on the CPU 16",
      min = 1, max = 65536 },
    { "rounds", "integer", nil, "every variant once a round; default: 20, on the CPU 5", min = 1 },
    { "shrink", "integer", nil, "divides d_model 3072 and expert FFN 1280; default: 1, on the CPU 16",
      choices = { 1, 2, 4, 8, 16, 32 } },
    { "preset", "string", nil, "width of the figures; default: each one's own",
      choices = { "acm-column", "acm-full", "ieee-column", "neurips" } },
    { "out", "string", "out/rows_per_expert", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the result under experiments/recorded" },
  }
  local device = lab.device_option(opt.device)
  local settings = {}
  for key, value in pairs(device.arch == 0 and CPU or GPU) do settings[key] = value end
  for key, value in pairs(opt) do settings[key] = value end
  return require("tilelab.grouped_gemm.contest").run { experiment = "rows_per_expert", device = device,
    problems = problems(settings), rounds = settings.rounds, entries = function() return settings.variants end,
    row = require("tilelab.grouped_gemm.padding").row, extra = { shrink = settings.shrink },
    columns = { "experts", "distribution", "rows_per_expert", "variant", "tflops", "tflops_whole", "share_of_dense",
      "computed_rows", "whole_ratio" },
    out = opt.out, record = opt.record, preset = opt.preset }
end)
