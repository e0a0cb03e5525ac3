local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: does the GPU train as the CPU does? Losses of the small model, every backend and precision, against
-- the CPU's in fp32 with the same weights and tokens.

lab.main(function()
  local opt = lab.options {
    summary = "Losses of the training step on the GPU against the CPU's.",
    { "device", "string", "cuda", "GPU" },
    { "precisions", "list", { "bf16", "fp32" }, "of training on the GPU" },
    { "updates", "integer", 10, "updates of a run", min = 1 },
    { "seed", "integer", 3, "of weights and text" },
    { "out", "string", "out/loss_agreement", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the result under experiments/recorded" },
  }
  local attention, backends = require "tilelab.model.attention", require "tilelab.model.backends"
  local presets, chosen = require "tilelab.model.presets", nil -- the name of the attention that ran on the GPU
  local step, texts = require "tilelab.model.step", require "tilelab.model.text"
  local cpu, gpu = lab.device "cpu", lab.check(lab.gpu(opt.device))
  local function losses(device, backend, precision, routing)
    local config, list = lab.check(presets.config("tiny", { layers = 2 })), {}
    local text = lab.check(texts.load(nil, device, config.vocabulary, config.sequence))
    local model = lab.check(step.build { device = device, config = config, backend = backend, seed = opt.seed,
      routing = routing, precision = precision })
    for i = 1, opt.updates do list[i] = model:update(text) end
    if device == gpu then chosen = attention.name(model.attention) end
    return list
  end
  local kernels = {}
  for folder in backends.folders:gmatch "%S+" do kernels[#kernels + 1] = folder end
  local rows, worst = {}, 0
  for _, routing in ipairs { "model", "multinomial" } do
    local reference = losses(cpu, "rapidgemm", "fp32", routing)
    for _, precision in ipairs(opt.precisions) do
      for _, backend in ipairs(backends.names()) do
        for i, loss in ipairs(losses(gpu, backend, precision, routing)) do
          local ratio = loss / reference[i]
          if not (math.abs(ratio - 1) <= worst) then worst = math.abs(ratio - 1) end -- NaN is the worst
          rows[#rows + 1] = { precision = precision, routing = routing, backend = backend, update = i, loss = loss,
            cpu_loss = reference[i], loss_ratio = ratio }
        end
      end
    end
  end
  -- Opened now: the provenance names the libraries that the training opened.
  local out = lab.recorded.open { experiment = "loss_agreement", device = gpu, out = opt.out, seed = opt.seed,
    kernels = kernels, record = opt.record, extra = { attention = chosen } }
  for _, row in ipairs(rows) do out:row(row) end
  print(("losses of %d updates are within %.2e of the CPU's"):format(opt.updates, worst))
  lab.draw.print(lab.draw.record(out:close(), { folder = opt.out }))
end)
