-- What a depth-scaling study says beside its analysis: FLOP utilisation, one depth alone, the studies beside the
-- main one, how long it took, and the figures of losses, load and the published study.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local analysis = require "tilelab.depth.analysis"
local curves = require "tilelab.depth.curves"
local presets = require "tilelab.model.presets"
local rows_of = require "tilelab.depth.rows"
local sides = require "tilelab.depth.sides"
local single = require "tilelab.depth.single"
local study = require "tilelab.depth.study"
local utilisation = require "tilelab.depth.utilisation"
local wall = require "tilelab.depth.wall"

local folder <close> = t.folder()

-- FLOPs, by hand for 30b-a3b: 3072 wide, 24 and 4 heads of 128, 128 experts of 1280, 8 of them, 4096 tokens.

local config = presets.config "30b-a3b"
local layer, head = utilisation.forward(config)
t.is(head, 2 * 3072 * 65536, "the head")
t.is(layer, 2 * 3072 * 32 * 128 + 2 * 24 * 128 * 4097.0 + 2 * 3072 * 3072 + 2 * 3072 * 128 + 6 * 3072 * 1280 * 9,
  "a layer")
t.is(utilisation.training(config, 2), 3 * (2 * layer + head), "training is three forward passes")
t.is(utilisation.peak_tflops "NVIDIA H200", 989.5, "the peak of an H200")
t.is(utilisation.peak_tflops "AMD EPYC", nil, "a CPU has none here")

local result = { { figure = "T_1", backend = "a", value = 1e5, lo = 9e4, hi = 2e5 },
  { figure = "R", backend = "a", value = 5e5, lo = 4e5, hi = math.huge } }
local info = { backends = { "a" }, layers = { 1 } }
local used = utilisation.rows(result, info, config, "NVIDIA H200")
t.is(("%d %s %s %s"):format(#used, used[1].figure, used[2].figure, used[1].unit), "2 mfu_1 mfu_layer %", "rows")
t.ok(math.abs(used[2].value - 100 * 3 * layer * 5e5 / 989.5e12) < 1e-9, "of a layer: its FLOPs times R over the peak")
t.ok(used[1].lo < used[1].value and used[1].hi > used[1].value and used[2].lo > 0 and used[2].hi == math.huge,
  "intervals follow, open ones too")
t.like(utilisation.text(used, info, config, "NVIDIA H200"), "at 1 layer +a 20%.8 %%", "in words")
t.like(utilisation.text(used, info, config, "NVIDIA H200"), "peak = 989.5 TFLOP/s", "with the formula")
t.is(#utilisation.rows(result, info, config, "CPU"), 0, "nothing without a peak")

-- One depth.

local function updates(backend, layers, seconds)
  local list = {}
  for update = 1, 30 do
    list[update] = { backend = backend, layers = layers, repetition = 1, update = update, tokens = 1000,
      time_s = seconds * (1 + 0.01 * (update % 5)), loss = 3 }
  end
  return list
end
local list, context = single.run(updates("a", 3, 0.01), { warmup = 20, top = 0.2 })
t.is(("%s %d %.0f %.4f"):format(list[1].backend, list[1].layers, list[1].T, list[1].t), "a 3 100000 10.0000",
  "throughput of the fastest two")
t.is(("%.4f"):format(list[1].t_median), "10.2000", "and of the median")
t.like(single.text(list, context), "updates 21 to 30 %(10 kept after 20", "in words")
t.like(select(2, single.run(updates("a", 3, 0.01), { warmup = 29, top = 0.1 })), "keeps none of 1 updates", "too few")

-- Records: a line of 5 us and 10 us more a layer, and 41 us at three layers.

local function record(name, depths, backends, changes)
  local path = folder / (name .. ".tsv")
  local provenance = lab.provenance { device = lab.device "cpu", seed = 1, extra = { measured = "-",
    flag_model = "30b-a3b", flag_backends = table.concat(backends, ","), flag_layers = table.concat(depths, ","),
    flag_seed = 1 } }
  provenance = provenance:gsub("device: cpu\n", "device: cuda:0\n")
    :gsub("device_model: [^\n]*", "device_model: NVIDIA H200")
  local out = lab.check(lab.record.create(path, provenance, study.columns))
  for b, backend in ipairs(backends) do
    for _, depth in ipairs(depths) do
      local us = depth == 3 and 41 or 5 + 10 * depth
      for update = 1, 100 do
        local row = { gpus = 1, experts_per_gpu = 128, model = "30b-a3b", precision = "bf16", routing = "model",
          backend = backend, layers = depth, repetition = 1, update = update, tokens = 1000,
          time_s = us * (b == 2 and 1.1 or 1) * 1e-3, loss = 11 - update / 20, load_max_over_mean = 2 + 1 / update,
          experts_empty = update > 90 and 1 or 0 }
        for key, value in pairs(changes or {}) do row[key] = value end
        out:row(row)
      end
    end
  end
  out:close()
  return lab.record.read(path, study.columns)
end
local both = { "rapidgemm", "deepgemm" }
local main, deeper = record("depth_scaling", { 1, 2 }, both), record("depth_scaling_depth3", { 3 }, { "rapidgemm" })
local off = sides.linearity(main, deeper)
t.is(#off, 1, "of the backends that both studies have")
t.is(("%s %d %.3f %.3f %.3f"):format(off[1].backend, off[1].layers, off[1].t, off[1].line, off[1].percent),
  "rapidgemm 3 41.000 35.000 17.143", "three layers against the line through one and two")
local several = record("depth_scaling_several", { 1, 2, 3 }, { "rapidgemm" })
off = sides.linearity(main, several)
t.is(("%d %.3f"):format(off[1].layers, off[1].percent), "3 17.143", "of a study of several depths, the greatest")
local line = sides.lines(main, off).rapidgemm
t.is(("%d %g %.3f %.3f"):format(#line.measured, line.line[1].x, line.line[1].y, line.line[2].y), "3 1 15.000 35.000",
  "the line and what was measured")
local other = record("depth_scaling_multinomial", { 1, 2 }, both, { routing = "multinomial" })
local text = sides.text { main = main, depth3 = deeper, multinomial = other }
t.like(text, "main +bf16 +model +rapidgemm +1 +15%.0000 +25%.0000 +10%.0000 +%+10%.00", "the main study in the table")
t.like(text, "multinomial +bf16 +multinomial +deepgemm +1 +16%.5000", "and another")
t.like(text, "rapidgemm at 3 layers: 41%.0000 us/token, %+17%.14 %% off the line", "and linearity")

-- Figures.

local analysed, about = analysis.run(rows_of.numbered(main), { warmup = 20, backends = both, replicates = 20 })
local names, by_name = {}, {}
for i, spec in ipairs(curves.build(main, analysed, about)) do names[i], by_name[spec.name] = spec.name, spec end
t.is(table.concat(names, " "), "loss expert_load experts_empty published", "figures")
t.is(#by_name.loss.series[2].points, 100, "a point an update")
t.is(by_name.loss.caption.note, "No backend's loss differs from that of rapidgemm by more than 0.0e+00 of it",
  "and how far backends are apart")
t.is(by_name.expert_load.series[1].points[1].y, 3.0, "the load of the first update")
local published = by_name.published.series
t.is(#published, 4, "ours and the published backends")
t.ok(math.abs(published[3].points[2].y - 4e6 / 345690) < 1e-9, "published throughput, of one of four GPUs")
t.like(by_name.published.caption.note, "communicates with none", "says what differs")
local never = record("never_empty", { 1, 2 }, both, { experts_empty = 0 })
t.is(#curves.build(never, analysed, about), 3, "no figure of what never happens")
local depth3 = lab.recorded.module "depth_scaling_depth3"
local drawn = depth3.draw(lab.recorded.read(deeper.path), { folder = folder / "f" })
t.like(t.read(drawn[1].caption), "rapidgemm at 3 layers: %+17%.14 %% off the line", "a figure of linearity")
t.like(t.read(drawn[1].caption), "n = 80 updates in each of 1 run at the greatest depth", "and of how many runs")

-- How long it took.

local runs = { { backend = "a", layers = 1, repetition = 1, position = 1 },
  { backend = "a", layers = 2, repetition = 1, position = 2 } }
wall.note(folder / ".", runs[1], 30)
t.is(wall.minutes(folder / ".", runs), nil, "a run is missing")
wall.note(folder / ".", runs[2], 60)
wall.note(folder / ".", runs[2], 90)
t.is(wall.minutes(folder / ".", runs), 2.0, "a run that is made again counts once")
wall.note(folder / ".", runs[2], nil)
t.is(wall.minutes(folder / ".", runs), nil, "nor has one that went on from a checkpoint a time of its own")
wall.note(folder / ".", runs[1], 1)
t.is(wall.minutes(folder / ".", runs), nil, "the first run starts anew")
t.done()
