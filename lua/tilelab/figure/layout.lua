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

-- X axis of lines and trace, thinned until its labels stand apart on `width` points.
local function x_axis(figure, width)
  local x, options = figure.x, {pad = figure.kind == "trace" and 0.01 or 0.04}
  if figure.logx then
    local axis = axes.log(x.lo, x.hi, figure.logx, math.max(2, width // 34), options)
    return figure.xtics and axes.at(axis, figure.xtics) or axis
  end
  local intervals = math.max(2, width // 30)
  while true do
    local axis = axes.linear(x.lo, x.hi, intervals, options)
    if figure.xtics then return axes.at(axis, figure.xtics) end
    local need = axes.label_width(axis, SIZE) + 8
    if intervals <= 2 or need * (#axis.tics - 1) <= width then break end
    intervals = intervals - 1
  end
  local axis = axes.linear(x.lo, x.hi, intervals, options)
  if #x.values <= 8 and axes.plain(x.values) then -- few: name just those, where they stand apart
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

local function y_axis(figure, height)
  local y = figure.y
  local options = {fixed_lo = y.fixed_lo, fixed_hi = y.fixed_hi, pad = 0.04, snap = true}
  if figure.logy then
    return axes.log(y.lo, y.hi, figure.logy, math.max(2, height // 18), options)
  end
  return axes.linear(y.lo, y.hi, math.max(2, math.min(6, height // 16)), options)
end

-- Everything in points from the lower left corner. Returns nil, reason when a given height
-- leaves no room for the plot.
function layout.box(figure)
  local box = {width = figure.width * 72, plot_height = 60 + 0.2 * figure.width * 72}
  box.key = key_layout(figure, box.width - 6)
  box.title = figure.title and text.wrap(figure.title, box.width - 8, SIZE) or {}
  box.xlabel = text.wrap(figure.xlabel, box.width - 12, SIZE)
  box.top = 4 + #box.title * LINE + box.key.rows * LINE + (box.key.rows > 0 and 4 or 2)
  box.right = 7
  local labels_height = LINE
  for _ = 1, 2 do -- the second time, the height of turned labels is known
    box.bottom = ((box.angle or 0) == 0 and 3 or TIC) + labels_height + 2
      + (#box.xlabel > 0 and #box.xlabel * LINE + 2 or 0)
    if figure.height then
      box.plot_height = figure.height * 72 - box.top - box.bottom
      if box.plot_height < 36 then
        return nil, string.format("height %g in leaves no room for the plot beside its labels "
          .. "and key: give at least %.1f in", figure.height, (box.top + box.bottom + 60) / 72)
      end
    end
    box.y = y_axis(figure, box.plot_height)
    box.ylabel = text.wrap(figure.ylabel, box.plot_height + 0.6 * box.bottom, SIZE)
    box.ytic_width = axes.label_width(box.y, SIZE)
    box.left = 3 + #box.ylabel * LINE + (#box.ylabel > 0 and 3 or 0) + box.ytic_width + TIC
    local plot_width = box.width - box.left - box.right
    if figure.kind == "bars" then
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
  box.height = box.bottom + box.plot_height + box.top
  return box
end

return layout
