-- tilelab compare BASE.tsv NEW.tsv: what became faster or slower between two result files.
-- Exit code: 0, 1 where a row regressed, 2 for bad input. The rules are in lua/tilelab/compare.lua.

local lab = require "tilelab"
local compare = require "tilelab.compare"
local text_table = require "tilelab.text_table"

local MAX_DRAWN = 48

local function cells_of(row, keys)
  local cells = {}
  for i, key in ipairs(keys) do cells[i] = row[key] end
  return cells
end

local function interval(item)
  if not item.lo then return "" end
  return ("[%.3f, %.3f]"):format(item.lo, item.hi)
end

local function print_conditions(base, new)
  local list = compare.conditions(base, new)
  if #list == 0 then
    print("conditions agree as far as they are recorded: device, driver, clocks, commit, compilers")
    return
  end
  local cells = { { "differs", "base", "new" } }
  for i, item in ipairs(list) do cells[i + 1] = { item[1], item[2], item[3] or "" } end
  print(text_table.align(cells, {}))
end

local function print_table(result, value)
  local keys, fixed = compare.varying(result)
  if #fixed > 0 then print("all rows: " .. table.concat(fixed, " ")) end
  local cells, right = { cells_of({}, {}) }, {}
  for i, key in ipairs(keys) do cells[1][i] = key end
  for i, name in ipairs { "base " .. value, "new", "ratio", "interval", "verdict" } do
    cells[1][#keys + i] = name
    right[#keys + i] = i <= 3
  end
  for r, item in ipairs(result.rows) do
    local row = cells_of(item.row, keys)
    row[#row + 1] = ("%.5g"):format(item.base)
    row[#row + 1] = ("%.5g"):format(item.new)
    row[#row + 1] = ("%.3f"):format(item.ratio)
    row[#row + 1] = interval(item)
    row[#row + 1] = item.verdict
    cells[r + 1] = row
  end
  print(text_table.align(cells, right))
end

local function print_lonely(list, keys, where)
  if #list == 0 then return end
  print(("\n%s (%d):"):format(where, #list))
  for _, row in ipairs(list) do print("  " .. table.concat(cells_of(row, keys), " ")) end
end

local function summary(result, opt, threshold)
  local parts = {}
  for _, verdict in ipairs { "same", "faster", "slower", "higher", "lower", "ambiguous" } do
    local count = result.counts[verdict]
    if count then parts[#parts + 1] = ("%d %s"):format(count, verdict) end
  end
  return ("%d rows: %s (threshold %g %%); geometric mean of %s, new over base: %.4f"):format(
    #result.rows, table.concat(parts, ", "), 100 * threshold, opt.value, result.geomean)
end

-- The rows farthest from 1 where there are more than a figure holds.
local function drawn_rows(result)
  local list = table.move(result.rows, 1, #result.rows, 1, {})
  if #list <= MAX_DRAWN then return list end
  local far, rank = {}, {}
  for i, item in ipairs(list) do rank[i], far[item] = item, math.abs(math.log(item.ratio)) end
  table.sort(rank, function(a, b) return far[a] > far[b] end)
  local kept, few = {}, {}
  for i = 1, MAX_DRAWN do kept[rank[i]] = true end
  for _, item in ipairs(list) do
    if kept[item] then few[#few + 1] = item end
  end
  return few
end

local SERIES = { "slower", "lower", "ambiguous", "same", "faster", "higher" }
local SLOTS = { slower = 2, lower = 2, ambiguous = 7, same = 6, faster = 3, higher = 3 }

local function draw(result, base, new, opt, threshold)
  local keys, series, points, order = compare.varying(result), {}, {}, {}
  local list = drawn_rows(result)
  for i, item in ipairs(list) do
    local name = table.concat(cells_of(item.row, keys), " ")
    order[i] = name == "" and opt.value or name
    points[item.verdict] = points[item.verdict] or {}
    table.insert(points[item.verdict], { x = order[i], y = item.ratio, lo = item.lo, hi = item.hi })
  end
  for _, verdict in ipairs(SERIES) do
    if points[verdict] then
      series[#series + 1] = { name = verdict, points = points[verdict], slot = SLOTS[verdict] }
    end
  end
  lab.check(lab.mkdir(opt.figure))
  local short = { base = base.provenance.commit or "unknown", new = new.provenance.commit or "unknown" }
  local files = lab.check(lab.figure.draw {
    kind = "dots", path = opt.figure .. "/compare", preset = "acm-full", series = series, order = order,
    xlabel = table.concat(keys, " "), ylabel = ("%s, new over base"):format(opt.value),
    references = { { y = 1, label = "equal" } },
    regions = { { from = 1 / (1 + threshold), to = 1 + threshold,
      label = ("within %g %%"):format(100 * threshold) } },
    caption = {
      what = ("Ratio of %s, new over base, for each %s; base: commit %s, new: commit %s"):format(
        opt.value, #keys > 0 and table.concat(keys, ", ") or "row", short.base:sub(1, 12), short.new:sub(1, 12)),
      statistic = "ratio of the two recorded values", n = ("%d rows"):format(#list),
      interval = "95 % intervals of the ratio from those of both values",
      device = new.provenance.device_model, clock = new.provenance.clock, commit = short.new:sub(1, 12),
      note = #list < #result.rows and ("Drawn are the %d rows farthest from 1 of %d"):format(#list,
        #result.rows) or nil,
    },
  })
  print("figure   " .. (files.pdf or files.gp):gsub("^%./", ""))
  if files.note then print(files.note) end
end

lab.main(function()
  local opt = lab.options {
    name = "tilelab compare",
    summary = "Compares two result files row by row; exits with 1 where a row regressed.",
    arguments = "BASE.tsv NEW.tsv",
    { "threshold", "string", "3%", "smallest change that counts", value = "PERCENT" },
    { "value", "string", "time_us", "column to compare; its interval is in _lo and _hi" },
    { "better", "string", "lower", "which values are wanted", choices = { "lower", "higher" } },
    { "key", "list", nil, "columns that tell rows apart; default: texts and integers before the "
      .. "first value" },
    { "figure", "string", nil, "draw the ratios into FOLDER", value = "FOLDER" },
  }
  if #opt ~= 2 then
    lab.usage_error("two files are compared, and %d were given: tilelab compare BASE.tsv NEW.tsv", #opt)
  end
  local threshold = compare.threshold(opt.threshold)
  if not threshold then
    lab.usage_error("option --threshold: expected a share such as 3%% or 0.03, got '%s'", opt.threshold)
  end
  local base, new = lab.record.read(opt[1]), lab.record.read(opt[2])
  local result = compare.files(base, new, { value = opt.value, better = opt.better,
    threshold = threshold, key = opt.key })
  print_conditions(base, new)
  if #result.rows == 0 then
    lab.usage_error("no row is in both files (key: %s)", table.concat(result.keys, ", "))
  end
  print("")
  print_table(result, opt.value)
  print_lonely(result.only_base, result.keys, "only in base")
  print_lonely(result.only_new, result.keys, "only in new")
  print_lonely(result.without, result.keys, "without " .. opt.value)
  print("\n" .. summary(result, opt, threshold))
  if opt.figure then draw(result, base, new, opt, threshold) end
  return result.regressions == 0
end)
