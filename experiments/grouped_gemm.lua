local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: what does a grouped GEMM without padding reach, of the dense product's throughput and beside
-- padding, a product for each expert, and PyTorch? The products of one expert layer, forward and backward.

local GPU = { variants = { "cublaslt_dense", "sm90_ragged", "sm90_padded", "cublaslt_loop" }, rows = 32768, rounds = 20,
  shrink = 1 }
local CPU = { variants = { "cpu_ragged", "cpu_padded" }, rows = 4096, rounds = 5, shrink = 16 }

lab.main(function()
  local opt = lab.options {
    summary = "Grouped GEMMs of an expert layer: throughput, share of dense, what padding costs.",
    { "device", "string", "cuda", "cuda, cuda:N or cpu" },
    { "ops", "list", { "fwd_w13", "fwd_w2", "dgrad_w2", "dgrad_w13", "wgrad_w13", "wgrad_w2" }, "products",
      choices = { "fwd_w13", "fwd_w2", "dgrad_w2", "dgrad_w13", "wgrad_w13", "wgrad_w2" } },
    { "experts", "list", { 32, 128 }, "numbers of groups", of = "integer", min = 1, max = 65536 },
    { "distributions", "list", { "uniform", "multinomial", "zipf" }, "of the rows over the experts",
      choices = { "uniform", "multinomial", "zipf" } },
    { "variants", "list", nil, "kernels; default: all of the device",
      choices = { "cublaslt_dense", "sm90_ragged", "sm90_padded", "cublaslt_loop", "cpu_ragged", "cpu_padded" } },
    { "rows", "integer", nil, "rows of all experts; default: 32768, on the CPU 4096", min = 1, max = 1073741824 },
    { "rounds", "integer", nil, "every variant once a round; default: 20, on the CPU 5", min = 1 },
    { "shrink", "integer", nil, "divides d_model 3072 and expert FFN 1280; default: 1, on the CPU 16",
      choices = { 1, 2, 4, 8, 16, 32 } },
    { "counters", "string", "on", "counters of each variant, on a GPU", choices = { "on", "off" } },
    { "torch", "string", nil, "interpreter with PyTorch, whose grouped product is measured in turn", value = "PYTHON" },
    { "preset", "string", nil, "width of the figures; default: each one's own",
      choices = { "acm-column", "acm-full", "ieee-column", "neurips" } },
    { "out", "string", "out/grouped_gemm", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the results under experiments/recorded" },
  }
  local device = lab.device_option(opt.device)
  local settings = {}
  for key, value in pairs(device.arch == 0 and CPU or GPU) do settings[key] = value end
  for key, value in pairs(opt) do settings[key] = value end
  settings.device = device
  return require("tilelab.grouped_gemm").run(settings)
end)
