-- Figures for papers: data in, files out (PDF, SVG, PNG, script, data, caption, LaTeX table).
--
-- figure.draw checks the specification (figure/prepare.lua), works out the layout
-- (figure/layout.lua), writes the files and runs gnuplot once per format. What the caller wrote
-- wrongly raises; what the data or the machine refuse returns nil and a message that names the
-- figure. Without gnuplot the figure is written but not drawn, and the result says so in `note`.
--
--   figure.draw {
--     kind = "lines", path = "out/time", xlabel = "Depth (layers)", ylabel = "Time (us/token)",
--     series = {{name = "RapidGEMM", points = {{x = 1, y = 2.2, lo = 2.1, hi = 2.3}, ...}}},
--     caption = {n = 5, statistic = "median", device = ..., clock = ..., commit = ...},
--   }

local file = require "tilelab.file"
local prepare = require "tilelab.figure.prepare"
local script = require "tilelab.figure.script"
local shell = require "tilelab.shell"
local text = require "tilelab.figure.text"

local figure = {presets = prepare.presets}

-- Folder that holds plots/: the repository root, two levels above this file's folder.
local source = debug.getinfo(1, "S").source
figure.root = source:match("^@(.*)lua/tilelab/figure%.lua$") or ""

local ENOENT = 2

-- Runs a command; returns whether it exited with 0, and its output with both streams joined.
local function capture(...)
  local parts = {}
  for i, word in ipairs {...} do parts[i] = shell.quote(word) end
  local command = "LC_ALL=C " .. table.concat(parts, " ") .. " </dev/null 2>&1"
  local pipe <close> = assert(io.popen(command))
  local output = pipe:read("a")
  return pipe:close() == true, output
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
  local drawn = file.read(output)
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
--   kind         "lines" | "trace" | "bars"; "dots": rows under each other, values along x, x being
--                the row's name as for bars; "steps": bars in such rows, each with its value and that
--                over the row's above it; "spans": bars in such rows, from lo to hi; "pairs": bars of two
--                series, the second over the first
--                written above; "stack": bars in percent of their sum; "parts": bars of parts on
--                top of each other; "occupancy": points with a diagonal, from 0 to 100 on both axes;
--                "roofline": points under roofs, both axes logarithmic, the points of a series joined
--   path         folder and stem of the files; the folder exists
--   title? xlabel? ylabel?      any text, printed as it is
--   preset?      ["acm-column"], "acm-full", "ieee-column", "neurips"; height? in inches
--   series       list of {name=, points=, slot?=, style?=, dotted?=, key?=}: slot 1 to 8 picks
--                colour, dash and point [position], so that a backend looks alike in all figures;
--                style "both", "line", "points" ["both"; "line" beyond 30 points] and dotted (thin:
--                a fit, an extrapolation) are for lines; key=false leaves it out of the key
--   points       list of {x=, y=, lo?=, hi?=, mark?=, gain?=}; x is a number, for bars and rows any text or
--                number; NaN or no y is a gap; mark=true highlights (trace), or draws small (roofline:
--                the second memory level); gain (steps) is written in the place of y over the y above
--   logx? logy?  true, 2 or 10 (true: x in base 2 when every x is a power of two)
--   xtics?       numbers or {number, label} pairs; yrange? {lo, hi}, either may be nil
--   zero?        true: y starts at 0, false: never [0 when the data come near it; bars always]
--   interval?    "bars" | "band" [band beyond 20 points; trace: band]; band? what a band is, for
--                the key ["95 % interval"]
--   marked?      what the marks are, in few words ("fastest 8 updates")
--   references?  list of {y= or x=, label=}: grey lines; regions? list of
--                {from?=, to?=, label=}: grey areas over a range of x; for dots of values
--   roofs peaks  (roofline) 1 to 3 {slope=, label=}, y = slope x up to the highest peak, and 1 or 2
--                {y=, label=}
--   order?       (stack, parts) names of series from the foot up, the same in every figure, so that a name
--                keeps its colour; series that it lacks are summed into "other"; (dots, steps) names of rows
--                from the top [as they come]
--   caption?     {what?= [from the labels], n?=, statistic?= ("median of the updates"), interval?=
--                ("95 % bootstrap intervals"), clock?=, device?=, commit?=, note?=}
--   table?       {columns=, rows=} [the plotted numbers]; digits? significant digits there [5]
--   gnuplot?     program [$TILELAB_GNUPLOT, else "gnuplot"]
-- Returns {pdf=, svg=, png=, gp=, dat=, tex=, caption=, note=}: paths, and in note what the user
-- should know (gnuplot or the font missing, gnuplot's warnings).
-- Returns nil, message when the data or the machine refuse; raises on a malformed spec.
function figure.draw(spec)
  local fig, reason = prepare.figure(spec)
  if not fig then return nil, reason end
  local texts = {}
  for _, name in ipairs {"style", fig.template} do
    local template = figure.root .. "plots/" .. name .. ".gp"
    texts[name] = file.read(template)
    if not texts[name] then return nil, "figure template not found: " .. template end
  end
  local gp
  gp, reason = script.gnuplot(fig, texts.style, texts[fig.template])
  if not gp then return nil, string.format("figure %s: %s", text.clean(fig.path), reason) end

  local base = fig.path:sub(1, 1) == "/" and fig.path or "./" .. fig.path
  local files = {gp = base .. ".gp", dat = base .. ".dat", tex = base .. ".tex",
    caption = base .. ".caption.txt"}
  local contents = {gp = gp, dat = script.data(fig), tex = text.tabular(fig),
    caption = text.caption(fig)}
  for _, format in ipairs {"pdf", "svg", "png"} do -- an old drawing would not match the new data
    local removed, refusal, code = os.remove(base .. "." .. format)
    if not removed and code ~= ENOENT and file.read(base .. "." .. format) then
      return nil, string.format("figure %s cannot be replaced: %s", text.clean(fig.path), refusal)
    end
  end
  for _, name in ipairs {"dat", "gp", "tex", "caption"} do
    local ok, refusal = file.write(files[name], contents[name])
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
