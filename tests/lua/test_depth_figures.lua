-- The figure specifications of a depth-scaling study; drawn too where the figure module is there.

package.path = "lua/?.lua;" .. package.path

local t = dofile("tests/lua/tap.lua")
local analysis = require "tilelab.depth.analysis"
local bootstrap = require "tilelab.depth.bootstrap"
local figures = require "tilelab.depth.figures"

-- Specifications of a study of 25 updates with 2 % of noise; time_s = layers * slope[backend].
local function build(backends, slope)
  local rows, noise = {}, bootstrap.generator(4)
  for _, backend in ipairs(backends) do
    for layers = 1, 2 do
      for update = 1, 25 do
        rows[#rows + 1] = {backend = backend, layers = layers, repetition = 1, update = update,
          tokens = 1000, time_s = (0.01 + layers * slope[backend]) * (1 + noise(1000) / 50000)}
      end
    end
  end
  local result, info = analysis.run(rows, {warmup = 5, replicates = 100, backends = backends})
  return figures.build(result, info, {device = "cpu", note = "CPU reference, no performance claim"}), info
end

local SLOPE = {rapidgemm = 0.01, deepgemm = 0.011}
local specs, info = build({"rapidgemm", "deepgemm"}, SLOPE)
local names = {}
for i, spec in ipairs(specs) do
  names[i] = spec.kind .. " " .. spec.name
  t.is(spec.caption.note, "CPU reference, no performance claim", spec.name .. ": the note is kept")
  t.ok(spec.xlabel ~= "" and spec.ylabel ~= "" and spec.caption.n and spec.caption.statistic,
    spec.name .. ": says what it shows")
end
t.is(table.concat(names, ", "), "bars throughput, lines time_per_token, lines gain, trace trace", "four figures")
t.is(specs[1].caption == specs[2].caption, false, "captions are separate tables")
t.is(specs[1].series[2].points[1].x, "1 layer", "bars are labelled by depth")
local line = specs[2].series[3].points
t.ok(line[1].x == 1 and line[#line].x == 20 and line[#line].lo < line[#line].hi,
  "the fitted line runs to full depth, with its interval")
local printed = specs[2].table
t.is(table.concat(printed.columns, "|"), "Model depth (layers)|rapidgemm|deepgemm", "a table to print")
t.is(#printed.rows, 3, "of the depths that were measured, and full depth")
t.is(printed.rows[3][1], "20, fitted line", "which comes from the line")
t.like(printed.rows[3][3], "^%d+%.%d+ %[.*%]$", "with its interval")
t.is(#specs[3].series[1].points, 5, "the gain has a point for each top fraction")
local marked, fastest, first_update = 0, true, specs[4].series[1].points[1].x
for _, point in ipairs(specs[4].series[1].points) do
  if point.mark then marked = marked + 1 end
end
for _, point in ipairs(specs[4].series[1].points) do
  for _, other in ipairs(specs[4].series[1].points) do
    if point.mark and not other.mark and point.y > other.y then fastest = false end
  end
end
t.ok(marked == info.keep and fastest, "the trace marks the envelope")
t.is(first_update, 6, "and starts after the warm-up")

local _, single = build({"rapidgemm"}, SLOPE)
t.is(table.concat(single.notes, "|"):find("top 5 %%"), nil, "and no note of a sweep without a gain")
t.is(#build({"rapidgemm"}, SLOPE), 3, "one backend has no gain to draw")
local flat = build({"rapidgemm", "deepgemm"}, {rapidgemm = 0, deepgemm = 0})
t.ok(#flat >= 3, "a slope of nothing but noise still makes figures")
local _, slow = build({"rapidgemm"}, {rapidgemm = 20})
t.ok(slow.time_s.rapidgemm[2][1][1] > 10, "long updates")
t.like(build({"rapidgemm"}, {rapidgemm = 20})[3].ylabel, "%(s%)", "are shown in seconds")

local present, figure = pcall(require, "tilelab.figure")
if present then
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir '" .. folder .. "'"))
  for _, study in ipairs {SLOPE, {rapidgemm = 0, deepgemm = 0}} do
    for _, spec in ipairs((build({"rapidgemm", "deepgemm"}, study))) do
      local name = spec.name
      spec.name, spec.path = nil, folder .. "/" .. name
      local files, message = figure.draw(spec)
      t.ok(files and files.gp, name .. " is drawn " .. (message or ""))
    end
  end
  assert(os.execute("rm -r '" .. folder .. "'"))
else
  t.skip("tilelab.figure is not here: specifications are not drawn", 7)
end

t.done()
