-- What `tilelab record` runs: the list against the experiments and targets, and which runs are due.
local lab = dofile("lua/bootstrap.lua")
local t = dofile("tests/lua/tap.lua")
local made_up = dofile("tests/lua/made_up.lua")
local recorded = require "tilelab.recorded"
local studies = require "tilelab.studies"
local targets = require "tilelab.targets"

local listed, records = {}, {}
for _, study in ipairs(studies.list) do
  listed[study.experiment or study[1]] = true
  for _, name in ipairs(study.records) do
    records[name] = true
    t.ok(recorded.module(name) ~= nil, ("%s records %s, which has a schema"):format(study[1], name))
  end
end
for _, name in ipairs(lab.list("experiments")) do
  local script = name:match("^(.+)%.lua$")
  if script then
    local text = t.read("experiments/" .. name)
    t.is(listed[script] or false, text:find('"record"', 1, true) ~= nil, script .. " is listed where it records")
  end
end
local missing = {}
for _, target in ipairs(targets.read("tests/targets.tsv")) do
  if not records[target.study] then missing[#missing + 1] = target.study end
end
t.is(table.concat(missing, " "), "", "every study of tests/targets.tsv is among them")

-- Each flag is one that the experiment has.
local cpu = lab.device "cpu"
local settings = { device = cpu, out = "out dir", text = "a text", torch = "python3" }
for _, study in ipairs(studies.list) do
  local words = studies.command(study, settings)
  local text, unknown = t.read(words[2]), {}
  for _, word in ipairs(words) do
    local flag = word:match("^%-%-(.+)$")
    if flag and not text:find(('{ "%s"'):format(flag:gsub("-", "_")), 1, true) then unknown[#unknown + 1] = word end
  end
  t.is(table.concat(unknown, " "), "", study[1] .. ": its flags are the experiment's")
  t.ok(not table.concat(words, " "):find("[{}]"), study[1] .. ": everything is filled in")
end

local function names(list)
  local found = {}
  for i, study in ipairs(list) do found[i] = study[1] end
  return table.concat(found, " ")
end
t.is(names(studies.choose { "fp32", "scale_swizzle_causes", "scale_swizzle" }), "scale_swizzle_occupancy fp32",
  "by name or by what is recorded, each once, in the order of the list")
t.is(#studies.choose {}, #studies.list, "all, unless named")
t.error(function() studies.choose { "rooflin" } end, "no study 'rooflin'; did you mean 'roofline'",
  "a name that is none")

local folder, real = t.folder(), recorded.folder
recorded.folder = folder / "records"
local roofline = studies.choose { "roofline" }[1]
t.is(studies.due(roofline, cpu), "no record of roofline", "due: not recorded")
made_up.record("roofline", folder / "run")
t.is(studies.due(roofline, cpu), nil, "recorded with these kernels")
local path = recorded.path("roofline", cpu)
local text = t.read(path)
t.write(path, (text:gsub("# commit: %x+", "# commit: 0123456789ab")))
t.is(studies.due(roofline, cpu), nil, "an earlier commit with the same kernels")
t.is(studies.due(roofline, cpu, true),
  "roofline is of commit 0123456789ab" .. (lab.dirty and " with local changes" or ""),
  "is due where all are to be of one")
t.write(path, (text:gsub("# kernel_sha256.gemm: .", "# kernel_sha256.gemm: x")))
t.is(studies.due(roofline, cpu), "roofline: kernels/gemm changed", "due: other kernels")
t.write(path, text .. "x")
t.ok((studies.due(roofline, cpu) or ""):find("the last row is cut off"), "due: cannot be read")
recorded.folder = real

settings.out = folder / "out dir"
local ok = studies.run({ "works", experiment = "depth_scaling", arguments = { "--published" } }, settings)
t.ok(ok and t.read(settings.out .. "/works.log"):find("All nine published figures agree"), "a run, with its log")
local failed, ending = studies.run({ "fails", experiment = "depth_scaling", arguments = { "--text", "{text}" } },
  settings)
t.ok(not failed and ending:find("a text: No such file"), "a run that fails says why")
t.done()
