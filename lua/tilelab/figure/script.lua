-- The gnuplot side of a figure: its data file, and a script that carries style.gp and the template
-- inside, so that the folder can be moved anywhere. Works on the prepared figure
-- (figure/prepare.lua) and its layout (figure/layout.lua).

local axes = require "tilelab.figure.axes"
local layout = require "tilelab.figure.layout"
local text = require "tilelab.figure.text"

local script = {}

local SIZE, LINE = layout.SIZE, layout.LINE

-- Words as a gnuplot string; single quotes know no escapes but '' for a quote.
local function quote(s)
  return "'" .. s:gsub("'", "''") .. "'"
end

local function quote_lines(lines)
  local parts = {}
  for i, line in ipairs(lines) do parts[i] = quote(line) end
  return #parts > 0 and table.concat(parts, '."\\n".') or "''"
end

local function number(value)
  return axes.finite(value) and string.format("%.17g", value) or "NaN"
end

local HEADS = {
  number = "# x\ty\tlo\thi\tmark (1 highlighted, 2 alone between gaps)",
  category = "# cluster\ty\tlo\thi\tlabel", row = "# row\ty\tlo\thi\tlabel",
  steps = "# row\ty\tlo\thi\tlabel\ttext",
  stack = "# cluster\tpercent\tfrom\tto\tlabel", parts = "# cluster\ty\tfrom\tto\tlabel",
}

-- Text of the data file: one index per series, its name alone in the first block; a blank line
-- is a gap in the line.
function script.data(figure)
  local out = {HEADS[figure.kind] or HEADS[figure.axis]}
  for i, series in ipairs(figure.series) do
    if i > 1 then out[#out + 1] = "\n" end
    out[#out + 1] = '"' .. series.name:gsub('"', "'") .. '"\n'
    local gap = true
    for _, point in ipairs(series.points) do
      if axes.finite(point.y) then
        local row = {number(point.x), number(point.y), number(point.from or point.lo),
          number(point.to or point.hi)}
        if figure.axis == "number" then
          row[5] = point.mark and "1" or point.alone and "2" or "0"
        else
          row[5] = '"' .. point.label:gsub('"', "'") .. '"'
          row[6] = point.text and '"' .. point.text .. '"'
        end
        out[#out + 1] = table.concat(row, "\t")
        gap = false
      elseif not gap then
        out[#out + 1] = "" -- one blank line only: two would start a new index
        gap = true
      end
    end
    if out[#out] == "" then out[#out] = nil end
  end
  return table.concat(out, "\n") .. "\n"
end

local function tic_list(axis)
  local items = {}
  for i, tic in ipairs(axis.tics) do
    -- gnuplot reads a tic label as a format: percent signs are doubled
    items[i] = string.format("%s %.17g%s", quote((tic.label:gsub("%%", "%%%%"))), tic.value,
      tic.minor and " 1" or "")
  end
  return (axis.enhanced and "enhanced" or "noenhanced") .. " (" .. table.concat(items, ", ") .. ")"
end

local function array(name, items)
  if #items == 0 then return nil end
  return string.format("array %s[%d] = [%s]", name, #items, table.concat(items, ", "))
end

local function words(list)
  return quote(table.concat(list, " "))
end

-- Lists of series that each template reads.
local USED = {
  lines = {"LINES", "POINTS", "DOTTED", "INTERVALS", "BANDS", "KEY_BOTH", "KEY_POINTS",
    "KEY_LINES", "KEY_DOTTED", "ALONE"},
  bars = {"INTERVALS", "KEY_BOTH"},
  dots = {"INTERVALS", "KEY_BOTH"},
  steps = {"INTERVALS", "KEY_BOTH"},
  spans = {"KEY_BOTH"},
  stack = {"KEY_BOTH"},
  roofline = {"INTERVALS", "MARKS", "KEY_BOTH"},
  trace = {"BANDS", "MARKS", "KEY_BOTH", "ALONE"},
}

-- Commands that name the series and say how each is drawn.
local function series_settings(figure, box, emit)
  local names, slots = {}, {}
  local lists = {LINES = {}, POINTS = {}, DOTTED = {}, INTERVALS = {}, BANDS = {}, MARKS = {},
    ALONE = {}, KEY_BOTH = {}, KEY_LINES = {}, KEY_POINTS = {}, KEY_DOTTED = {}}
  local function list(name, i) lists[name][#lists[name] + 1] = i end
  for i, series in ipairs(figure.series) do
    names[i] = series.key and quote(text.shorten(series.name, box.key.cut, SIZE)) or "''"
    slots[i] = tostring(series.slot)
    local form = figure.template ~= "lines" and "BOTH" or series.dotted and "DOTTED"
      or series.style == "line" and "LINES" or series.style == "points" and "POINTS" or "BOTH"
    if form == "BOTH" or form == "LINES" then list("LINES", i) end
    if form == "BOTH" or form == "POINTS" then list("POINTS", i) end
    if form == "DOTTED" then list("DOTTED", i) end
    if series.key then list("KEY_" .. form, i) end
    if series.interval == "bars" then list("INTERVALS", i) end
    if series.interval == "band" then list("BANDS", i) end
    if series.marks then list("MARKS", i) end
    if series.alone and (figure.kind == "trace" or form == "LINES" or form == "DOTTED") then
      list("ALONE", i)
    end
  end
  emit("SERIES = %d", #figure.series)
  emit("%s", array("NAME", names))
  emit("%s", array("SLOT", slots))
  for _, name in ipairs(USED[figure.template]) do emit("%s = %s", name, words(lists[name])) end
  if figure.kind == "trace" or figure.kind == "roofline" then
    local labels = {}
    for i, label in ipairs(figure.mark_labels) do
      labels[i] = quote(text.shorten(label, box.key.cut, SIZE))
    end
    emit("MARK_KEYS = %d", #labels)
    if #labels > 0 then emit("%s", array("MARKED", labels)) end
  end
  if figure.template == "dots" then emit("APART = %g", figure.shared_rows and 0.5 / #names or 0) end
  if figure.band_label then
    emit("BAND_KEY = %s", quote(tostring(lists.BANDS[1])))
    emit("BAND = %s", quote(text.shorten(figure.band_label, box.key.cut, SIZE)))
  end
end

-- Every point of a figure on the page, and what joins neighbours of a series, in steps.
local function marks_of(figure, place)
  local marks = {}
  for _, series in ipairs(figure.series) do
    local before_x, before_y
    for _, point in ipairs(series.points) do
      if point.y then
        local x, y = place(point.x, point.y)
        for step = before_x and 1 or 4, 4 do
          local share = step / 4
          marks[#marks + 1] = {(before_x or x) * (1 - share) + x * share,
            (before_y or y) * (1 - share) + y * share}
        end
        before_x, before_y = x, y
      end
    end
  end
  return marks
end

-- A roof's label: its text, where its middle stands on the page (along the roof, above or below it,
-- where it is farthest from every mark), and its angle. Roofs are straight, both axes being
-- logarithmic.
local function roof_label(figure, box, roof, plot_width)
  local function place(x, y)
    return box.left + axes.position(box.x, x) * plot_width,
      box.bottom + axes.position(box.y, y) * box.plot_height
  end
  local from = math.max(box.x.lo, box.y.lo / roof.slope)
  local x0, y0 = place(from, from * roof.slope)
  local x1, y1 = place(roof.ridge, figure.peaks[1].y)
  local angle, length = math.atan(y1 - y0, x1 - x0), math.sqrt((x1 - x0) ^ 2 + (y1 - y0) ^ 2)
  local cos, sin = math.cos(angle), math.sin(angle)
  local label = text.shorten(roof.label, length - 24, SIZE)
  local half, away, marks = axes.width(label, SIZE) / 2 + 4, LINE / 2 + 1.2, marks_of(figure, place)
  local best, best_score = {length / 2, away}, -math.huge
  for step = 0, 40 do
    local at = half + (length - 12 - 2 * half) * step / 40
    for _, side in ipairs {away, -away - 1} do
      local score = 14
      for _, mark in ipairs(marks) do
        local u = (mark[1] - x0) * cos + (mark[2] - y0) * sin - at
        local v = (mark[2] - y0) * cos - (mark[1] - x0) * sin - side
        score = math.min(score, math.max(math.abs(u) - half, math.abs(v) - LINE / 2))
      end
      score = score - math.abs(step - 20) * 0.05 - (side < 0 and 2 or 0) -- else above, in the middle
      if score > best_score then best, best_score = {at, side}, score end
    end
  end
  return label, x0 + best[1] * cos - best[2] * sin, y0 + best[1] * sin + best[2] * cos, math.deg(angle)
end

-- Roofs with their labels along them and a mark at each ridge; the label of the higher peak stands
-- on its line, that of the lower one in the key, since points lie close below.
local function roof_settings(figure, box, emit)
  local plot_width, slopes, fastest = box.width - box.left - box.right, {}, 0
  local peak, lower = figure.peaks[1], figure.peaks[2]
  for i, roof in ipairs(figure.roofs) do
    slopes[i] = number(roof.slope)
    fastest = math.max(fastest, roof.slope)
    emit("set arrow %d from first %s, graph 0 to first %s, first %s nohead back ls 45", 20 + i,
      number(roof.ridge), number(roof.ridge), number(peak.y))
    local label, x, y, degrees = roof_label(figure, box, roof, plot_width)
    emit("set label %d %s at screen %.5f, screen %.5f center rotate by %.2f noenhanced", 60 + i,
      quote(label), x / box.width, y / box.height, degrees)
  end
  emit("ROOFS = %d", #slopes)
  while #slopes < 3 do slopes[#slopes + 1] = "1" end
  emit("%s", array("SLOPE", slopes))
  emit("PEAK = %s", number(peak.y))
  emit("LOWER_PEAK = %s", number(lower and lower.y))
  emit("KNEE = %s", number(lower and lower.y / fastest or 0))
  emit("LOWER_PEAKS = %d", lower and 1 or 0)
  emit("LOWER_NAME = %s", quote(lower and text.shorten("peak: " .. lower.label, box.key.cut, SIZE) or ""))
  local y = box.bottom + axes.position(box.y, peak.y) * box.plot_height + LINE / 2 + 0.5
  emit("set label 70 %s at screen %.5f, screen %.5f right noenhanced",
    quote(text.shorten(peak.label, plot_width - 8, SIZE)), 1 - (box.right + 1) / box.width,
    y / box.height)
end

-- The ratio above each pair.
local function ratio_settings(figure, box, emit)
  for c = 1, #figure.categories do
    local ratio = figure.ratios[c]
    if ratio then
      local x = box.left + (c - 0.5) * box.slot
      local y = box.bottom + axes.position(box.y, ratio.top) * box.plot_height
      local turned = box.ratio_turned
      emit("set label %s at screen %.5f, screen %.5f %s noenhanced front", quote(ratio.label),
        x / box.width, (y + (turned and 3 or LINE / 2 + 1)) / box.height,
        turned and "left rotate by 90" or "center")
    end
  end
end

-- Reference lines, grey regions, the zero line.
local function mark_settings(figure, box, emit)
  for _, name in ipairs {"REFERENCE", "REGION"} do
    local items = {}
    for i, item in ipairs(name == "REGION" and figure.regions or figure.references) do
      items[i] = quote(text.shorten(item.label, box.key.cut, SIZE))
    end
    emit("%sS = %d", name, #items)
    if #items > 0 then emit("%s", array(name, items)) end
  end
  for i, region in ipairs(figure.regions) do
    local from = math.max(region.from, box.x.lo)
    local to = math.min(region.to, box.x.hi)
    if from < to then
      emit("set object %d rectangle from first %.17g, graph 0 to first %.17g, graph 1 behind "
        .. "fc rgb SHADE[%d] fs solid noborder", i, from, to, i)
    end
  end
  for i, line in ipairs(figure.references) do
    local from, to = string.format("graph 0, first %s", number(line.y)),
      string.format("graph 1, first %s", number(line.y))
    local x = line.x or figure.axis == "row" and line.y
    if x then
      from = string.format("first %s, graph 0", number(x))
      to = string.format("first %s, graph 1", number(x))
    elseif line.diagonal then
      from, to = "first 0, first 0", ("first %.17g, first %.17g"):format(line.diagonal, line.diagonal)
    end
    emit("set arrow %d from %s to %s nohead %s ls %d", i, from, to,
      figure.axis == "category" and "front" or "back", 10 + i)
  end
  if box.y and not figure.logy and box.y.lo < 0 and box.y.hi > 0 then
    emit("set arrow 9 from graph 0, first 0 to graph 1, first 0 nohead back ls 20")
  end
end

-- Title and axis labels, one gnuplot label a line: set xlabel and ylabel would stand where gnuplot
-- guesses the tic labels to end.
local function label_settings(box, emit)
  local function place(lines, id, x, y, turned)
    for i, line in ipairs(lines) do
      local half = axes.width(line, SIZE) / 2 + 2
      local length = turned and box.height or box.width
      local along = math.max(half, math.min(turned and y or x, length - half))
      local across = turned and x + (i - 0.5) * LINE or y - (i - 0.5) * LINE
      emit("set label %d %s at screen %.5f, screen %.5f center%s noenhanced", id + i, quote(line),
        (turned and across or along) / box.width, (turned and along or across) / box.height,
        turned and " rotate by 90" or "")
    end
  end
  place(box.title, 0, box.width / 2, box.height - 2)
  place(box.xlabel, 20, (box.left + box.width - box.right) / 2, 2 + #box.xlabel * LINE)
  place(box.ylabel, 40, 2, box.bottom + box.plot_height / 2, true)
end

local function axis_settings(figure, box, emit)
  if figure.axis == "row" then
    local items = {}
    for c, label in ipairs(box.labels) do
      items[c] = string.format("%s %d", quote((label:gsub("%%", "%%%%"))), c)
    end
    emit("ROWS = %d", #items)
    emit("set yrange [ROWS+0.5:0.5] noextend")
    emit("set ytics scale 0 noenhanced (%s)", table.concat(items, ", "))
  else
    emit("set yrange [%.17g:%.17g] noextend", box.y.lo, box.y.hi)
    if box.y.log then emit("set logscale y %d", box.y.log) end
    emit("set ytics %s", tic_list(box.y))
  end
  if figure.axis ~= "category" then
    emit("set xrange [%.17g:%.17g] noextend", box.x.lo, box.x.hi)
    if box.x.log then emit("set logscale x %d", box.x.log) end
    emit("set xtics %s", tic_list(box.x))
    return
  end
  emit("CLUSTERS = %d", #figure.categories)
  emit("set xrange [0.5:CLUSTERS+0.5] noextend")
  local items = {}
  for c = 1, #figure.categories, box.stride do
    items[#items + 1] = string.format("%s %d", quote_lines(box.labels[c]):gsub("%%", "%%%%"), c)
  end
  local turn = box.angle == 0 and "norotate"
    or string.format("rotate by %d right offset 0,0", box.angle)
  emit("set xtics scale 0 %s noenhanced (%s)", turn, table.concat(items, ", "))
end

-- Text of stem.gp. `style` and `template` are the texts of the files under plots/.
-- Returns nil, reason when the figure cannot be laid out.
function script.gnuplot(figure, style, template)
  local box, reason = layout.box(figure)
  if not box then return nil, reason end
  local out = {}
  local function emit(fmt, ...) out[#out + 1] = select("#", ...) > 0 and fmt:format(...) or fmt end
  emit("# %s: redraw with `gnuplot -c %s.gp [pdf|svg|png]` (gnuplot 5.4 or later, font",
    figure.stem, figure.stem)
  emit("# Liberation Sans). Written by tilelab; the data is in %s.dat.", figure.stem)
  emit("")
  emit("FIGURE = %s", quote(figure.stem))
  emit("FOLDER = ''")
  emit("do for [i=1:strlen(ARG0)] { if (ARG0[i:i] eq '/') { FOLDER = ARG0[1:i] } }")
  emit("DATA = FOLDER.FIGURE.'.dat'")
  emit("OUTPUT = FOLDER.FIGURE.'.'.(ARGC > 0 ? ARG1 : 'pdf')")
  emit("WIDTH = %.17g", figure.width)
  emit("HEIGHT = %.17g", box.height / 72)
  emit("\n# --- plots/style.gp\n\n%s", style)
  emit("# --- this figure\n")
  local left, top = box.left / box.width, 1 - box.top / box.height
  emit("set lmargin at screen %.5f", left)
  emit("set rmargin at screen %.5f", 1 - box.right / box.width)
  emit("set bmargin at screen %.5f", box.bottom / box.height)
  emit("set tmargin at screen %.5f", top)
  label_settings(box, emit)
  axis_settings(figure, box, emit)
  if box.key.rows == 0 then
    emit("set key off")
  else
    local need = box.key.columns * box.key.pitch
    local from = math.max(3, math.min(box.left - 4, box.width - 3 - need))
    emit("set key at screen %.5f, screen %.5f left top vertical maxrows %d width %.3f",
      from / box.width, 1 - (2 + #box.title * LINE) / box.height, box.key.rows, box.key.extra)
  end
  series_settings(figure, box, emit)
  mark_settings(figure, box, emit)
  if figure.roofs then roof_settings(figure, box, emit) end
  if figure.ratios then ratio_settings(figure, box, emit) end
  emit("\n# --- plots/%s.gp\n\n%s", figure.template, template)
  return table.concat(out, "\n")
end

return script
