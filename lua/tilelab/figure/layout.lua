-- Layout of a figure in points: margins, key columns, line breaks, axes.
--
-- It is computed here because gnuplot guesses text widths: margins, key columns and line breaks
-- come from real widths, so that nothing is cut off and the key, which sits above the plot, never
-- meets data. Works on the prepared figure (figure/prepare.lua).

local axes = require "tilelab.figure.axes"
local text = require "tilelab.figure.text"

local layout = {
  SIZE = 8,   -- points of all text, as in style.gp
  LINE = 9.4, -- points from one line of text to the next
}

local SIZE, LINE = layout.SIZE, layout.LINE
local DIGIT = 4.45      -- gnuplot's idea of a character's width at 8 points
local SAMPLE = 21.7     -- points of a key entry before its text
local TIC = 6           -- points between the frame and a tic label

-- Key: entries in reading order of the template, cut to the page, in as many columns as fit.
local function key_layout(figure, width)
  local entries = {}
  local function add(name) entries[#entries + 1] = name end
  for _, series in ipairs(figure.series) do
    if series.key then add(series.name) end
  end
  for _, label in ipairs(figure.mark_labels) do add(label) end
  if figure.band_label then add(figure.band_label) end
  if figure.peaks and figure.peaks[2] then add("peak: " .. figure.peaks[2].label) end
  for _, line in ipairs(figure.references) do add(line.label) end
  for _, region in ipairs(figure.regions) do add(region.label) end
  local widest, longest = 0, 0
  for _, entry in ipairs(entries) do
    local shown = text.shorten(entry, width - SAMPLE - 8, SIZE)
    widest = math.max(widest, axes.width(shown, SIZE))
    longest = math.max(longest, utf8.len(shown))
  end
  local pitch = SAMPLE + widest + 9
  local columns = math.max(1, math.min(#entries, math.floor((width * 0.97 + 9) / pitch)))
  local rows = math.ceil(#entries / columns)
  return {
    rows = rows, columns = #entries > 0 and math.ceil(#entries / rows) or 0, pitch = pitch,
    cut = width - SAMPLE - 8, extra = (pitch - SAMPLE) / DIGIT - longest,
  }
end

-- Category labels of bars: side by side on up to three lines, else turned; returns the labels,
-- the angle, the height they take, and k where only every k-th has room. `left` is the room left
-- of the plot, into which the first turned label reaches.
local function category_labels(figure, slot, left)
  local lines, rows, words_fit = {}, 1, true
  for c, label in ipairs(figure.categories) do
    lines[c] = text.wrap(label, slot - 3, SIZE)
    rows = math.max(rows, #lines[c])
    for word in label:gmatch("%S+") do
      for _, part in ipairs(text.parts(word)) do
        words_fit = words_fit and axes.width(part, SIZE) <= slot - 3
      end
    end
  end
  if words_fit and rows <= 3 then return lines, 0, rows * LINE, 1 end
  local angle, longest, widest = 40, (left + slot / 2 - 8) / math.cos(math.rad(40)), 0
  if slot < 1.6 * LINE or longest < 50 then angle, longest = 90, 80 end
  longest = math.min(longest, 80)
  for c, label in ipairs(figure.categories) do
    local shown = text.shorten(label, longest, SIZE)
    lines[c] = {shown}
    widest = math.max(widest, axes.width(shown, SIZE))
  end
  local height = widest * math.sin(math.rad(angle)) + LINE * math.cos(math.rad(angle))
  return lines, angle, height, math.max(1, math.ceil(LINE / slot))
end

-- An axis over the range's lo to hi, thinned until its labels stand apart on `width` points, its
-- tics at least `pitch` points apart.
local function along(range, log, width, pitch, options)
  if log then return axes.log(range.lo, range.hi, log, math.max(2, width // 34), options) end
  local intervals = math.max(2, width // pitch)
  while true do
    local axis = axes.linear(range.lo, range.hi, intervals, options)
    local need = axes.label_width(axis, SIZE) + 8
    if intervals <= 2 or need * (#axis.tics - 1) <= width then return axis end
    intervals = intervals - 1
  end
end

-- X axis of figures over numbers. A few plain values are named themselves where they stand apart.
local function x_axis(figure, width)
  local x = figure.x
  local pad = figure.kind == "trace" and 0.01 or figure.kind == "roofline" and 0 or 0.04
  local axis = along(x, figure.logx, width, 30, {pad = pad, fixed_lo = x.fixed, fixed_hi = x.fixed})
  if figure.xtics then return axes.at(axis, figure.xtics) end
  if not figure.logx and not x.fixed and #x.values <= 8 and axes.plain(x.values) then
    local named = axes.at({lo = axis.lo, hi = axis.hi}, x.values)
    local clear = true
    for i = 2, #named.tics do
      local gap = (axes.position(axis, named.tics[i].value)
        - axes.position(axis, named.tics[i - 1].value)) * width
      clear = clear and gap >= (axes.width(named.tics[i].label, SIZE)
        + axes.width(named.tics[i - 1].label, SIZE)) / 2 + 3
    end
    if clear then return named end
  end
  return axis
end

-- `headroom`: points to keep free above the highest value.
local function y_axis(figure, height, headroom)
  local y = figure.y
  local options = {fixed_lo = y.fixed_lo, fixed_hi = y.fixed_hi, pad = 0.04, snap = true}
  if figure.logy then
    return axes.log(y.lo, y.hi, figure.logy, math.max(2, height // 18), options)
  end
  local hi = y.fixed_hi and y.hi or y.hi + (y.hi - y.lo) * headroom / math.max(height - headroom, 1)
  return axes.linear(y.lo, hi, math.max(2, math.min(6, height // 16)), options)
end

-- Points above the bars of pairs for their ratios, which turn where clusters are narrow.
local function ratio_room(figure, box)
  local widest = 0
  for _, ratio in pairs(figure.ratios or {}) do
    widest = math.max(widest, axes.width(ratio.label, SIZE))
  end
  if widest == 0 then return 0 end
  box.ratio_turned = box.slot ~= nil and widest > box.slot - 2
  return box.ratio_turned and widest + 4 or LINE + 2
end

-- The range of values, widened by the text beside the bars of steps.
local function with_text(figure, box)
  local y, widest = figure.y, 0
  for _, series in ipairs(figure.series) do
    for _, point in ipairs(series.points) do
      if point.text then widest = math.max(widest, axes.width(point.text, SIZE) + 8) end
    end
  end
  local width = box.width - box.left - box.right
  if widest == 0 or y.fixed_hi then return y end
  return {lo = y.lo, fixed_lo = y.fixed_lo, hi = y.hi * width / math.max(width - widest, width / 4)}
end

-- Rows under each other, their labels on the left, values along x.
local function place_rows(figure, box)
  local widest, count = 0, #figure.categories
  box.xlabel, box.ylabel = text.wrap(figure.ylabel, box.width - 12, SIZE), {}
  box.bottom = 3 + LINE + 2 + (#box.xlabel > 0 and #box.xlabel * LINE + 2 or 0)
  box.labels = {}
  for c, label in ipairs(figure.categories) do
    box.labels[c] = text.shorten_middle(label, 0.5 * box.width, SIZE)
    widest = math.max(widest, axes.width(box.labels[c], SIZE))
  end
  box.left = 3 + widest + TIC
  -- Bars of steps share their row, and each has its text beside it.
  local row = figure.kind == "steps" and LINE * (#figure.series + 0.5) or LINE + 1.2
  box.plot_height = math.max(24, count * row)
  if figure.height then
    box.plot_height = figure.height * 72 - box.top - box.bottom
    if box.plot_height < math.max(24, count * LINE) then
      return string.format("height %g in leaves no room for %d rows: give at least %.1f in",
        figure.height, count, (box.top + box.bottom + math.max(24, count * LINE)) / 72)
    end
  end
  local y = with_text(figure, box)
  local options = {fixed_lo = y.fixed_lo, fixed_hi = y.fixed_hi, pad = 0.04}
  for _ = 1, 2 do
    box.x = along(y, figure.logy, box.width - box.left - box.right, 20, options)
    local last = box.x.tics[#box.x.tics]
    local beyond = last and axes.width(last.label, SIZE) / 2
      - (1 - axes.position(box.x, last.value)) * (box.width - box.left - box.right) or 0
    box.right = math.max(7, beyond + 3)
  end
end

-- Clusters side by side, or numbers along x; values along y.
local function place_columns(figure, box)
  local labels_height = LINE
  for _ = 1, 2 do -- the second time, the height of turned labels is known
    box.bottom = ((box.angle or 0) == 0 and 3 or TIC) + labels_height + 2
      + (#box.xlabel > 0 and #box.xlabel * LINE + 2 or 0)
    if figure.height then
      box.plot_height = figure.height * 72 - box.top - box.bottom
      if box.plot_height < 36 then
        return string.format("height %g in leaves no room for the plot beside its labels "
          .. "and key: give at least %.1f in", figure.height, (box.top + box.bottom + 60) / 72)
      end
    end
    box.y = y_axis(figure, box.plot_height, ratio_room(figure, box))
    box.ylabel = text.wrap(figure.ylabel, box.plot_height + 0.6 * box.bottom, SIZE)
    box.ytic_width = axes.label_width(box.y, SIZE)
    box.left = 3 + #box.ylabel * LINE + (#box.ylabel > 0 and 3 or 0) + box.ytic_width + TIC
    local plot_width = box.width - box.left - box.right
    if figure.axis == "category" then
      box.slot = plot_width / #figure.categories
      box.labels, box.angle, labels_height, box.stride = category_labels(figure, box.slot, box.left)
    else
      box.x = x_axis(figure, plot_width)
      local last = box.x.tics[#box.x.tics]
      if last then
        local beyond = axes.width(last.label, SIZE) / 2
          - (1 - axes.position(box.x, last.value)) * plot_width
        box.right = math.max(7, beyond + 3)
        box.x = x_axis(figure, box.width - box.left - box.right)
      end
    end
  end
end

-- Everything in points from the lower left corner. Returns nil, reason when a given height
-- leaves no room for the plot.
function layout.box(figure)
  local box = {width = figure.width * 72, plot_height = 60 + 0.2 * figure.width * 72, right = 7}
  if figure.points_only then box.plot_height = 60 + 0.4 * math.min(figure.width * 72, 360) end
  box.key = key_layout(figure, box.width - 6)
  box.title = figure.title and text.wrap(figure.title, box.width - 8, SIZE) or {}
  box.xlabel = text.wrap(figure.xlabel, box.width - 12, SIZE)
  box.top = 4 + #box.title * LINE + box.key.rows * LINE + (box.key.rows > 0 and 4 or 2)
  local reason = (figure.axis == "row" and place_rows or place_columns)(figure, box)
  if reason then return nil, reason end
  box.height = box.bottom + box.plot_height + box.top
  return box
end

return layout
