local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: in which order should a grouped GEMM visit its tiles? In bands of 1 to 16 token tiles, each of
-- which meets a tile of weights before the next one does: time, hits in L2, bytes of device memory.

lab.main(function()
  local opt = lab.options {
    summary = "The raster of sm90_ragged against L2 hits and DRAM bytes.",
    { "device", "string", "cuda", "GPU" },
    { "op", "string", "fwd_w13", "product", choices = { "fwd_w13", "fwd_w2", "dgrad_w2", "dgrad_w13" } },
    { "experts", "list", { 1, 32, 128 }, "numbers of groups; 1 is a dense product", of = "integer",
      min = 1, max = 65536 },
    { "bands", "list", { 1, 2, 4, 8, 16 }, "token tiles of a band", of = "integer", min = 1 },
    { "rows", "integer", 32768, "rows of all experts", min = 1, max = 1073741824 },
    { "rounds", "integer", 20, "every band once a round", min = 6 },
    { "preset", "string", nil, "width of the figures; default: each one's own",
      choices = { "acm-column", "acm-full", "ieee-column", "neurips" } },
    { "out", "string", "out/raster", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the result under experiments/recorded" },
  }
  local device = lab.check(lab.gpu(opt.device))
  local entries = { "cublaslt_dense" }
  for i, band in ipairs(opt.bands) do
    entries[i + 1] = { name = "band " .. band, variant = "sm90_ragged", tunables = { band = band } }
  end
  return require("tilelab.grouped_gemm.contest").run { experiment = "raster", device = device,
    problems = require("tilelab.grouped_gemm.problem").grid { ops = { opt.op }, experts = opt.experts,
      distributions = { "multinomial" }, rows = opt.rows, shrink = 1, seed = 1 },
    rounds = opt.rounds, entries = function() return entries end,
    row = function(run, contender, measured)
      local counters = run:counters(contender, measured.by_name[contender.name], { "PAPER" }, { "l2_hit_rate" })
      return { band = contender.plan:tunables().band or "-", l2_hit_pct = counters.l2_hit_rate,
        dram_read_bytes = counters.dram_read, dram_write_bytes = counters.dram_write,
        logical_bytes = contender.plan:bytes(), dram_gbps = counters.dram_gbps }
    end,
    columns = { "experts", "variant", "band", "time_us", "tflops", "share_of_dense", "l2_hit_pct", "dram_read_bytes",
      "logical_bytes" },
    out = opt.out, record = opt.record, preset = opt.preset }
end)
