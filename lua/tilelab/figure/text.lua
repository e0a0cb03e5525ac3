-- Words around a figure: cleaning of text that came with data, wrapping, numbers as printed,
-- the caption, and the LaTeX table.

local axes = require "tilelab.figure.axes"

local text = {}

-- Any value as one line of valid UTF-8: foreign bytes become "?", control characters spaces.
function text.clean(value)
  local s = tostring(value)
  while true do
    local _, bad = utf8.len(s)
    if not bad then break end
    s = s:sub(1, bad - 1) .. "?" .. s:sub(bad + 1)
  end
  return (s:gsub("%c+", " "))
end

-- Cuts a text to `width` points, with an ellipsis for what is lost.
function text.shorten(s, width, size)
  if axes.width(s, size) <= width then return s end
  local kept = ""
  for _, code in utf8.codes(s) do
    local longer = kept .. utf8.char(code)
    if axes.width(longer .. "…", size) > width then break end
    kept = longer
  end
  return kept .. "…"
end

-- The same with the middle lost: names of one kind often differ at their ends.
function text.shorten_middle(s, width, size)
  if axes.width(s, size) <= width then return s end
  local letters = {}
  for _, code in utf8.codes(s) do letters[#letters + 1] = utf8.char(code) end
  for keep = #letters - 1, 1, -1 do
    local front = keep // 2
    local kept = table.concat(letters, "", 1, front) .. "…"
      .. table.concat(letters, "", #letters - (keep - front) + 1)
    if axes.width(kept, size) <= width then return kept end
  end
  return "…"
end

-- Parts of a word between which a line may break: after _ / - and nowhere else.
function text.parts(word)
  local list = {}
  for part in word:gsub("[_/-]", "%0\0"):gmatch("[^\0]+") do list[#list + 1] = part end
  return list
end

-- Lines of at most `width` points, broken at spaces and inside long names; a part that is still
-- longer is broken anywhere.
function text.wrap(s, width, size)
  local lines, line = {}, ""
  local function place(part, space)
    local joined = line == "" and part or line .. space .. part
    if axes.width(joined, size) <= width then
      line = joined
      return
    end
    if line ~= "" then lines[#lines + 1] = line end
    line = ""
    for _, code in utf8.codes(part) do
      local longer = line .. utf8.char(code)
      if line ~= "" and axes.width(longer, size) > width then
        lines[#lines + 1] = line
        longer = utf8.char(code)
      end
      line = longer
    end
  end
  for word in s:gmatch("%S+") do
    for i, part in ipairs(text.parts(word)) do place(part, i == 1 and " " or "") end
  end
  if line ~= "" then lines[#lines + 1] = line end
  return lines
end

-- Number with `digits` significant digits, all digits of its integer part, no exponent where
-- it can be read without; the exponent form is "2.5e-07".
function text.number(value, digits)
  if not axes.finite(value) then return "-" end
  if value == 0 then return "0" end
  local exponent = math.floor(math.log(math.abs(value), 10) + 1e-12)
  if exponent < -4 or exponent > 8 then return string.format("%." .. digits - 1 .. "e", value) end
  return string.format("%." .. math.max(0, digits - 1 - exponent) .. "f", value)
end

-- "A", "A and B", "A, B and C"; "A, x; B, y" where names hold commas.
local function join(list)
  if #list < 2 then return list[1] or "" end
  for _, name in ipairs(list) do
    if name:find(",", 1, true) then return table.concat(list, "; ") end
  end
  return table.concat(list, ", ", 1, #list - 1) .. " and " .. list[#list]
end

-- Sentence case inside a sentence: "Depth (layers)" -> "depth (layers)"; "SM clock", "R" stay.
local function inside(s)
  local first, second = s:match("^(%u)(%l)")
  return first and first:lower() .. second .. s:sub(3) or s
end

local function sentence(s)
  return s:match("[.!?]$") and s or s .. "."
end

local MARK = {bars = "bar", pairs = "bar", steps = "bar", spans = "span", stack = "segment", parts = "segment"}

-- Caption of a prepared figure (see draw): what is plotted, statistic and n, what the intervals
-- are, device, clock and commit. A condition that the caller did not give is said to be
-- missing: a reader must not have to guess.
function text.caption(figure)
  local given, parts, names, dotted = figure.caption, {}, {}, {}
  local function add(fmt, ...) parts[#parts + 1] = sentence(string.format(fmt, ...)) end
  for _, series in ipairs(figure.series) do
    local list = series.dotted and dotted or names
    list[#list + 1] = series.name
  end
  if figure.title then add("%s", figure.title) end
  if given.what then
    add("%s", given.what)
  else
    local word = figure.axis ~= "number" and "by" or figure.kind == "trace" and "over" or "against"
    add("%s %s %s for %s", figure.ylabel, word, inside(figure.xlabel), join(names))
  end
  if #dotted > 0 then add("Thin lines: %s", join(dotted)) end
  if figure.kind == "stack" then add("Bars add up to 100 %%") end
  if figure.kind == "pairs" then
    add("Above each pair: %s over %s", figure.series[#figure.series].name, figure.series[1].name)
  end
  if figure.kind == "steps" then
    local gains = false
    for _, series in ipairs(figure.series) do
      for _, point in ipairs(series.points) do gains = gains or point.gain ~= nil end
    end
    add("Beside each bar: its value%s", #figure.categories > 1 and (" and, in brackets, %s over the bar of the same "
      .. "series above it"):format(gains and "its gain" or "that") or "")
  end
  for _, roof in ipairs(figure.roofs or {}) do
    add("Roof: %s, ridge at %s", roof.label, text.number(roof.ridge, 3))
  end
  for _, peak in ipairs(figure.peaks or {}) do add("Peak: %s", peak.label) end
  local mark = MARK[figure.kind] or "point"
  local sample = given.n and string.format("n = %s", given.n) or "n not recorded"
  if given.statistic then
    add("Each %s is the %s (%s)", mark, given.statistic, sample)
  else
    add("Each %s is one value (%s)", mark, sample)
  end
  if figure.drawn_intervals then
    add("%s are %s", figure.drawn_intervals, given.interval or "95 % intervals")
  end
  if figure.marked then
    add("%s points: %s", figure.kind == "roofline" and "Small" or "Marked", figure.marked)
  end
  for _, region in ipairs(figure.regions) do add("Grey area: %s", region.label) end
  for _, line in ipairs(figure.references) do add("Grey line: %s", line.label) end
  for _, remark in ipairs(figure.remarks) do add("%s", remark) end
  add("Device: %s; clock: %s; tilelab commit %s", given.device or "not recorded",
    given.clock or "not recorded", given.commit or "not recorded")
  if given.note then add("%s", given.note) end
  return table.concat(parts, "\n") .. "\n"
end

local LATEX = {
  ["\\"] = "\\textbackslash{}", ["{"] = "\\{", ["}"] = "\\}", ["$"] = "\\$", ["&"] = "\\&",
  ["#"] = "\\#", ["%"] = "\\%", ["_"] = "\\_", ["^"] = "\\textasciicircum{}",
  ["~"] = "\\textasciitilde{}", ["<"] = "\\textless{}", [">"] = "\\textgreater{}",
  ["|"] = "\\textbar{}", ['"'] = "''", ["`"] = "\\textasciigrave{}",
  ["["] = "{[}", ["]"] = "{]}",
}
local LATEX_WIDE = {
  ["µ"] = "\\textmu{}", ["μ"] = "$\\mu$", ["×"] = "$\\times$", ["±"] = "$\\pm$",
  ["·"] = "$\\cdot$",
  ["²"] = "$^2$", ["³"] = "$^3$", ["°"] = "$^\\circ$", ["≤"] = "$\\leq$", ["≥"] = "$\\geq$",
  ["–"] = "--", ["—"] = "---", ["…"] = "\\ldots{}", ["−"] = "$-$",
  ["→"] = "$\\rightarrow$",
}

-- Text as LaTeX prints it. Letters beyond ASCII pass as UTF-8, which LaTeX reads by default.
function text.latex(s)
  s = text.clean(s):gsub("[\\{}$&#%%_^~<>|\"`%[%]]", LATEX)
  return (s:gsub("[\xC2-\xF4][\x80-\xBF]+", LATEX_WIDE))
end

local function latex_number(value, digits)
  local s = text.number(value, digits)
  if s == "-" then return "--" end
  local mantissa, exponent = s:match("^(.-)e(.+)$")
  if mantissa then return string.format("$%s \\times 10^{%d}$", mantissa, tonumber(exponent)) end
  return s:sub(1, 1) == "-" and "$" .. s .. "$" or s
end

-- Columns and rows of the plotted numbers: one row per x, one column per series.
local function derived_table(figure)
  local header, rows, index = {figure.xlabel}, {}, {}
  for column, series in ipairs(figure.series) do
    header[column + 1] = series.name
    local seen = {}
    for _, point in ipairs(series.points) do
      local x = point.label or point.x
      seen[x] = (seen[x] or 0) + 1 -- a repeated x gets a row of its own
      local key = seen[x] .. ":" .. (point.label or string.format("%.17g", point.x))
      if not index[key] then
        index[key] = {x = point.x, order = #rows + 1, cells = {}}
        rows[#rows + 1] = index[key]
        index[key].cells[1] = point.label and text.latex(point.label)
          or text.latex(string.format("%.10g", point.x))
      end
      local cell = latex_number(point.y, figure.digits)
      if axes.finite(point.lo) and axes.finite(point.hi) then
        cell = string.format("%s {[}%s, %s{]}", cell, latex_number(point.lo, figure.digits),
          latex_number(point.hi, figure.digits))
      end
      index[key].cells[column + 1] = cell
    end
  end
  if figure.ratios then
    header[#header + 1] = "ratio"
    for _, row in pairs(index) do
      local ratio = figure.ratios[row.x]
      row.cells[#figure.series + 2] = ratio and latex_number(ratio.value, 3) or "--"
    end
  end
  table.sort(rows, function(a, b)
    if a.x ~= b.x then return a.x < b.x end
    return a.order < b.order
  end)
  return header, rows
end

-- LaTeX tabular of the figure's numbers, or of the caller's table {columns=, rows=} whose cells
-- are numbers or text.
function text.tabular(figure)
  local rows, lines = {}, {}
  local header
  if figure.table then
    header = figure.table.columns
    for r, row in ipairs(figure.table.rows) do
      rows[r] = {cells = {}}
      for c = 1, #header do
        local cell = row[c]
        rows[r].cells[c] = type(cell) == "number" and latex_number(cell, figure.digits)
          or text.latex(cell == nil and "-" or cell)
      end
    end
  else
    header, rows = derived_table(figure)
  end
  lines[1] = string.format("%% %s: %s", figure.stem, figure.ylabel)
  lines[2] = string.format("\\begin{tabular}{l%s}", ("r"):rep(#header - 1))
  lines[3] = "\\hline"
  local cells = {}
  for c, name in ipairs(header) do cells[c] = text.latex(name) end
  lines[4] = table.concat(cells, " & ") .. " \\\\"
  lines[5] = "\\hline"
  for _, row in ipairs(rows) do
    for c = 1, #header do cells[c] = row.cells[c] or "--" end
    lines[#lines + 1] = table.concat(cells, " & ", 1, #header) .. " \\\\"
  end
  lines[#lines + 1] = "\\hline"
  lines[#lines + 1] = "\\end{tabular}"
  return table.concat(lines, "\n") .. "\n"
end

return text
