local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: where does the time of a layer go, and which part of the gain over a padded grouped GEMM is
-- the GEMM, the padding, the zeroing, and the host that waits? Kernel records of whole updates.

lab.main(function()
  local opt = lab.options {
    summary = "Where the time of a training step goes, by kernel class.",
    { "device", "string", "cuda", "GPU" },
    { "model", "string", "30b-a3b", "layout", choices = { "tiny", "30b-a3b" } },
    { "precision", "string", "bf16", "of training", choices = { "fp32", "bf16" } },
    { "backends", "list", { "rapidgemm", "deepgemm", "deepgemm_copy" }, "grouped GEMMs to compare" },
    { "layers", "list", { 1, 2 }, "depths; the cost of a layer is their difference", of = "integer" },
    { "updates", "integer", 3, "updates that are recorded, after as many that are timed", min = 1 },
    { "warmup", "integer", 2, "updates before", min = 1 },
    { "rounds", "integer", 6, "micro-batches that set a grouped GEMM beside itself alone; 0: none", min = 0 },
    { "counters", "boolean", true, "do not count occupancy and tensor cores in one micro-batch more" },
    { "text", "string", nil, "file to train on; default: tilelab's own sources", value = "FILE" },
    { "gemms", "string", nil, "gemm_choices.tsv of a study, for its GEMMs; default: chosen anew", value = "FILE" },
    { "routing", "string", "model", "who loads the experts", choices = { "model", "multinomial", "zipf" } },
    { "micro_batch", "integer", 4, "sequences of a micro-batch", min = 1, max = 1048576 },
    { "seed", "integer", 1, "of weights and text" },
    { "out", "string", "out/layer_breakdown", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the results under experiments/recorded" },
  }
  opt.device = lab.check(lab.gpu(opt.device))
  return require("tilelab.breakdown.run")(opt)
end)
