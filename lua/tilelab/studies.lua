-- The runs that the records of a GPU come from: which there are, which are due, and how one is made.

local core = require "tilelab_core"
local fields = require "tilelab.fields"
local file = require "tilelab.file"
local main = require "tilelab.main"
local provenance = require "tilelab.provenance"
local recorded = require "tilelab.recorded"
local shell = require "tilelab.shell"

local studies = {}

local TEXT, TORCH = { "text" }, { "torch" }

-- In the order in which they are made: kernels of a few microseconds first, before the heavy ones have
-- warmed the chip and lowered its clock. A list of {name, records = {names}, arguments = {words}, needs =
-- {options}}; experiment is the name where it is not given. In arguments {text}, {torch} and {out} (the
-- folder that holds a folder for each run) are filled in.
studies.list = {
  { "launch_overhead", records = { "launch_overhead" } },
  { "scale_swizzle_occupancy", records = { "scale_swizzle", "scale_swizzle_causes" } },
  { "profiler_selftest", records = { "profiler_selftest" } },
  { "elementwise", records = { "elementwise" } },
  { "attention", records = { "attention" } },
  { "loss_agreement", records = { "loss_agreement" } },
  { "grouped_gemm", records = { "grouped_gemm" }, arguments = { "--torch", "{torch}" }, needs = TORCH },
  { "wgrad_epilogue", records = { "wgrad_epilogue" } },
  { "gemm_ladder", records = { "gemm_ladder" } },
  { "rows_per_expert", records = { "rows_per_expert" } },
  { "raster", records = { "raster" } },
  { "roofline", records = { "roofline" } },
  { "kernel_counters", records = { "kernel_counters" } },
  { "timeline", records = { "timeline" } },
  { "ncu_agreement", records = { "ncu_agreement" } },
  { "depth_scaling", records = { "depth_scaling", "depth_scaling_summary" }, needs = TEXT,
    arguments = { "--backends", "rapidgemm,deepgemm,deepgemm_copy", "--text", "{text}" } },
  { "layer_breakdown", records = { "layer_breakdown", "step_gemm_cycles", "step_timeline" }, needs = TEXT,
    arguments = { "--text", "{text}", "--gemms", "{out}/depth_scaling/gemm_choices.tsv" } },
  { "multinomial", experiment = "depth_scaling", records = { "depth_scaling_multinomial" }, needs = TEXT,
    arguments = { "--text", "{text}", "--routing", "multinomial", "--repetitions", "1", "--record-as",
      "multinomial" } },
  { "depth3", experiment = "depth_scaling", records = { "depth_scaling_depth3" }, needs = TEXT,
    arguments = { "--text", "{text}", "--backends", "rapidgemm", "--layers", "3", "--repetitions", "1",
      "--record-as", "depth3" } },
  { "fp32", experiment = "depth_scaling", records = { "depth_scaling_fp32" }, needs = TEXT,
    arguments = { "--text", "{text}", "--precision", "fp32", "--repetitions", "1", "--record-as", "fp32" } },
}

-- Those that are named, by their own names or by what they record; all where `names` is empty. Raises a
-- usage error for a name that is none.
function studies.choose(names)
  if #names == 0 then return studies.list end
  local known, taken, list = {}, {}, {}
  for _, study in ipairs(studies.list) do
    known[study[1]] = study
    for _, record in ipairs(study.records) do known[record] = study end
  end
  for _, name in ipairs(names) do
    if not known[name] then main.usage_error("no study '%s'%s", name, fields.hint(name, fields.names(known))) end
    taken[known[name]] = true
  end
  for _, study in ipairs(studies.list) do
    if taken[study] then list[#list + 1] = study end
  end
  return list
end

-- Why a study is due on a device, or nil where each of its records is there, and of the kernels as they are;
-- with `all`, of this very commit.
function studies.due(study, device, all)
  for _, name in ipairs(study.records) do
    local path = recorded.path(name, device)
    if not core.stat(path) then return ("no record of %s"):format(name) end
    local data, message = main.attempt(recorded.read, path)
    if not data then return message end
    local stale = recorded.stale(data)
    if #stale > 0 then return ("%s: kernels/%s changed"):format(name, table.concat(stale, ", kernels/")) end
    if all and (data.provenance.commit ~= core.build().commit or data.provenance.dirty == "yes") then
      return ("%s is of commit %s"):format(name, provenance.commit(data.provenance))
    end
  end
end

-- The words that start a study. settings: device, out, text, torch.
function studies.command(study, settings)
  local words = { shell.command()[1], ("%s/experiments/%s.lua"):format(recorded.root, study.experiment or study[1]),
    "--device", settings.device.name, "--out", ("%s/%s"):format(settings.out, study[1]) }
  for _, word in ipairs(study.arguments or {}) do words[#words + 1] = word:gsub("{(%l+)}", settings) end
  if not study.experiment then words[#words + 1] = "--record" end -- the others say --record-as
  return words
end

-- The last lines of a log that say something.
local function ending(path)
  local lines = {}
  for line in (file.read(path) or ""):gmatch("[^\n]*%S[^\n]*") do lines[#lines + 1] = line end
  return table.concat(lines, "\n", math.max(1, #lines - 2))
end

-- Runs a study in a process of its own, whose output goes to <out>/<name>.log. Returns true, or nil, the end of
-- that output and "interrupted" where a signal ended it.
function studies.run(study, settings)
  main.check(core.mkdir(settings.out))
  local words, log = studies.command(study, settings), ("%s/%s.log"):format(settings.out, study[1])
  for i, word in ipairs(words) do words[i] = shell.quote(word) end
  local ok, how, code = os.execute(("%s >%s 2>&1 </dev/null"):format(table.concat(words, " "), shell.quote(log)))
  if ok then return true end
  return nil, ending(log), (how == "signal" or code == 130) and "interrupted" or nil
end

return studies
