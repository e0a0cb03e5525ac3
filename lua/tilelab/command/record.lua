-- tilelab record [NAME...]: measures what experiments/recorded lacks of a GPU, or has of other kernels.
-- Each run is a process of its own and leaves its record when it is complete: a machine that is taken away
-- loses one of them, and the same command goes on after it.
-- Exit code: 0, 1 where a run failed or could not be made, 2 for bad input, 130 after Ctrl-C.

local core = require "tilelab_core"
local lab = require "tilelab"
local studies = require "tilelab.studies"

-- The option that a study needs and that was not given.
local function lacking(study, opt)
  for _, name in ipairs(study.needs or {}) do
    if not opt[name] then return "--" .. name end
  end
end

-- Makes a run and says how it went; whether its records are there.
local function make(study, opt)
  io.stdout:write(("%-24s "):format(study[1]))
  io.stdout:flush()
  local began = core.time_us()
  local ok, ending, interrupted = studies.run(study, opt)
  print(("%s after %.0f s, %s/%s.log"):format(ok and "recorded" or interrupted or "FAILED",
    (core.time_us() - began) * 1e-6, opt.out, study[1]))
  if interrupted then error(core.error_new("interrupted", "interrupted; the same command goes on here"), 0) end
  if not ok then print((ending:gsub("[^\n]+", "  %0"))) end
  return ok
end

lab.main(function()
  local opt = lab.options {
    name = "tilelab record",
    summary = "Measures what experiments/recorded lacks of this GPU, or has of other kernels.",
    arguments = "[NAME...]",
    { "device", "string", "cuda", "GPU" },
    { "all", "boolean", false, "also what was recorded with another commit" },
    { "list", "boolean", false, "only say what is due, and why" },
    { "text", "string", nil, "text of 30 MB or more to train on; no training is recorded without", value = "FILE" },
    { "torch", "string", nil, "interpreter with PyTorch, a peer of the grouped GEMMs", value = "PYTHON" },
    { "out", "string", nil, "folder for the runs; default: out/record/COMMIT", value = "FOLDER" },
  }
  opt.device = lab.check(lab.gpu(opt.device))
  opt.out = opt.out or ("out/record/%s"):format(lab.commit:sub(1, 12))
  local failed = 0
  for _, study in ipairs(studies.choose(opt)) do
    local reason, option = studies.due(study, opt.device, opt.all), lacking(study, opt)
    if not reason then
      print(("%-24s up to date"):format(study[1]))
    elseif opt.list then
      print(("%-24s due: %s%s"):format(study[1], reason, option and ("; it needs %s"):format(option) or ""))
    elseif option then
      failed = failed + 1
      print(("%-24s not run: it needs %s"):format(study[1], option))
    elseif not make(study, opt) then
      failed = failed + 1
    end
  end
  return failed == 0
end)
