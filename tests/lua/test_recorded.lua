-- Records: names, writing in one step, checks, what is stale, what they draw; and every record that
-- the repository holds.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local core = require "tilelab_core"
local document = require "tilelab.document"
local made_up = dofile("tests/lua/made_up.lua")
local recorded = lab.recorded

local folder <close> = t.folder()
local real = recorded.folder
print = function() end -- luacheck: ignore (what publish says is no TAP)

-- Names.

t.is(recorded.chip { model = "NVIDIA H200", arch = 90 }, "h200", "the chip of an H200")
t.is(recorded.chip { model = "NVIDIA H100 80GB HBM3", arch = 90 }, "h100", "without its memory")
t.is(recorded.chip { model = "NVIDIA GeForce RTX 4090", arch = 89 }, "geforce_rtx_4090", "a name without a chip")
t.is(recorded.chip "cpu", "cpu", "the CPU, by name")
t.is(recorded.path("roofline", lab.device "cpu"), lab.root .. "/experiments/recorded/cpu/roofline.tsv",
  "where a record lies")

-- What the repository holds.

for _, item in ipairs(recorded.list()) do
  local ok, data = pcall(recorded.read, item.path)
  t.ok(ok, item.path .. ": provenance, columns and cells" .. (ok and "" or ": " .. tostring(data)))
  if ok then
    t.is(recorded.chip { model = data.provenance.device_model, arch = item.chip == "cpu" and 0 or 90 }, item.chip,
      item.path .. ": lies in the folder of its chip")
    t.is(data.provenance.dirty, "no", item.path .. ": measured with a commit as it is")
  end
end
local problems, marks = document.check(lab.root .. "/README.md")
t.is(table.concat(problems, "\n"), "", ("README.md: its %d recorded numbers are those of the records"):format(marks))

-- Writing.

recorded.folder = folder / "records"
local out = folder / "out"
t.is(#recorded.list(), 0, "no folder, no records")
for _, name in ipairs(made_up.experiments()) do
  local data = made_up.record(name, out)
  t.ok(#data.rows >= 9, name .. " is recorded")
end
local list = recorded.list()
t.is(#list, #made_up.experiments(), "all are listed")
t.is(list[1].chip .. "/" .. list[1].experiment, "cpu/" .. made_up.experiments()[1], "by chip and experiment")
local path = recorded.path("launch_overhead", "cpu")
local data = recorded.read(path)
t.is(data.provenance.measured, "gemm", "what was measured")
t.is(data.provenance["kernel_sha256.gemm"], core.build().kernels.gemm, "with its hash")
t.is(t.read(path), t.read(out .. "/launch_overhead.tsv"), "the record is the run's file")
t.is(core.stat(out .. "/launch_overhead.before.tsv"), nil, "nothing was replaced")

local before = t.read(path)
made_up.record("launch_overhead", out, function(row) row.samples = 41 end)
t.is(t.read(out .. "/launch_overhead.before.tsv"), before, "a record that is replaced is kept")
t.is(recorded.read(path).rows[1].samples, "41", "and the new one is in its place")

before = t.read(path)
local function unchanged(name) t.is(t.read(path), before, name .. ": the record stays as it was") end
local ok, err = pcall(made_up.record, "launch_overhead", out, function(row)
  if row.path == "counters" then row.time_us = 0 / 0 end
end)
t.ok(not ok and tostring(err):find("column 'time_us' holds '%-?nan', and should hold number"), "a NaN is refused")
unchanged("a wrong row")
t.error(function()
  made_up.record("launch_overhead", out, function(row)
    if row.path == "counters" then error("interrupted here", 0) end
  end)
end, "interrupted here", "an error in a run")
unchanged("an interrupted run")
t.is(#lab.record.read(out .. "/launch_overhead.tsv").rows, 6, "its rows are kept beside it")
do
  local writer <close> = recorded.open { experiment = "launch_overhead", device = "cpu", out = out,
    kernels = {}, record = false }
  writer:row { path = "c_call", launches = 1, statistic = "median", time_us = 1, time_us_lo = 1, time_us_hi = 1,
    samples = 3 }
  t.is(#recorded.stale(writer:close()), 0, "a run that measures no kernel of ours is never stale")
end
unchanged("a run without --record")
t.error(function()
  recorded.open { experiment = "launch_overhead", device = "cpu", out = out, kernels = { "gem" } }
end, "no kernel folder 'gem'; did you mean 'gemm'", "an unknown kernel folder")
t.error(function() recorded.open { experiment = "unheard_of", device = "cpu", out = out, kernels = {} } end,
  "'unheard_of' has no drawing module, so give its columns", "an experiment without a schema")
t.error(function() recorded.open { experiment = "roofline", device = "cpu", kernels = {} } end, "needs out",
  "no folder")
do
  local writer <close> = recorded.open { experiment = "roofline_samples", device = "cpu", out = out,
    kernels = { "gemm" }, columns = { "point", "sample", "time_us" }, record = true }
  writer:row { point = "a", sample = 1, time_us = 2 }
  writer:close()
end
t.ok(core.stat(recorded.path("roofline_samples", "cpu")) ~= nil, "raw samples have columns of their own")

-- Reading.

local function refused(change, pattern, name)
  local text = change(before)
  t.ok(text ~= before, name .. ": is changed")
  local changed = t.write(folder / "launch_overhead.tsv", text)
  local good, message = pcall(recorded.read, changed)
  t.ok(not good and core.error_kind(message) == "refused" and tostring(message):find(pattern) ~= nil, name)
  if good or not tostring(message):find(pattern) then io.stdout:write("# ", tostring(message), "\n") end
end
local function gsub(pattern, with) return function(text) return (text:gsub(pattern, with, 1)) end end
refused(gsub("# measured: gemm\n", ""), "provenance lacks measured: record it again", "no word of what was measured")
refused(gsub("# measured: gemm\n", "# measured: gemm moe\n"), "lacks kernel_sha256%.moe", "a hash is missing")
refused(gsub("# commit: [^\n]*\n", ""), "lacks commit", "no commit")
refused(gsub("launches\tstatistic", "statistic\tlaunches"),
  "the columns are 'path statistic .*should be 'path launches", "columns in another order")
refused(gsub("c_call\t1\t", "c_call\t1.5\t"), ":%d+: column 'launches' holds '1.5', and should hold integer",
  "half a launch")
refused(gsub("c_call\t1\tmedian\t[^\t]*", "c_call\t1\tmedian\t-"),
  "column 'time_us' holds '%-', and should hold number", "no time")
refused(gsub("\npath.*", "\npath\tlaunches\tstatistic\ttime_us\ttime_us_lo\ttime_us_hi\tsamples\n"), "it has no rows",
  "no rows")
refused(function(text) return text:sub(1, -2) end, "cut off", "a cut file")
local bad = made_up.record("ncu_agreement", out)
bad.rows[1].kind = "guess"
t.write(folder / "ncu_agreement.tsv", (t.read(bad.path):gsub("\tcount\t", "\tguess\t", 1)))
ok, err = pcall(recorded.read, folder / "ncu_agreement.tsv")
t.ok(not ok and tostring(err):find("should hold one of count, occupancy, cycle_ratio, rate"), "a kind that is none")

-- Stale.

data = recorded.read(path)
t.is(#recorded.stale(data), 0, "fresh from the measurement")
data.provenance["kernel_sha256.gemm"] = ("0"):rep(64)
t.is(table.concat(recorded.stale(data), " "), "gemm", "a kernel changed")
data.provenance["kernel_sha256.swiglu"] = ("0"):rep(64)
t.is(table.concat(recorded.stale(data), " "), "gemm", "one that it did not measure does not count")
data.provenance.measured, data.provenance["kernel_sha256.gone"] = "gemm gone", "1"
t.is(table.concat(recorded.stale(data), " "), "gemm gone", "neither does one vanish")

-- Drawing.

local draw = lab.draw
t.is(draw.clock(recorded.read(recorded.path("roofline", "cpu"))), "SM at 1705 to 1755 MHz, as measured",
  "the clock of a caption is the measured one")
t.is(draw.clock { rows = {}, provenance = { clock = "locked" } }, "locked", "or that of the provenance")
for _, item in ipairs(recorded.list()) do
  local files = draw.record(recorded.read(item.path), { folder = folder / "figures" })
  for _, figure in ipairs(files) do
    local caption = t.read(figure.caption)
    t.ok(caption:find("CPU reference, no performance claim", 1, true)
      and caption:find("tilelab commit " .. lab.commit:sub(1, 12), 1, true),
      figure.caption:match("[^/]*$") .. ": device and commit in the caption")
  end
  local expected = ({ roofline = 2, kernel_counters = 3, grouped_gemm = 7, rows_per_expert = 4, raster = 3,
    gemm_ladder = 5, wgrad_epilogue = 4, scale_swizzle = 3, scale_swizzle_causes = 5, roofline_samples = 0,
    layer_breakdown = 4, depth_scaling = 6, depth_scaling_summary = 0 })[item.experiment] or 1
  t.is(#files, expected, ("%s: %d figures"):format(item.experiment, expected))
end
data = recorded.read(path)
data.provenance["kernel_sha256.gemm"] = "other"
t.like(t.read(draw.record(data, { folder = folder / "figures" })[1].caption),
  "Changed since it was recorded: gemm", "a stale record says so in the caption")
local counters = draw.record(recorded.read(recorded.path("kernel_counters", "cpu")), { folder = folder / "figures" })
local function says(position, what, name)
  t.ok(t.read(counters[position].caption):find(what, 1, true) ~= nil, "kernel_counters: " .. name)
end
says(1, "limited by registers, threads (kernel_1; kernel_3); by blocks (kernel_2)", "what limits the occupancy")
says(1, "Less than one wave of blocks: kernel_2", "and whose grid does not fill the GPU")
says(1, "clock: GPC at 1710 to 1730 MHz, as measured", "at which clock")
says(2, "long_scoreboard: waiting for data from global or local memory; barrier: waiting for the other warps",
  "what the stall reasons mean")
says(3, "(n = 2 kernels)", "bytes of kernels that are large enough")
says(3, "Left out, since it needs less than 1 MB: kernel_2", "and which are not")
local padding = recorded.read(recorded.path("roofline", "cpu"))
local drawn = t.read(draw.record(padding, { folder = folder / "figures" })[1].dat)
for _, row in ipairs(padding.rows) do row.ai = row.kind == "point" and tostring(2 * tonumber(row.ai)) or row.ai end
t.is(t.read(draw.record(padding, { folder = folder / "figures" })[1].dat), drawn,
  "a roofline counts the equation's FLOPs on both axes, not those of padding")
local no_roof = recorded.read(recorded.path("roofline", "cpu"))
for i = #no_roof.rows, 1, -1 do
  if no_roof.rows[i].kind == "bandwidth" then table.remove(no_roof.rows, i) end
end
t.error(function() draw.record(no_roof, { folder = folder / "figures" }) end,
  "needs rows of kind bandwidth and peak", "a roofline without roofs")

-- Numbers of a document.

local overhead = "<!-- recorded: cpu/launch_overhead.tsv: value time_us where path=%s statistic=median -->"
local function check(text) return document.check(t.write(folder / "README.md", text), recorded.folder) end
local function problem(text, pattern, name)
  local found = check(text)
  t.ok(#found == 1 and found[1]:find(pattern) ~= nil, name)
  if #found ~= 1 or not found[1]:find(pattern) then io.stdout:write("# ", table.concat(found, "\n# "), "\n") end
end
local lua_added = overhead:format("lua_added")
local found, count = check(("Lua adds %s**1.3 us**, C %s 2.1, %s 2 us.\nNo mark: 9.9\n"):format(lua_added,
  overhead:format("c_call"), overhead:format("c_call")))
t.is(table.concat(found, "\n"), "", "numbers that are those of the record")
t.is(count, 3, "marks are counted")
t.is(#check("within <!-- recorded: cpu/profiler_selftest.tsv: max abs(ratio - 1) -->0.6 %\n"), 0, "percent")
problem("a\nb\n\n" .. lua_added .. "1.4 us\n", "README.md:4: it says 1.4 where cpu/launch_overhead.tsv has 1.3",
  "another number")
problem("Lua adds\n" .. lua_added .. "1.3 us\n", "README.md:2: the mark of .* begins a line",
  "a mark that cuts its paragraph")
problem(lua_added .. " none\n", ":1: no number follows", "no number")
problem("<!-- recorded: cpu/launch_overhead.tsv: maxx time_us -->1\n", "did you mean 'max'", "a wrong figure")
problem("<!-- recorded: h200/absent.tsv: max time_us -->1\n", "absent.tsv: No such file", "no record")
problem("<!-- recorded cpu/launch_overhead.tsv -->1\n", "a mark is written <!%-%- recorded: file.tsv", "a wrong mark")
local mark = "<!-- recorded: cpu/launch_overhead.tsv -->\n"
local head = "| path | `statistic` | time_us | time_us_lo |\n|---|---|---|---|\n"
t.is(#check(mark .. head .. "| c_call | median | 2.1 | **2.04** |\n| c_call | minimum | 1.89 | - |\n\nafter\n"), 0,
  "a table that is that of the record")
problem(mark .. head .. "| c_call | median | 2.1 | 2.05 |\n", "README.md:4: time_us_lo is 2.05 where .*:%d+ has 2.037",
  "a number of a table")
problem(mark .. head .. "| c_cal | median | 2.1 | 2.05 |\n", ":4: no row of .* has path=c_cal statistic=median",
  "a row that is none")
problem(mark .. "| statistic | time_us |\n|---|---|\n| median | 2.1 |\n", "more than one row", "too few keys")
problem(mark .. "| path | time_u |\n|---|---|\n", "launch_overhead.tsv has no column 'time_u'; did you mean 'time_us'",
  "a column that is none")
problem(mark .. "text\n", "no table follows", "no table")
t.ok(not pcall(document.check, folder / "absent.md"), "no document")
t.like(table.concat(check(mark .. head .. "| c_call | minimum | 9 | x |\n")),
  "time_us is 9 .*time_us_lo is x", "two problems of a row")

local mixed = ("Lua %s1.4 us, within %s**2 %%**, %s2.1.\n"):format(lua_added,
  "<!-- recorded: cpu/profiler_selftest.tsv: max abs(ratio - 1) -->", overhead:format("c_call"))
local rows = head .. "| c_call | median | 2.2 | **2.05** |\n| `c_call` | minimum | 9 | x |"
local text = t.write(folder / "README.md", mixed .. mark .. rows)
t.is(document.update(text, recorded.folder), 5, "numbers that are others are written anew")
t.is(t.read(text), mixed:gsub("1%.4 us", "1.3 us"):gsub("2 %%", "1 %%") .. mark
  .. rows:gsub("2%.2", "2.1"):gsub("2%.05", "2.04"):gsub("9", "2"), "to the digits that they had, nothing else")
t.like(table.concat((document.check(text, recorded.folder))), "^%S+ time_us_lo is x where .* has %-$",
  "what is no number stays")
t.is(document.update(text, recorded.folder), 0, "once")
recorded.folder = real
t.done()
