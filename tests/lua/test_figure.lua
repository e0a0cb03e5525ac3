-- Figures: every kind with awkward input is drawn, fits its preset, embeds its fonts, redraws on
-- its own in another folder, and every refusal says what is wrong.
--
-- FIGURE_KEEP=folder keeps the drawings there, to be looked at.

local t = dofile("tests/lua/tap.lua")
package.path = "lua/?.lua;" .. package.path
local figure = require "tilelab.figure"
local axes = require "tilelab.figure.axes"
local file = require "tilelab.file"
local text = require "tilelab.figure.text"

local NAN, INF = 0 / 0, math.huge

local function shell(command)
  local pipe = assert(io.popen("(" .. command .. ") 2>&1"))
  local output = pipe:read("a")
  return pipe:close() == true, output
end

local function has(program)
  return (shell("command -v " .. program))
end

local kept = os.getenv("FIGURE_KEEP")
local out = kept or os.tmpname()
if not kept then
  os.remove(out)
  assert(shell("mkdir -m 700 '" .. out .. "'"))
end

local caption = {n = 5, statistic = "median of the updates", device = "Test device 100 %",
  clock = "1755 MHz, locked", commit = "0123abc", note = "CPU reference, no performance claim"}

local function curve(name, count, scale, fields)
  local points = {}
  for i = 1, count do
    local y = scale * (i + 3) ^ 0.7
    points[i] = {x = i, y = y, lo = y * 0.95, hi = y * 1.06, mark = i % 11 == 0}
  end
  local series = {name = name, points = points}
  for key, value in pairs(fields or {}) do series[key] = value end
  return series
end

local function six(count)
  local list = {}
  for i = 1, 6 do list[i] = curve("sm90_variant_" .. i, count, i) end
  return list
end

local awkward = [[a_b^c {x} 50% "q" 'r' \n `date` $HOME @m µ×]]

local cases = {
  {name = "lines-plain", kind = "lines",
    series = {curve("RapidGEMM", 6, 2), curve("DeepGEMM", 6, 2.2)}},
  {name = "lines-awkward", kind = "lines", title = awkward, xlabel = awkward, ylabel = awkward,
    series = {curve(awkward, 4, 1), curve("invalid \xff\xc3 bytes\nand lines", 4, 2)}},
  {name = "lines-one-point", kind = "lines", series = {{name = "one", points = {{x = 7, y = 3}}}}},
  {name = "lines-hundred", kind = "lines", preset = "acm-full", series = six(100)},
  {name = "lines-nan", kind = "lines", series = {
    {name = "gaps", points = {{x = 1, y = 1}, {x = 2, y = NAN}, {x = 3},
      {x = 4, y = 2, lo = NAN, hi = 3}, {x = 5, y = 3, lo = 2, hi = INF},
      {x = 6, y = -INF}, {x = 7, y = 2.5}}},
    {name = "nothing", points = {{x = 1, y = NAN}}}}},
  {name = "lines-log", kind = "lines", logx = true, logy = true, preset = "ieee-column", series = {
    {name = "bytes", points = {{x = 1024, y = 1e-7}, {x = 4096, y = 3e-3, lo = -1, hi = 1},
      {x = 2 ^ 20, y = 1e6}, {x = 2 ^ 24, y = 0}}}}},
  {name = "lines-log-narrow", kind = "lines", logx = 10, logy = true, series = {
    {name = "narrow", points = {{x = 30, y = 20}, {x = 35, y = 21}, {x = 40, y = 22}}}}},
  {name = "lines-huge", kind = "lines", series = {
    {name = "huge", points = {{x = 1e9, y = 1e290}, {x = 2e9, y = -1e299}, {x = 3e9, y = 1e305}}}}},
  {name = "lines-tiny", kind = "lines", series = {
    {name = "tiny", points = {{x = 1e-9, y = 3e-290}, {x = 2e-9, y = 5e-290}}}}},
  {name = "lines-offset", kind = "lines", series = {
    {name = "large and close", points = {{x = 1, y = 1234567.25}, {x = 2, y = 1234567.5}}},
    {name = "same", points = {{x = 1, y = 1234567.25}, {x = 2, y = 1234567.25}}, dotted = true}}},
  {name = "lines-notes", kind = "lines", zero = true, series = six(30),
    references = {{y = 20, label = "peak, 100 %"}, {x = 12, label = "ridge"}},
    regions = {{to = 5, label = "warm-up"}}},
  {name = "lines-long-key", kind = "lines", series = {
    curve(("a long name that no column of a paper holds "):rep(4), 5, 1), curve("short", 5, 2)}},
  {name = "bars-plain", kind = "bars", preset = "neurips", series = {curve("RapidGEMM", 3, 150000),
    curve("DeepGEMM", 3, 140000)}},
  {name = "bars-labels", kind = "bars", series = {{name = "a_b 'c'", points = {
    {x = "m_grouped nt 50%", y = 3, lo = 2, hi = 4}, {x = "k_grouped_with_a_long_name", y = -2},
    {x = 'quote "d"', y = NAN}, {x = "µ `x`", y = 1.5}}}}},
  {name = "bars-six", kind = "bars", preset = "acm-full", series = six(5)},
  {name = "bars-hundred", kind = "bars", series = {curve("many", 100, 1)}},
  {name = "bars-zero", kind = "bars", series = {{name = "zero", points = {{x = 1, y = 0}}}}},
  {name = "trace-plain", kind = "trace", preset = "acm-full", marked = "fastest 8",
    series = {curve("RapidGEMM", 100, 2), curve("DeepGEMM", 100, 2.1)},
    regions = {{to = 20.5, label = "dropped"}}},
  {name = "trace-log", kind = "trace", logy = true, series = {
    {name = "loss", points = {{x = 1, y = 11}, {x = 2, y = NAN}, {x = 3, y = 0.02, mark = true}}}}},
}

-- The kinds of the measuring experiments.

local roofs = {{slope = 4.25, label = "DRAM copy, 4.25 TB/s"}, {slope = 11, label = "L2, 11 TB/s"}}
local peaks = {{y = 745, label = "cuBLASLt GEMM"}, {y = 1070, label = "tensor peak"}}
local levels = {
  {name = "sm90_ragged", points = {{x = 900, y = 700}, {x = 120, y = 700, mark = true}}},
  {name = "swiglu", points = {{x = 1.2, y = 4.4, lo = 4.1, hi = 4.6}, {x = 1, y = NAN},
    {x = -1, y = 3}}},
}

-- Rows of one series: name, first value, and awkward cells at the end.
local function named(name, count, first, awkward_end)
  local points = {}
  for i = 1, count do
    points[i] = {x = "smxx_variant_" .. i, y = first + i * 7 % 5, lo = first - 0.5, hi = first + 6}
  end
  if awkward_end then
    points[#points + 1] = {x = awkward, y = first}
    points[#points + 1] = {x = "nothing measured", y = NAN}
  end
  return {name = name, points = points}
end

local function append(list)
  for _, case in ipairs(list) do cases[#cases + 1] = case end
end

append {
  {name = "roofline-plain", kind = "roofline", series = levels, roofs = roofs, peaks = peaks,
    marked = "L2 traffic"},
  {name = "roofline-awkward", kind = "roofline", preset = "acm-full", peaks = {{y = 1e-3, label = awkward}},
    roofs = {{slope = 1e-9, label = awkward}, {slope = 1e-9, label = ("long "):rep(60)},
      {slope = 3e5, label = "steep"}}, series = {{name = awkward, points = {{x = 1, y = 1e-3}}}}},
  {name = "occupancy-plain", kind = "occupancy", series = {
    {name = "registers", points = {{x = 25, y = 22}, {x = 50, y = 44, lo = 40, hi = 45}}},
    {name = "threads", points = {{x = 100, y = 91}, {x = 100, y = NAN}}}}},
  {name = "occupancy-above", kind = "occupancy", title = awkward,
    series = {{name = "beyond", points = {{x = 100, y = 100.4}, {x = 0, y = 0}}}}},
  {name = "stack-plain", kind = "stack", order = {"wait", "long scoreboard", "barrier"},
    series = {named("barrier", 4, 3), named("branch", 4, 1), named("wait", 4, 9), named("sleep", 4, 2)}},
  {name = "stack-awkward", kind = "stack", series = {named(awkward, 3, 1, true),
    named("zero", 3, -8, true)}},
  {name = "parts-plain", kind = "parts", order = {"gemm", "pad"}, series = {named("pad", 4, 3), named("gemm", 3, 90)}},
  {name = "parts-awkward", kind = "parts", preset = "neurips", series = {named(awkward, 30, 1e-7, true),
    named("zero", 3, -8, true)}},
  {name = "pairs-plain", kind = "pairs", series = {named("logical", 4, 30), named("measured", 4, 33)}},
  {name = "pairs-awkward", kind = "pairs", preset = "neurips",
    series = {named("logical", 30, 0, true), named("measured", 28, 3e-9, true)}},
  {name = "dots-plain", kind = "dots", series = {named("faster", 5, 0.9), named("slower", 3, 1.2)},
    references = {{y = 1, label = "equal"}}, regions = {{from = 0.97, to = 1.03, label = "within 3 %"}}},
  {name = "dots-awkward", kind = "dots", logy = true, preset = "acm-full", title = awkward, series = {
    named(awkward, 60, 1e-3, true), {name = "twice in a row", points = {{x = "smxx_variant_1", y = 2},
      {x = "smxx_variant_1", y = 20}, {x = ("a name that no column holds "):rep(9), y = 3}}}}},
  {name = "steps-plain", kind = "steps", series = {named("32 experts", 5, 400), named("128 experts", 5, 300)},
    references = {{y = 406, label = "dense"}}},
  {name = "steps-awkward", kind = "steps", preset = "neurips", title = awkward, series = {
    named(awkward, 20, 1e-7, true), named("zero", 20, -8, true), named("one", 1, 3)}},
  {name = "spans-plain", kind = "spans", preset = "acm-full", series = {
    {name = "forward", points = {{x = "attention", y = 1, lo = 0, hi = 2}, {x = "experts", y = 3.5, lo = 2, hi = 5},
      {x = "attention", y = 6, lo = 5, hi = 7}}},
    {name = "backward", points = {{x = "experts", y = 9, lo = 7, hi = 11}}}}},
  {name = "lines-band", kind = "lines", band = "90 % of updates", interval = "band",
    series = {curve("RapidGEMM", 6, 2), curve("DeepGEMM", 6, 3)}},
}

local gnuplot = has("gnuplot")
local skip_reason = "gnuplot is not installed"

-- Width of the page in inches, and the fonts' faults, from poppler's tools.
local function page_width(pdf)
  local _, said = shell("pdfinfo '" .. pdf .. "'")
  return tonumber(said:match("Page size:%s+([%d.]+)") or 0) / 72
end

local function check_pdf(name, files, spec)
  if not (has("pdffonts") and has("pdfinfo") and has("pdftotext")) then
    t.skip("poppler-utils is not installed", 5)
    return
  end
  local _, fonts = shell("pdffonts '" .. files.pdf .. "'")
  t.like(fonts, "LiberationSans", name .. ": text is in Liberation Sans")
  t.ok(not fonts:find("Type 3") and not fonts:find("%sno%s+%a+%s+%a+%s+%d+%s+%d+%s"),
    name .. ": every font is embedded, none is Type 3")
  local width_in = figure.presets[spec.preset or "acm-column"]
  t.ok(math.abs(page_width(files.pdf) - width_in) < 0.01, name .. ": width of the preset")
  local _, words = shell("pdftotext -bbox '" .. files.pdf .. "' -")
  local width, height = words:match('<page width="([%d.]+)" height="([%d.]+)"')
  local outside
  for x0, y0, x1, y1, word in words:gmatch(
    'xMin="([%d.-]+)" yMin="([%d.-]+)" xMax="([%d.-]+)" yMax="([%d.-]+)">([^<]*)<') do
    if tonumber(x0) < 0 or tonumber(y0) < -1 or tonumber(x1) > tonumber(width)
      or tonumber(y1) > tonumber(height) then
      outside = word
    end
  end
  t.is(outside, nil, name .. ": no word is cut off")
  local y0, y1 = words:match('yMin="([%d.]+)" xMax="[%d.]+" yMax="([%d.]+)">RapidGEMM<')
  if y0 then
    t.ok(math.abs(tonumber(y1) - tonumber(y0) - 8 * 1.117) < 0.2, name .. ": text of 8 points")
  end
  local lost
  for _, series in ipairs(spec.series) do
    local word = series.name:match("^[%w_]+")
    if series.name == "branch" or series.name == "sleep" then word = "other" end
    if series.name ~= "nothing" and series.name ~= "zero" and not words:find(">" .. word, 1, true) then lost = word end
  end
  t.is(lost, nil, name .. ": the key names every series")
end

-- A stem.gp must redraw alone: copy it with its data elsewhere and run it there.
local function check_redraw(name, files)
  local folder = out .. "/elsewhere " .. name
  local ok, said = shell(string.format(
    "mkdir -p '%s' && cp '%s' '%s' '%s' && cd '%s' && gnuplot -c %s.gp svg && test -s %s.svg",
    folder, files.gp, files.dat, folder, folder, name, name))
  if not t.ok(ok, name .. ": redraws alone in another folder") then print("# " .. said) end
end

for _, case in ipairs(cases) do
  local spec, name = {}, case.name
  for key, value in pairs(case) do spec[key] = value end
  spec.name = nil
  spec.path, spec.caption = out .. "/" .. name, caption
  spec.xlabel, spec.ylabel = spec.xlabel or "Depth (layers)", spec.ylabel or "Throughput (tok/s)"
  if not gnuplot then
    t.skip(skip_reason, 9)
  else
    local files, reason = figure.draw(spec)
    if t.ok(files, name .. ": drawn") then
      t.is(files.note, nil, name .. ": without a warning")
      local complete = true
      for _, kind in ipairs {"pdf", "svg", "png", "gp", "dat", "tex", "caption"} do
        complete = complete and #(file.read(files[kind]) or "") > 0
      end
      t.ok(complete, name .. ": seven files, none empty")
      check_pdf(name, files, spec)
      check_redraw(name, files)
    else
      print("# " .. tostring(reason))
    end
  end
end

-- The words around a figure, where gnuplot is not needed.

local function written(fields)
  local spec = {kind = "lines", path = out .. "/words", xlabel = "Depth_x", ylabel = "Time & cost",
    series = {{name = "A_1 & 50% #3", points = {{x = 1, y = 2e-7, lo = 1e-7, hi = -NAN},
      {x = 2, y = -3.25}, {x = 3, y = NAN}, {x = 4, y = 123456.7, lo = 1, hi = 2e5}}}},
    caption = caption, gnuplot = "/nonexistent/gnuplot"}
  for key, value in pairs(fields or {}) do spec[key] = value end
  return figure.draw(spec)
end

local files = written()
t.like(files.note, "gnuplot not found: .*words%.gp is written.*gnuplot %-c .*words%.gp pdf",
  "without gnuplot: a note says how to draw later")
t.is(files.pdf, nil, "without gnuplot: no drawing is promised")
t.is(file.read(out .. "/words.pdf"), nil, "without gnuplot: none is left")
local tex = t.read(files.tex)
t.like(tex, "A\\_1 \\& 50\\%% \\#3", "LaTeX: series names are escaped")
t.like(tex, "Depth\\_x &", "LaTeX: the x label is escaped")
t.like(tex, "\n1 & %$2%.0000 \\times 10%^{%-7}%$ \\\\", "LaTeX: a small number has a power of ten")
t.like(tex, "\n2 & %$%-3%.2500%$ \\\\", "LaTeX: a minus is a minus")
t.like(tex, "\n3 & %-%- \\\\", "LaTeX: a missing value is a dash")
t.like(tex, "123457 {%[}1%.0000, 200000{%]}", "LaTeX: integer digits are never rounded away")
t.is(text.latex([[\{}$&#%_^~<>"]]), "\\textbackslash{}\\{\\}\\$\\&\\#\\%\\_\\textasciicircum{}"
  .. "\\textasciitilde{}\\textless{}\\textgreater{}''", "LaTeX: every special character")
local said = t.read(files.caption)
t.like(said, "n = 5", "caption: n")
t.like(said, "median of the updates", "caption: statistic")
t.like(said, "Error bars are 95 %% intervals", "caption: what the bars mean")
t.like(t.read(written({interval = "band", caption = {interval = "95 % intervals"},
  series = {{name = "one", points = {{x = 1, y = 2, lo = 1, hi = 3}}}}}).caption),
  "Error bars are 95 %% intervals", "one point has a bar, a band would not be seen")
t.like(said, "Device: Test device 100 %%; clock: 1755 MHz, locked; tilelab commit 0123abc%.",
  "caption: device, clock, commit")
t.like(said, "CPU reference, no performance claim%.", "caption: the note")
t.like(said, "A_1 & 50%% #3 has no value at 1 of 4 positions%.", "caption: gaps are told")
t.like(t.read(written({caption = {}}).caption), "n not recorded.*clock: not recorded",
  "caption: a missing condition is told")
tex = t.read(written({table = {columns = {"Backend", "T_1"}, rows = {{"R&D", 449.17}}}}).tex)
t.like(tex, "Backend & T\\_1 \\\\\n\\hline\nR\\&D & 449%.17 \\\\", "LaTeX: the caller's own table")
t.like(t.read(files.dat), "\n2\t%-3%.25\tNaN\tNaN\t0\n\n4\t", "data: a gap is one blank line")

-- Refusals.

local function refused(fields, pattern, name)
  local result, reason = written(fields)
  t.ok(result == nil and tostring(reason):find(pattern), name)
  if result ~= nil or not tostring(reason):find(pattern) then print("# " .. tostring(reason)) end
end

local function raises(fields, pattern, name)
  local ok, reason = pcall(written, fields)
  t.ok(not ok and tostring(reason):find(pattern), name)
  if ok or not tostring(reason):find(pattern) then print("# " .. tostring(reason)) end
end

refused({series = {{name = "empty", points = {{x = 1, y = NAN}}}}},
  "words: no point can be drawn.*empty",
  "no finite point: the figure is named")
refused({series = {}}, "words: no point can be drawn", "no series")
refused({logy = true, series = {{name = "n", points = {{x = 1, y = -1}}}}}, "no point can be drawn",
  "a log axis without a positive value")
refused({path = out .. "/missing/words"}, "cannot be written: .*missing/words%.dat: No such file",
  "missing folder: path and reason")
refused({path = "tests/lua/tap.lua/words"}, "Not a directory", "a file where the folder should be")
refused({height = 0.5}, "leaves no room for the plot", "too small a height")
raises({preset = "a4"}, "preset is 'a4'; it must be one of acm%-column", "unknown preset")
raises({kind = "pie"}, "kind is 'pie'; it must be one of lines, bars, trace, dots", "unknown kind")
raises({colour = 1}, "no field 'colour'; it takes band, caption", "unknown field")
raises({path = out .. "/a b"}, "the file name may hold",
  "a file name for which LaTeX would need quotes")
raises({series = {{name = "n", points = {{x = "1", y = 1}}}}}, "points%[1%]%.x must be a number",
  "wrong type of x")
raises({series = {{name = "n", points = {{x = 1, y = 1, lo = 2, hi = 1}}}}}, "lo 2 is above hi 1",
  "crossed interval")
raises({kind = "bars", logy = true}, "bars start at zero", "bars on a log axis")
raises({kind = "steps", logy = true}, "bars start at zero", "steps on a log axis")
raises({kind = "bars", yrange = {1, 5}}, "bars start at zero", "bars cut at the foot")
raises({series = six(5), yrange = {3, 1}}, "3 is not below 1", "empty yrange")

-- Words of the kinds of the measuring experiments.

said = t.read(written({kind = "roofline", series = levels, roofs = roofs, peaks = peaks,
  marked = "L2 traffic"}).caption)
t.like(said, "Roof: DRAM copy, 4%.25 TB/s, ridge at 252%.", "roofline: the caption has the ridge")
t.like(said, "clock: 1755 MHz, locked", "roofline: the clock is in the caption")
t.like(said, "Small points: L2 traffic%.", "roofline: what the small points are")
files = written({kind = "stack", order = {"wait", "barrier"},
  series = {named("barrier", 1, 30), named("branch", 1, 10), named("wait", 1, 20), named("x", 1, 32)}})
t.like(t.read(files.dat),
  '"wait"\n\n1\t22\t0\t22\t.-\n\n\n"barrier"\n\n1\t32\t22\t54\t.-\n\n\n"other"\n\n1\t46\t54\t100\t',
  "stack: the caller's order, percent, and what it lacks as other")
t.like(t.read(files.gp), "array SLOT%[3%] = %[1, 2, 8%]", "stack: a name keeps its colour")
t.like(t.read(files.caption), "Bars add up to 100 %%%.", "stack: the caption says so")
files = written({kind = "parts", order = {"gemm", "pad"}, series = {named("pad", 1, 30), named("gemm", 1, 170)}})
t.like(t.read(files.dat), '"gemm"\n\n1\t172\t0\t172\t.-\n\n\n"pad"\n\n1\t32\t172\t204\t',
  "parts: on top of each other, in their own unit")
t.ok(not t.read(files.caption):find("add up", 1, true), "parts: which the caption does not call percent")
t.like(t.read(files.gp), "set yrange %[0:2%d%d", "parts: the axis holds their sum")
files = written({kind = "pairs", series = {named("logical", 2, 30), named("measured", 1, 62)}})
t.like(t.read(files.gp), "'2%.00×'", "pairs: the ratio is written")
t.like(t.read(files.caption), "Above each pair: measured over logical%.", "pairs: and explained")
t.like(t.read(files.tex), "& ratio .*2%.00 \\.*& %-%- & %-%- \\", "pairs: and in the table")
files = written({kind = "steps", order = {"first"}, series = {
  {name = "32 experts", points = {{x = "second", y = 500, lo = 490, hi = 510}, {x = "first", y = 2.5}}}}})
t.like(t.read(files.dat), '2\t500\t490\t510\t"second"\t"500 %(200×%)"\n1\t2.5\tNaN\tNaN\t"first"\t"2%.50"',
  "steps: a value beside each bar, and that over the bar above")
t.like(t.read(files.caption), "Beside each bar: its value and, in brackets, that over the bar of the same series "
  .. "above it%.", "steps: the caption says so")
t.like(t.read(files.gp), "set xrange %[0:", "steps: bars start at zero")
files = written({kind = "steps", series = {{name = "32 experts", points = {{x = "first", y = 200},
  {x = "second", y = 300, gain = 1.47}, {x = "third", y = 330}}}}})
t.like(t.read(files.dat), '"300 %(1%.47×%)"\n[^\n]*"330 %(1%.10×%)"', "steps: a gain that was measured takes its place")
t.like(t.read(files.caption), "in brackets, its gain over the bar", "steps: as the caption says")
files = written({kind = "spans", series = {{name = "forward", points = {{x = "experts", y = 3, lo = 2, hi = 4}}}}})
t.like(t.read(files.caption), "Each span is", "spans: the caption calls them so, and no error bars")
t.ok(not t.read(files.caption):find("Error bars"), "spans: ends are no intervals")
raises({kind = "spans", series = {{name = "a", points = {{x = "r", y = 1}}}}}, "spans take a lo and a hi",
  "a span without ends")
t.like(t.read(written({band = "central half", interval = "band"}).gp), "BAND = 'central half'",
  "a band is named in the key")

refused({kind = "dots", series = {named("many", 65, 1)}}, "65 rows, and a page holds 64",
  "dots: more rows than a page holds")
refused({kind = "dots", height = 1, series = {named("many", 30, 1)}}, "no room for 30 rows", "dots: height")
refused({kind = "stack", series = {named("negative", 2, -9)}}, "no point can be drawn", "stack: nothing above 0")
raises({kind = "pairs", series = {named("one", 2, 1)}}, "pairs take two series, not 1", "pairs of one")
raises({kind = "roofline", series = levels, roofs = roofs}, "1 or 2 peaks, not 2 and 0", "a roofline without a peak")
raises({kind = "roofline", series = levels, peaks = peaks, roofs = {{slope = 0, label = "x"}}},
  "roofs%[1%]: slope is not a positive number", "a flat roof")
raises({roofs = roofs}, "roofs are for kind 'roofline'", "roofs elsewhere")
raises({kind = "bars", order = {"a"}}, "order is for stack, parts, dots, steps and spans, not for kind 'bars'",
  "an order elsewhere")
raises({kind = "stack", order = {"a", "b", "c", "d", "e", "f", "g", "h"}, series = {named("x", 1, 1)}},
  "order: 8 names and what they leave; at most 8", "stack: too long an order")
raises({kind = "occupancy", regions = {{to = 5, label = "x"}}}, "neither references nor regions",
  "occupancy with regions")

-- gnuplot that fails, and one that says nothing.

local fake = out .. "/fake gnuplot"
local function with_fake(body)
  t.write(fake, "#!/bin/sh\n" .. body .. "\n")
  assert(shell("chmod +x '" .. fake .. "'"))
end
with_fake([[printf '\nplot x\n     ^\n"x.gp" line 12: undefined variable: x\n\n' >&2; exit 1]])
refused({gnuplot = fake}, 'did not draw .*words%.pdf: "x%.gp" line 12: undefined variable: x',
  "gnuplot fails: its own line")
with_fake("exit 0")
refused({gnuplot = fake}, "did not draw .*words%.pdf: it said nothing",
  "gnuplot draws nothing and exits 0")
with_fake("printf '%%PDF-1.5 half of it' > '" .. out .. "/words.pdf'")
refused({gnuplot = fake}, "did not draw .*words%.pdf: the file is cut off", "a disk that is full")

-- Axes.

local axis = axes.linear(0, 449170, 6, {fixed_lo = true, pad = 0.04, snap = true})
t.is(axis.tics[#axis.tics].label, "500k", "axis: thousands have a suffix")
t.is(axes.linear(0, 0.31, 4, {fixed_lo = true}).tics[2].label, "0.1",
  "axis: as many decimals as needed")
t.is(axes.linear(0, 5e-7, 5, {fixed_lo = true}).tics[2].label, "1×10^{-7}", "axis: small numbers")
t.is(axes.log(0.001, 1000, 10, 8, {}).tics[1].label, "0.001", "axis: a log axis in plain numbers")
t.ok(axes.powers_of_two {2, 1024} and not axes.powers_of_two {2, 3},
  "axis: powers of two are known")
t.ok(math.abs(axes.width("DeepGEMM", 8) - 44.0) < 0.05, "axis: widths are those of the font")

-- Templates on their own, as a reader would run them.

for kind, stem in pairs {lines = "lines-plain", bars = "bars-labels", trace = "trace-plain",
  dots = "dots-plain", steps = "steps-plain", spans = "spans-plain", stack = "stack-plain",
  roofline = "roofline-plain"} do
  if gnuplot then
    local target = string.format("%s/direct-%s.pdf", out, kind)
    local ok, words = shell(string.format(
      "gnuplot -c plots/%s.gp '%s/%s.dat' '%s' acm-column 'Depth_x 50%%' Time %s && test -s '%s'",
      kind, out, stem, target, kind == "roofline" and "1070 4.25 11" or "", target))
    t.ok(ok, "plots/" .. kind .. ".gp draws a data file")
    if not ok then print("# " .. words) end
  else
    t.skip(skip_reason)
  end
end
if gnuplot then
  local ok, words = shell("gnuplot -c plots/lines.gp a.dat a.gif acm-column x y")
  t.ok(not ok and words:find("must end in .pdf, .svg or .png", 1, true),
    "templates: unknown format")
  ok, words = shell("gnuplot -c plots/lines.gp a.dat a.pdf a4 x y")
  t.ok(not ok and words:find("unknown preset 'a4'", 1, true), "templates: unknown preset")
else
  t.skip(skip_reason, 2)
end

if not kept then shell("rm -r '" .. out .. "'") end
t.done()
