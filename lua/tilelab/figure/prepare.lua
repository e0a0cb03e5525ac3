-- What a figure is made of, checked: from the specification of figure.draw to the table that layout,
-- script and text work on. What the caller wrote wrongly raises and names the field; anything in
-- the data that cannot be drawn becomes a gap and a remark of the caption.

local axes = require "tilelab.figure.axes"
local text = require "tilelab.figure.text"

local prepare = {}

-- Widths of the presets in inches.
prepare.presets = {["acm-column"] = 3.33, ["acm-full"] = 7.0, ["ieee-column"] = 3.5, neurips = 5.5}

-- What sets the kinds apart: the template under plots/, and what the x of a point is: a number, a
-- category (clusters side by side) or a row (one under the other; values then lie along x).
prepare.kinds = {
  lines = {template = "lines", axis = "number"},
  trace = {template = "trace", axis = "number"},
  occupancy = {template = "lines", axis = "number", points_only = true},
  roofline = {template = "roofline", axis = "number", points_only = true},
  bars = {template = "bars", axis = "category"},
  pairs = {template = "bars", axis = "category"},
  stack = {template = "stack", axis = "category", stacked = true},
  parts = {template = "stack", axis = "category", stacked = true},
  dots = {template = "dots", axis = "row"},
  steps = {template = "steps", axis = "row", from_zero = true},
  spans = {template = "spans", axis = "row"},
}
local KIND_NAMES = {"lines", "bars", "trace", "dots", "steps", "spans", "pairs", "stack", "parts", "occupancy",
  "roofline"}

local MAX_SERIES, MAX_NOTES, MAX_ROWS = 8, 4, 64

local function set(names)
  local result = {}
  for name in names:gmatch("%S+") do result[name] = true end
  return result
end

local KEYS = {
  spec = set [[kind path title xlabel ylabel preset height series logx logy xtics yrange zero
    interval band marked references regions roofs peaks order caption table digits gnuplot]],
  series = set "name points style dotted slot key",
  point = set "x y lo hi mark gain",
  reference = set "x y label",
  region = set "from to label",
  roof = set "slope label",
  peak = set "y label",
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

-- Position of a category or row, which is added where it is new.
local function category(fig, label)
  local index = fig.category_index[label]
  if not index then
    index = #fig.categories + 1
    fig.categories[index], fig.category_index[label] = label, index
  end
  return index
end

-- Copies one point; anything that cannot be drawn becomes a missing y or a missing interval.
local function prepare_point(fig, point, where)
  check_keys("point", point, where)
  local copy = {mark = point.mark and true or false, gain = check_type(point.gain, "number", where .. ".gain")}
  if fig.axis ~= "number" then
    if point.x == nil then fail("%s has no x", where) end
    local x = point.x
    copy.label = text.clean(type(x) == "number" and string.format("%.10g", x) or x)
    copy.x = category(fig, copy.label)
  else
    copy.x = check_type(point.x, "number", where .. ".x")
    if not axes.finite(copy.x) then fail("%s: x is not a finite number", where) end
  end
  copy.y = check_type(point.y, "number", where .. ".y")
  local lo = check_type(point.lo, "number", where .. ".lo")
  local hi = check_type(point.hi, "number", where .. ".hi")
  if not axes.finite(copy.y) or (fig.logy and copy.y <= 0) or (fig.logx and copy.x <= 0)
    or ((fig.stacked or fig.from_zero) and copy.y < 0) then
    copy.y = nil
  elseif axes.finite(lo) and axes.finite(hi) and not fig.stacked then
    if lo > hi then fail("%s: lo %g is above hi %g", where, lo, hi) end
    if not fig.logy or hi > 0 then copy.lo, copy.hi = fig.from_zero and math.max(0, lo) or lo, hi end
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
  copy.style = fig.points_only and "points" or copy.style or (drawn <= 30 and "both" or "line")
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
  if fig.kind == "spans" and intervals < drawn then fail("%s: spans take a lo and a hi at each point", where) end
  if intervals > 0 and fig.kind ~= "spans" then
    copy.interval = (fig.axis ~= "number" or fig.points_only or drawn == 1) and "bars"
      or fig.kind == "trace" and "band" or fig.interval or (drawn <= 20 and "bars" or "band")
    if copy.interval == "band" then fig.band_label = fig.band end
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
    if fig.axis ~= "number" and line.x then fail("%s: %s take a y only", where, fig.kind) end
    if not axes.finite(line.x or line.y) then fail("%s: not a finite number", where) end
    fig.references[i] = {x = line.x, y = line.y,
      label = text.clean(line.label or fail("%s has no label", where))}
  end
  for i, region in ipairs(spec.regions or {}) do
    local where = string.format("regions[%d]", i)
    check_keys("region", region, where)
    if fig.axis == "category" then fail("%s: %s take no regions", where, fig.kind) end
    local from, to = region.from or -math.huge, region.to or math.huge
    if not (type(from) == "number" and type(to) == "number" and from < to) then
      fail("%s: from and to must be numbers, from below to", where)
    end
    fig.regions[i] = {from = from, to = to,
      label = text.clean(region.label or fail("%s has no label", where))}
  end
  if (fig.points_only or fig.stacked) and #fig.references + #fig.regions > 0 then
    fail("%s takes neither references nor regions", fig.kind)
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
      widen(y, point.to or point.hi)
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
  local near = fig.axis ~= "row"
    and (y.lo >= 0 and y.lo < 0.5 * y.hi or y.hi <= 0 and y.hi > 0.5 * y.lo)
  if not fig.logy and (fig.axis == "category" or fig.from_zero or spec.zero or (spec.zero == nil and near)) then
    if y.lo >= 0 then y.lo, y.fixed_lo = 0, true end
    if y.hi <= 0 then y.hi, y.fixed_hi = 0, true end
  end
  local given = spec.yrange or {}
  y.lo, y.fixed_lo = given[1] or y.lo, given[1] ~= nil or y.fixed_lo
  y.hi, y.fixed_hi = given[2] or y.hi, given[2] ~= nil or y.fixed_hi
  if spec.yrange and not (y.lo < y.hi) then fail("yrange: %g is not below %g", y.lo, y.hi) end
  if spec.yrange and fig.logy and y.lo <= 0 then fail("yrange: a log axis starts above zero") end
  if fig.axis == "category" and (y.lo > 0 or y.hi < 0) then fail("yrange: bars start at zero") end
  fig.x, fig.y = x, y
  fig.logx = fig.logx == true and (axes.powers_of_two(x.values) and 2 or 10) or fig.logx
  for _, series in ipairs(fig.series) do -- an interval to zero leaves a log axis at the frame
    for _, point in ipairs(series.points) do
      if fig.logy and point.lo and point.lo <= 0 then point.lo = y.lo * 1e-6 end
    end
  end
end

-- Series of a stack: in the order that the caller keeps for all figures, each with the colour of its
-- place in it; what the order does not name is summed into "other".
local function ordered_series(spec)
  if not spec.order then return spec.series end
  check_type(spec.order, "table", "order")
  local by_name, list, rest, sums = {}, {}, {}, {}
  for s, series in ipairs(spec.series) do
    check_keys("series", series, string.format("series[%d]", s))
    if by_name[series.name] then fail("series '%s' is there twice", tostring(series.name)) end
    by_name[series.name or s] = series
  end
  for place, name in ipairs(spec.order) do
    local series = by_name[name]
    by_name[name] = nil
    if series then
      list[#list + 1] = {name = name, points = series.points, slot = place, key = series.key}
    end
  end
  for _, series in ipairs(spec.series) do
    if by_name[series.name] then
      for _, point in ipairs(series.points or {}) do
        local x = point.x or fail("series '%s' has a point without x", tostring(series.name))
        if sums[x] == nil then rest[#rest + 1] = {x = x} end
        sums[x] = (sums[x] or 0) + (axes.finite(point.y) and point.y or 0)
      end
    end
  end
  for _, point in ipairs(rest) do point.y = sums[point.x] end
  if #spec.order + (#rest > 0 and 1 or 0) > MAX_SERIES then
    fail("order: %d names%s; at most %d can be told apart", #spec.order,
      #rest > 0 and " and what they leave" or "", MAX_SERIES)
  end
  if #rest > 0 then list[#list + 1] = {name = "other", points = rest, slot = MAX_SERIES} end
  return list
end

-- Segments on top of each other, from `from` to `to` of their bar; values of a stack become percent of
-- their category. Returns whether there is anything to draw.
local function prepare_stack(fig)
  local total, height = {}, {}
  for _, series in ipairs(fig.series) do
    local seen = {}
    for _, point in ipairs(series.points) do
      if seen[point.x] then fail("%s: '%s' is there twice", series.name, point.label) end
      seen[point.x] = true
      total[point.x] = (total[point.x] or 0) + (point.y or 0)
    end
  end
  for c, label in ipairs(fig.categories) do
    if (total[c] or 0) == 0 then fig.remarks[#fig.remarks + 1] = label .. " has no value" end
  end
  for _, series in ipairs(fig.series) do
    for _, point in ipairs(series.points) do
      local sum, from = total[point.x], height[point.x] or 0
      if fig.kind == "stack" then point.y = point.y and sum > 0 and 100 * point.y / sum or nil end
      if point.y and sum > 0 then
        local to = from + point.y
        point.from, point.to = from, fig.kind == "stack" and math.min(100, to) or to
        height[point.x] = point.to
      end
    end
  end
  return next(height) ~= nil
end

local function ratio_text(ratio)
  local format = ratio < 9.995 and "%.2f×" or ratio < 99.95 and "%.1f×" or "%.4g×"
  return string.format(format, ratio)
end

-- What stands beside each bar of steps: its value, and its gain, or else the value over that of the series' bar
-- above it.
local function prepare_steps(fig)
  for _, series in ipairs(fig.series) do
    local by_row, above = {}, nil
    for _, point in ipairs(series.points) do by_row[point.x] = point.y and point or by_row[point.x] end
    for row = 1, #fig.categories do
      local point = by_row[row]
      if point then
        point.text = text.number(point.y, 3)
        local gain = point.gain or above and above > 0 and point.y / above
        if gain then point.text = ("%s (%s)"):format(point.text, ratio_text(gain)) end
        above = point.y
      end
    end
  end
end

-- What stands above each pair: the second value over the first.
local function prepare_pairs(fig, spec)
  if #spec.series ~= 2 then fail("pairs take two series, not %d", #spec.series) end
  fig.ratios = {}
  if #fig.series < 2 then return end
  local first, top = {}, {}
  for s, series in ipairs(fig.series) do
    for _, point in ipairs(series.points) do
      local c, y = point.x, point.y
      if y then top[c] = math.max(top[c] or 0, y, point.hi or y) end
      if s == 1 then
        first[c] = y
      elseif y and first[c] and first[c] > 0 and y >= 0 then
        fig.ratios[c] = {value = y / first[c], label = ratio_text(y / first[c])}
      end
    end
  end
  for c, ratio in pairs(fig.ratios) do ratio.top = top[c] end
end

-- Roofs (y = slope x) and peaks, the highest first.
local function prepare_roofs(fig, spec)
  fig.roofs, fig.peaks = {}, {}
  for i, roof in ipairs(check_type(spec.roofs, "table", "roofs") or {}) do
    local where = string.format("roofs[%d]", i)
    check_keys("roof", roof, where)
    if not (axes.finite(roof.slope) and roof.slope > 0) then
      fail("%s: slope is not a positive number", where)
    end
    fig.roofs[i] = {slope = roof.slope,
      label = text.clean(roof.label or fail("%s has no label", where))}
  end
  for i, peak in ipairs(check_type(spec.peaks, "table", "peaks") or {}) do
    local where = string.format("peaks[%d]", i)
    check_keys("peak", peak, where)
    if not (axes.finite(peak.y) and peak.y > 0) then fail("%s: y is not a positive number", where) end
    fig.peaks[i] = {y = peak.y, label = text.clean(peak.label or fail("%s has no label", where))}
  end
  if #fig.roofs < 1 or #fig.roofs > 3 or #fig.peaks < 1 or #fig.peaks > 2 then
    fail("a roofline needs 1 to 3 roofs and 1 or 2 peaks, not %d and %d", #fig.roofs, #fig.peaks)
  end
  table.sort(fig.peaks, function(a, b) return a.y > b.y end)
  for _, roof in ipairs(fig.roofs) do
    roof.ridge = fig.peaks[1].y / roof.slope
  end
end

-- Ranges of a roofline: all points, every ridge, and the knees of the lower peaks.
local function roofline_ranges(fig)
  local x, y, top = fig.x, fig.y, fig.peaks[1].y
  for _, roof in ipairs(fig.roofs) do
    x.lo, x.hi = math.min(x.lo, roof.ridge / 8), math.max(x.hi, roof.ridge * 4)
  end
  x.lo, x.hi = x.lo / 1.5, x.hi * 1.5
  y.hi, y.fixed_hi = math.max(y.hi, top) * 1.6, true
  y.lo, y.fixed_lo = math.min(y.lo / 1.6, top / 20), true
end

-- A figure without notes and series: what can be checked before points are looked at.
local function new_figure(spec)
  check_keys("spec", spec, "the specification")
  local path = check_type(spec.path or fail("no path"), "string", "path")
  local fig = {
    kind = one_of(spec.kind, KIND_NAMES, "kind"), path = path,
    stem = path:match("[^/]+$") or "", series = {}, categories = {}, category_index = {},
    references = {}, regions = {}, remarks = {}, mark_labels = {}, caption = {},
    logx = spec.logx, logy = spec.logy == true and 10 or spec.logy, xtics = spec.xtics,
    height = check_type(spec.height, "number", "height"), digits = spec.digits or 5,
    interval = spec.interval and one_of(spec.interval, {"bars", "band"}, "interval"),
    band = text.clean(spec.band or "95 % interval"), table = spec.table, gnuplot = spec.gnuplot,
  }
  for key, value in pairs(prepare.kinds[fig.kind]) do fig[key] = value end
  if fig.kind == "roofline" then fig.logx, fig.logy = 10, 10 end
  if not fig.stem:match("^[%w_][%w_.+-]*$") then
    fail("path '%s': the file name may hold letters, digits and _ . + - only", text.clean(path))
  end
  local preset = spec.preset or "acm-column"
  fig.width = prepare.presets[preset]
    or one_of(preset, {"acm-column", "acm-full", "ieee-column", "neurips"}, "preset")
  for _, name in ipairs {"title", "xlabel", "ylabel", "marked"} do
    fig[name] = spec[name] ~= nil and text.clean(spec[name]) or nil
  end
  fig.xlabel, fig.ylabel = fig.xlabel or "", fig.ylabel or ""
  if (fig.axis == "category" or fig.from_zero) and (fig.logy or fig.logx) then
    fail("bars start at zero, so they have no log axis: use kind 'dots'")
  end
  if fig.kind == "occupancy" and (fig.logy or fig.logx) then fail("occupancy has no log axis") end
  for _, key in ipairs {"roofs", "peaks"} do
    if spec[key] and fig.kind ~= "roofline" then fail("%s are for kind 'roofline'", key) end
  end
  if spec.order and not (fig.stacked or fig.axis == "row") then
    fail("order is for stack, parts, dots, steps and spans, not for kind '%s'", fig.kind)
  end
  if fig.axis == "row" then
    for _, name in ipairs(check_type(spec.order, "table", "order") or {}) do
      category(fig, text.clean(name))
    end
  end
  for _, axis in ipairs {"logx", "logy"} do
    if fig[axis] and fig[axis] ~= true then one_of(fig[axis], {2, 10}, axis) end
  end
  check_keys("caption", spec.caption or {}, "caption")
  for key, value in pairs(spec.caption or {}) do fig.caption[key] = text.clean(value) end
  if spec.table then check_keys("table", spec.table, "table") end
  return fig
end

local function prepare_marks(fig)
  for _, series in ipairs(fig.series) do
    if series.marks and fig.kind == "trace" then
      fig.mark_labels[#fig.mark_labels + 1] = series.name .. ": " .. (fig.marked or "marked")
    elseif series.marks and fig.kind == "roofline" then
      fig.mark_labels[1] = "small: " .. (fig.marked or "marked")
    end
  end
  if #fig.mark_labels == 0 then fig.marked = nil end
end

local function occupancy_ranges(fig)
  local top = math.max(100, fig.x.hi, fig.y.hi)
  fig.x.lo, fig.x.hi, fig.y.lo, fig.y.hi = 0, top, 0, top
  fig.x.fixed, fig.y.fixed_lo, fig.y.fixed_hi = true, true, true
  fig.references[1] = {diagonal = top, label = "achieved = theoretical"}
end

-- Whether points of different series stand in one row.
local function has_shared_rows(fig)
  local series_of = {}
  for s, series in ipairs(fig.series) do
    for _, point in ipairs(series.points) do
      if (series_of[point.x] or s) ~= s then return true end
      series_of[point.x] = s
    end
  end
  return false
end

-- Checks a specification and returns the figure that the other parts work on, or nil, message
-- when no point can be drawn. Raises on a malformed specification.
function prepare.figure(spec)
  local fig = new_figure(spec)
  prepare_notes(fig, spec)
  check_type(spec.series or fail("no series"), "table", "series")
  local given = fig.stacked and ordered_series(spec) or spec.series
  if #given > MAX_SERIES then
    fail("%d series; at most %d can be told apart", #given, MAX_SERIES)
  end
  for s, series in ipairs(given) do
    fig.series[#fig.series + 1] = prepare_series(fig, series, s)
  end
  if fig.kind == "pairs" then prepare_pairs(fig, spec) end
  if fig.kind == "steps" then prepare_steps(fig) end
  if fig.kind == "roofline" then prepare_roofs(fig, spec) end
  if fig.stacked and not prepare_stack(fig) then fig.series = {} end
  if #fig.series == 0 then
    return nil, string.format("figure %s: no point can be drawn (%s)", text.clean(fig.path),
      #fig.remarks > 0 and table.concat(fig.remarks, "; ") or "there are no series")
  end
  if fig.axis == "row" and #fig.categories > MAX_ROWS then
    return nil, string.format("figure %s: %d rows, and a page holds %d: draw fewer",
      text.clean(fig.path), #fig.categories, MAX_ROWS)
  end
  prepare_marks(fig)
  prepare_ranges(fig, spec)
  if fig.kind == "roofline" then roofline_ranges(fig) end
  if fig.kind == "stack" then fig.y.hi, fig.y.fixed_hi = 100, true end
  if fig.kind == "occupancy" then occupancy_ranges(fig) end
  fig.shared_rows = fig.axis == "row" and has_shared_rows(fig)
  return fig
end

return prepare
