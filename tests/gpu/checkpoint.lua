-- Checkpoints on the GPU: a model that is read goes on with the same bits, its GEMMs with the algorithms
-- that were chosen before; a study whose process is killed has the losses of one that was not.

local lab = require "tilelab"
local shell = require "tilelab.shell"
local t = dofile("tests/lua/tap.lua")
local backends = require "tilelab.model.backends"
local gemm_choices = require "tilelab.model.gemm_choices"
local presets = require "tilelab.model.presets"
local step = require "tilelab.model.step"
local texts = require "tilelab.model.text"

local gpu = lab.device "cuda"
local complete, missing = backends.supported(gpu.name, { "rapidgemm", "deepgemm" })
t.ok(complete, "every operation of the step has a kernel here" .. (complete and "" or ": no " .. missing))
if not complete then t.done() return end

local function build(layers, backend, precision, seed)
  return assert(step.build { device = gpu, config = assert(presets.config("tiny", { layers = layers })),
    backend = backend, seed = seed, precision = precision })
end

local text = lab.check(texts.load(nil, gpu, 256, 256))

local function losses(model, count, format)
  local list = {}
  for i = 1, count do list[i] = (format or "%.17g"):format(model:update(text)) end
  return table.concat(list, " ")
end

local folder <close> = t.folder()

for _, case in ipairs { { "rapidgemm", "bf16" }, { "rapidgemm", "fp32" }, { "deepgemm", "bf16" } } do
  local name, path = table.concat(case, ", "), folder / table.concat(case)
  local choices, whole = gemm_choices.new "memory", build(2, case[1], case[2], 3)
  local timed = whole:choose_gemms(choices, text)
  t.ok(timed > 5 and timed < #whole.gemms, ("%s: %d shapes for %d GEMMs"):format(name, timed, #whole.gemms))
  local first = losses(whole, 4)
  whole:save(path, { text = text.sha256 }, choices)
  local expected = losses(whole, 4)
  local again = build(2, case[1], case[2], 3)
  t.ok(again:choose_gemms(choices, text) == 0 and losses(again, 4) == first,
    name .. ": timing algorithms leaves training as it was")
  local resumed = build(2, case[1], case[2], 3)
  local loaded, own = resumed:load(path, { text = text.sha256 })
  t.ok(loaded and resumed:choose_gemms(own, text) == 0, name .. ": a checkpoint is read, with its algorithms")
  t.is(losses(resumed, 4), expected, name .. ": and the next losses have the same bits")
end

do -- tensors larger than what goes through the host at a time
  local tensor = lab.check(lab.tensor { device = gpu, dtype = "fp32", shape = { 9 * 2 ^ 20 + 5 } }):normal { seed = 1 }
  local _, written = lab.check(tensor:save(folder / "large.npy"))
  local copy = lab.check(lab.tensor { device = gpu, dtype = "fp32", shape = tensor.shape })
  local _, read = lab.check(copy:load(folder / "large.npy"))
  t.ok(read == written and lab.compare(copy, tensor).mismatched_bits == 0, "40 MB to a file and back")
end

do -- killed
  local out, store = folder / "study", folder / "store"
  local command = ("%s experiments/depth_scaling.lua --device %s --model tiny --precision bf16 --backends rapidgemm "
    .. "--updates 80 --warmup 1 --top 0.4 --repetitions 1 --out %s --checkpoint %s --checkpoint-every 2"):format(
    shell.quote(shell.command()[1]), gpu.name, out, store)
  os.execute(([[%s > %s/log 2>&1 & pid=$!; tries=0
    until ls %s 2> /dev/null | grep -q '^rapidgemm-2-1-[0-9]*$' || [ $tries -ge 1000 ]
    do sleep 0.02; tries=$((tries + 1)); done
    kill -9 $pid; wait $pid 2> /dev/null]]):format(command, folder / ".", store))
  t.ok(#lab.list(store) > 0, "a study is killed after a checkpoint")
  local ended = os.execute(("%s > %s 2>&1"):format(command, folder / "log"))
  local said = t.read(folder / "log")
  t.ok(ended and said:find "the one that was cut goes on after update %d",
    "and goes on there: " .. (said:match "[^\n]*resuming[^\n]*" or "") .. (ended and "" or ", " .. said:sub(-400)))
  local rows, choices = lab.record.read(out .. "/updates.tsv").rows, gemm_choices.read(out .. "/gemm_choices.tsv")
  for layers = 1, 2 do
    local model, list = build(layers, "rapidgemm", "bf16", 1), {}
    t.is(model:choose_gemms(choices, text), 0, "the study's choices are read")
    for _, row in ipairs(rows) do
      if row.layers == tostring(layers) then list[#list + 1] = row.loss end
    end
    t.is(table.concat(list, " "), losses(model, 80, "%.9g"),
      ("layers %d: the losses of a run that nobody interrupted"):format(layers))
  end
end
t.done()
