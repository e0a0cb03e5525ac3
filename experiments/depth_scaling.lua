local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: how much does one more MoE layer cost, and how much of that does a grouped GEMM save
-- that needs no padding? Trains whole runs of each backend at two depths and extrapolates to the
-- full model. Protocol and published figures: RapidGEMM README.

lab.main(function()
  local opt = lab.options {
    summary = "Depth scaling of MoE training: throughput, cost of a layer, figures.",
    { "device", "string", nil, "cpu, cuda or cuda:N; default: the best that has every operation" },
    { "model", "string", nil, "layout; default: tiny on the CPU, 30b-a3b on a GPU",
      choices = { "tiny", "30b-a3b" } },
    { "precision", "string", nil, "of training; default: fp32 on the CPU, bf16 on a GPU",
      choices = { "fp32", "bf16" } },
    { "attention", "string", nil, "whose; default: cuDNN's where it is found and takes the sizes",
      choices = { "cudnn", "plain" } },
    { "deterministic", "boolean", true, "cuDNN's faster gradients of attention, with other bits each time" },
    { "backends", "list", { "rapidgemm", "deepgemm" }, "grouped GEMMs to compare; gains are over deepgemm" },
    { "layers", "list", { 1, 2 }, "depths to train at", of = "integer" },
    { "updates", "integer", 100, "updates of a run" },
    { "warmup", "integer", 20, "first updates of a run that are dropped" },
    { "top", "number", 0.10, "fraction of the fastest updates that make a run's throughput" },
    { "text", "string", nil, "file to train on; default: tilelab's own sources", value = "FILE" },
    { "routing", "string", "model", "who loads the experts: the router, or a fixed draw",
      choices = { "model", "multinomial", "zipf" } },
    { "repetitions", "integer", 2, "runs of each backend and depth, in ABBA order" },
    { "micro_batch", "integer", nil, "sequences of a micro-batch; default: the layout's, of the four GPUs of 30b-a3b",
      min = 1, max = 1048576 },
    { "learning_rate", "number", nil, "of AdamW; default: the layout's", min = 0 },
    { "seed", "integer", 1, "of weights, text, order and bootstrap" },
    { "out", "string", "out/depth_scaling", "folder for results and figures", value = "FOLDER" },
    { "checkpoint", "string", nil, "folder for the training's state; a run that was cut goes on there",
      value = "FOLDER" },
    { "checkpoint_every", "integer", 20, "updates from one checkpoint to the next", min = 1 },
    { "fresh", "boolean", false, "measure anew; earlier results are set aside" },
    { "record", "boolean", false, "keep the results under experiments/recorded" },
    { "record_as", "string", nil, "keep updates.tsv there, as that study beside the main one",
      choices = { "multinomial", "depth3", "fp32" } },
    { "preset", "string", "acm-column", "width of the figures",
      choices = { "acm-column", "acm-full", "ieee-column", "neurips" } },
    { "published", "string", nil, "check published figures against their throughputs instead",
      implied = lab.root .. "/experiments/published_depth_scaling.tsv", value = "FILE" },
  }
  if opt.published then
    local agree, message = require("tilelab.depth.published").report(opt.published)
    if agree == nil then lab.usage_error("%s", message) end
    return agree
  end
  local study, report = require "tilelab.depth.study", require "tilelab.depth.report"
  local settings = study.settings(opt)
  study.run(settings, opt.fresh)
  report.write(settings, opt.preset)
  if opt.record or opt.record_as then report.record(settings, opt.record_as) end
end)
