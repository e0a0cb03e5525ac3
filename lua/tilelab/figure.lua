-- Figures for papers: data in, files out (PDF, SVG, PNG, script, data, caption, LaTeX table).
--
-- figure.draw checks the specification, works out ranges and layout (figure/script.lua), writes
-- the files and runs gnuplot once per format. What the caller wrote wrongly raises; what the
-- data or the machine refuse returns nil and a message that names the figure. Without gnuplot the
-- figure is written but not drawn, and the result says so in `note`.
--
--   figure.draw {
--     kind = "lines", path = "out/time", xlabel = "Depth (layers)", ylabel = "Time (us/token)",
--     series = {{name = "RapidGEMM", points = {{x = 1, y = 2.2, lo = 2.1, hi = 2.3}, ...}}},
--     caption = {n = 5, statistic = "median", device = ..., clock = ..., commit = ...},
--   }

local axes = require "tilelab.figure.axes"
local script = require "tilelab.figure.script"
local text = require "tilelab.figure.text"

local figure = {}

-- Widths of the presets in inches.
figure.presets = {["acm-column"] = 3.33, ["acm-full"] = 7.0, ["ieee-column"] = 3.5, neurips = 5.5}

-- Folder that holds plots/: the repository root, two levels above this file's folder.
local source = debug.getinfo(1, "S").source
figure.root = source:match("^@(.*)lua/tilelab/figure%.lua$") or ""

local MAX_SERIES, MAX_NOTES = 8, 4
local ENOENT = 2

local function set(names)
  local result = {}
  for name in names:gmatch("%S+") do result[name] = true end
  return result
end

local KEYS = {
  spec = set [[kind path title xlabel ylabel preset height series logx logy xtics yrange zero
    interval marked references regions caption table digits gnuplot]],
  series = set "name points style dotted slot key",
  point = set "x y lo hi mark",
  reference = set "x y label",
  region = set "from to label",
  caption = set "what n statistic interval clock device commit note",
  table = set "columns rows",
}

local function fail(fmt, ...)
  error("figure: " .. string.format(fmt, ...), 0)
end

local function check_keys(what, value, where)
  if type(value) ~= "table" then fail("%s must be a table, not %s", where, type(value)) end
  for key in pairs(value) do
    if not KEYS[what][key] then
      local known = {}
      for name in pairs(KEYS[what]) do known[#known + 1] = name end
      table.sort(known)
      fail("%s has no field '%s'; it takes %s", where, tostring(key), table.concat(known, ", "))
    end
  end
end

local function check_type(value, kind, where)
  if value ~= nil and type(value) ~= kind then
    fail("%s must be a %s, not %s", where, kind, type(value))
  end
  return value
end

local function one_of(value, names, where)
  for _, name in ipairs(names) do
    if value == name then return value end
  end
  return fail("%s is '%s'; it must be one of %s", where, tostring(value), table.concat(names, ", "))
end

-- Copies one point; anything that cannot be drawn becomes a missing y or a missing interval.
local function prepare_point(fig, point, where)
  check_keys("point", point, where)
  local copy = {mark = point.mark and true or false}
  if fig.kind == "bars" then
    if point.x == nil then fail("%s has no x", where) end
    local x = point.x
    copy.label = text.clean(type(x) == "number" and string.format("%.10g", x) or x)
    local index = fig.category_index[copy.label]
    if not index then
      index = #fig.categories + 1
      fig.categories[index], fig.category_index[copy.label] = copy.label, index
    end
    copy.x = index
  else
    copy.x = check_type(point.x, "number", where .. ".x")
    if not axes.finite(copy.x) then fail("%s: x is not a finite number", where) end
  end
  copy.y = check_type(point.y, "number", where .. ".y")
  local lo = check_type(point.lo, "number", where .. ".lo")
  local hi = check_type(point.hi, "number", where .. ".hi")
  if not axes.finite(copy.y) or (fig.logy and copy.y <= 0) or (fig.logx and copy.x <= 0) then
    copy.y = nil
  elseif axes.finite(lo) and axes.finite(hi) then
    if lo > hi then fail("%s: lo %g is above hi %g", where, lo, hi) end
    if not fig.logy or hi > 0 then copy.lo, copy.hi = lo, hi end
  end
  return copy
end

-- Copies one series, counts what it lacks; nil when it has nothing to draw.
local function prepare_series(fig, series, position)
  local where = string.format("series[%d]", position)
  check_keys("series", series, where)
  local copy = {
    name = text.clean(series.name or fail("%s has no name", where)),
    style = series.style and one_of(series.style, {"both", "line", "points"}, where .. ".style"),
    dotted = series.dotted and true or false, key = series.key ~= false, marks = false,
    slot = check_type(series.slot, "number", where .. ".slot") or (position - 1) % MAX_SERIES + 1,
    points = {},
  }
  if copy.slot < 1 or copy.slot > MAX_SERIES or copy.slot % 1 ~= 0 then
    fail("%s.slot must be a whole number from 1 to %d", where, MAX_SERIES)
  end
  copy.slot = math.tointeger(copy.slot)
  check_type(series.points or fail("%s has no points", where), "table", where .. ".points")
  local drawn, intervals = 0, 0
  for p, point in ipairs(series.points) do
    local made = prepare_point(fig, point, string.format("%s.points[%d]", where, p))
    copy.points[p] = made
    if made.y then drawn = drawn + 1 end
    if made.lo then intervals = intervals + 1 end
    copy.marks = copy.marks or (made.mark and made.y ~= nil)
  end
  copy.style = copy.style or (drawn <= 30 and "both" or "line")
  for p, point in ipairs(copy.points) do -- no line reaches a point between gaps
    local before, after = copy.points[p - 1], copy.points[p + 1]
    point.alone = point.y and not (before and before.y) and not (after and after.y)
    copy.alone = copy.alone or point.alone
  end
  if drawn < #copy.points then
    fig.remarks[#fig.remarks + 1] = drawn == 0 and copy.name .. " has no value that can be drawn"
      or string.format("%s has no value at %d of %d positions", copy.name, #copy.points - drawn,
        #copy.points)
  end
  if drawn == 0 then return nil end
  if intervals > 0 then
    copy.interval = (fig.kind == "bars" or drawn == 1) and "bars" -- a band of one point is none
      or fig.kind == "trace" and "band" or fig.interval or (drawn <= 20 and "bars" or "band")
    fig.drawn_intervals = copy.interval == "bars" and "Error bars" or "Shaded bands"
  end
  return copy
end

-- Reference lines and grey regions, each with a label for the key.
local function prepare_notes(fig, spec)
  for i, line in ipairs(spec.references or {}) do
    local where = string.format("references[%d]", i)
    check_keys("reference", line, where)
    if (line.x == nil) == (line.y == nil) then fail("%s needs either x or y", where) end
    if fig.kind == "bars" and line.x then fail("%s: bars take a y only", where) end
    if not axes.finite(line.x or line.y) then fail("%s: not a finite number", where) end
    fig.references[i] = {x = line.x, y = line.y,
      label = text.clean(line.label or fail("%s has no label", where))}
  end
  for i, region in ipairs(spec.regions or {}) do
    local where = string.format("regions[%d]", i)
    check_keys("region", region, where)
    if fig.kind == "bars" then fail("%s: bars take no regions", where) end
    local from, to = region.from or -math.huge, region.to or math.huge
    if not (type(from) == "number" and type(to) == "number" and from < to) then
      fail("%s: from and to must be numbers, from below to", where)
    end
    fig.regions[i] = {from = from, to = to,
      label = text.clean(region.label or fail("%s has no label", where))}
  end
  if #fig.references > MAX_NOTES or #fig.regions > MAX_NOTES then
    fail("at most %d references and %d regions", MAX_NOTES, MAX_NOTES)
  end
end

-- Data ranges of both axes; bars, and lines that come near zero, start there.
local function prepare_ranges(fig, spec)
  local x, y = {lo = math.huge, hi = -math.huge, values = {}}, {lo = math.huge, hi = -math.huge}
  local function widen(range, value)
    if value then range.lo, range.hi = math.min(range.lo, value), math.max(range.hi, value) end
  end
  local seen = {}
  for _, series in ipairs(fig.series) do
    for _, point in ipairs(series.points) do
      widen(x, point.y and point.x)
      widen(y, point.y)
      widen(y, point.hi)
      if not (fig.logy and point.lo and point.lo <= 0) then widen(y, point.lo) end
      if point.y and not seen[point.x] then
        seen[point.x] = true
        x.values[#x.values + 1] = point.x
      end
    end
  end
  table.sort(x.values)
  for _, line in ipairs(fig.references) do
    if not (fig.logx and line.x and line.x <= 0) then widen(x, line.x) end
    if not (fig.logy and line.y and line.y <= 0) then widen(y, line.y) end
  end
  local near = y.lo >= 0 and y.lo < 0.5 * y.hi or y.hi <= 0 and y.hi > 0.5 * y.lo
  if not fig.logy and (fig.kind == "bars" or spec.zero or (spec.zero == nil and near)) then
    if y.lo >= 0 then y.lo, y.fixed_lo = 0, true end
    if y.hi <= 0 then y.hi, y.fixed_hi = 0, true end
  end
  local given = spec.yrange or {}
  y.lo, y.fixed_lo = given[1] or y.lo, given[1] ~= nil or y.fixed_lo
  y.hi, y.fixed_hi = given[2] or y.hi, given[2] ~= nil or y.fixed_hi
  if spec.yrange and not (y.lo < y.hi) then fail("yrange: %g is not below %g", y.lo, y.hi) end
  if spec.yrange and fig.logy and y.lo <= 0 then fail("yrange: a log axis starts above zero") end
  if fig.kind == "bars" and (y.lo > 0 or y.hi < 0) then fail("yrange: bars start at zero") end
  fig.x, fig.y = x, y
  fig.logx = fig.logx == true and (axes.powers_of_two(x.values) and 2 or 10) or fig.logx
  for _, series in ipairs(fig.series) do -- an interval to zero leaves a log axis at the frame
    for _, point in ipairs(series.points) do
      if fig.logy and point.lo and point.lo <= 0 then point.lo = y.lo * 1e-6 end
    end
  end
end

-- Checks a specification and returns the figure that the other parts work on, or nil, message
-- when no point can be drawn. Raises on a malformed specification.
local function prepare(spec)
  check_keys("spec", spec, "the specification")
  local path = check_type(spec.path or fail("no path"), "string", "path")
  local fig = {
    kind = one_of(spec.kind, {"lines", "bars", "trace"}, "kind"), path = path,
    stem = path:match("[^/]+$") or "", series = {}, categories = {}, category_index = {},
    references = {}, regions = {}, remarks = {}, mark_labels = {}, caption = {},
    logx = spec.logx, logy = spec.logy == true and 10 or spec.logy, xtics = spec.xtics,
    height = check_type(spec.height, "number", "height"), digits = spec.digits or 5,
    interval = spec.interval and one_of(spec.interval, {"bars", "band"}, "interval"),
    table = spec.table, gnuplot = spec.gnuplot,
  }
  if not fig.stem:match("^[%w_][%w_.+-]*$") then
    fail("path '%s': the file name may hold letters, digits and _ . + - only", text.clean(path))
  end
  local preset = spec.preset or "acm-column"
  fig.width = figure.presets[preset]
    or one_of(preset, {"acm-column", "acm-full", "ieee-column", "neurips"}, "preset")
  for _, name in ipairs {"title", "xlabel", "ylabel", "marked"} do
    fig[name] = spec[name] ~= nil and text.clean(spec[name]) or nil
  end
  fig.xlabel, fig.ylabel = fig.xlabel or "", fig.ylabel or ""
  if fig.kind == "bars" and (fig.logy or fig.logx) then
    fail("bars start at zero, so they have no log axis: use kind 'lines' with style 'points'")
  end
  for _, axis in ipairs {"logx", "logy"} do
    if fig[axis] and fig[axis] ~= true then one_of(fig[axis], {2, 10}, axis) end
  end
  check_keys("caption", spec.caption or {}, "caption")
  for key, value in pairs(spec.caption or {}) do fig.caption[key] = text.clean(value) end
  if spec.table then check_keys("table", spec.table, "table") end
  prepare_notes(fig, spec)
  check_type(spec.series or fail("no series"), "table", "series")
  if #spec.series > MAX_SERIES then
    fail("%d series; at most %d can be told apart", #spec.series, MAX_SERIES)
  end
  for s, series in ipairs(spec.series) do
    fig.series[#fig.series + 1] = prepare_series(fig, series, s)
  end
  if #fig.series == 0 then
    return nil, string.format("figure %s: no point can be drawn (%s)", text.clean(path),
      #fig.remarks > 0 and table.concat(fig.remarks, "; ") or "there are no series")
  end
  for _, series in ipairs(fig.series) do
    if series.marks and fig.kind == "trace" then
      fig.mark_labels[#fig.mark_labels + 1] = series.name .. ": " .. (fig.marked or "marked")
    end
  end
  if #fig.mark_labels == 0 then fig.marked = nil end
  prepare_ranges(fig, spec)
  return fig
end

-- The one place where a word becomes part of a shell command.
local function shell_quote(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

-- Runs a command; returns whether it exited with 0, and its output with both streams joined.
local function capture(...)
  local parts = {}
  for i, word in ipairs {...} do parts[i] = shell_quote(word) end
  local command = "LC_ALL=C " .. table.concat(parts, " ") .. " </dev/null 2>&1"
  local pipe <close> = assert(io.popen(command))
  local output = pipe:read("a")
  return pipe:close() == true, output
end

local function read_file(path)
  local file <close> = io.open(path, "rb")
  return file and file:read("a")
end

local function write_file(path, content)
  local file, reason = io.open(path, "wb")
  if not file then return nil, reason end
  local ok, write_reason = file:write(content)
  local closed, close_reason = file:close()
  if ok and closed then return true end
  return nil, string.format("%s: %s", path, write_reason or close_reason)
end

-- gnuplot's own words about a failure or a warning, on one line. Under LC_ALL=C gnuplot 5.4
-- complains about the degree sign, which no figure uses as such.
local function gnuplot_line(output)
  local last
  for line in output:gmatch("[^\n]+") do
    local wanted = line:match("%S") and not line:find("iconv failed to convert degree", 1, true)
    if wanted and (not last or line:find("line %d+:") or not last:find("line %d+:")) then
      last = line
    end
  end
  return last and text.clean(last):match("^%s*(.-)%s*$")
end

-- How whole files end: gnuplot exits with 0 also when the disk is full.
local ENDINGS = {pdf = "%%%%EOF%s*$", svg = "</svg>%s*$", png = "IEND\xAEB`\x82$"}

-- Draws one format of a written figure; returns its path or nil, message; then a warning or nil.
local function render(gnuplot, files, format)
  local output = files.gp:gsub("%.gp$", "." .. format)
  local ok, said = capture(gnuplot, "-c", files.gp, format)
  local line = gnuplot_line(said)
  local drawn = read_file(output)
  if ok and drawn and drawn:find(ENDINGS[format], -32) then return output, line end
  return nil, string.format("figure %s: gnuplot did not draw %s: %s", files.gp, output,
    line or (drawn and "the file is cut off; is the disk full?" or "it said nothing"))
end

local font_missing -- looked up once a process

local function font_note()
  if font_missing == nil then
    local ok, found = capture("fc-list", "Liberation Sans", "family")
    font_missing = ok and not found:find("%S") or false
  end
  return font_missing and "font Liberation Sans not found: text is in a substitute, and may not "
    .. "fit; install the package fonts-liberation"
end

-- Draws the figure that `spec` describes. Fields (? = optional, default in brackets):
--   kind         "lines" | "bars" | "trace"
--   path         folder and stem of the files; the folder exists
--   title? xlabel? ylabel?      any text, printed as it is
--   preset?      ["acm-column"], "acm-full", "ieee-column", "neurips"; height? in inches
--   series       list of {name=, points=, slot?=, style?=, dotted?=, key?=}: slot 1 to 8 picks
--                colour, dash and point [position], so that a backend looks alike in all figures;
--                style "both", "line", "points" ["both"; "line" beyond 30 points] and dotted (thin:
--                a fit, an extrapolation) are for lines; key=false leaves it out of the key
--   points       list of {x=, y=, lo?=, hi?=, mark?=}; x is a number, for bars any text or number;
--                NaN or no y is a gap; mark=true highlights (trace)
--   logx? logy?  true, 2 or 10 (true: x in base 2 when every x is a power of two)
--   xtics?       numbers or {number, label} pairs; yrange? {lo, hi}, either may be nil
--   zero?        true: y starts at 0, false: never [0 when the data come near it; bars always]
--   interval?    "bars" | "band" [band beyond 20 points; trace: band]
--   marked?      what the marks are, in few words ("fastest 8 updates")
--   references?  list of {y= or x=, label=}: grey lines; regions? list of
--                {from?=, to?=, label=}: grey areas over a range of x
--   caption?     {what?= [from the labels], n?=, statistic?= ("median of the updates"), interval?=
--                ("95 % bootstrap intervals"), clock?=, device?=, commit?=, note?=}
--   table?       {columns=, rows=} [the plotted numbers]; digits? significant digits there [5]
--   gnuplot?     program [$TILELAB_GNUPLOT, else "gnuplot"]
-- Returns {pdf=, svg=, png=, gp=, dat=, tex=, caption=, note=}: paths, and in note what the user
-- should know (gnuplot or the font missing, gnuplot's warnings).
-- Returns nil, message when the data or the machine refuse; raises on a malformed spec.
function figure.draw(spec)
  local fig, reason = prepare(spec)
  if not fig then return nil, reason end
  local texts = {}
  for _, name in ipairs {"style", fig.kind} do
    local file = figure.root .. "plots/" .. name .. ".gp"
    texts[name] = read_file(file)
    if not texts[name] then return nil, "figure template not found: " .. file end
  end
  local gp
  gp, reason = script.gnuplot(fig, texts.style, texts[fig.kind])
  if not gp then return nil, string.format("figure %s: %s", text.clean(fig.path), reason) end

  local base = fig.path:sub(1, 1) == "/" and fig.path or "./" .. fig.path
  local files = {gp = base .. ".gp", dat = base .. ".dat", tex = base .. ".tex",
    caption = base .. ".caption.txt"}
  local contents = {gp = gp, dat = script.data(fig), tex = text.tabular(fig),
    caption = text.caption(fig)}
  for _, format in ipairs {"pdf", "svg", "png"} do -- an old drawing would not match the new data
    local removed, refusal, code = os.remove(base .. "." .. format)
    if not removed and code ~= ENOENT and read_file(base .. "." .. format) then
      return nil, string.format("figure %s cannot be replaced: %s", text.clean(fig.path), refusal)
    end
  end
  for _, name in ipairs {"dat", "gp", "tex", "caption"} do
    local ok, refusal = write_file(files[name], contents[name])
    if not ok then
      return nil, string.format("figure %s cannot be written: %s", text.clean(fig.path), refusal)
    end
  end

  local gnuplot = fig.gnuplot or os.getenv("TILELAB_GNUPLOT") or "gnuplot"
  if not capture("sh", "-c", 'command -v "$1"', "sh", gnuplot) then
    files.note = string.format("gnuplot not found: %s is written but not drawn; run `gnuplot -c "
      .. "%s pdf` later", files.gp, files.gp)
    return files
  end
  files.note = font_note() or nil
  for _, format in ipairs {"pdf", "svg", "png"} do
    local output, line = render(gnuplot, files, format)
    if not output then return nil, line end
    files[format] = output
    if line then files.note = (files.note and files.note .. "; " or "") .. "gnuplot: " .. line end
  end
  return files
end

return figure
