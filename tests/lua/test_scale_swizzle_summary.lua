-- What the scale-swizzle study says of its records, on made-up rows: numbers follow from them, verdicts change
-- with them, and what is missing is left out.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local core = require "tilelab_core"
local limits = require "tilelab.scale_swizzle.limits"
local made_up = dofile("tests/lua/made_up.lua")
local summary = require "tilelab.scale_swizzle.summary"

local folder <close> = t.folder()
local real = lab.recorded.folder
lab.recorded.folder = folder / "records"
local real_print = print
print = function() end -- luacheck: ignore (what publish says is no TAP)

local data = made_up.record("scale_swizzle", folder / "out")
local causes = made_up.record("scale_swizzle_causes", folder / "out")
data.provenance.null_us_1 = "0.61"
local text = summary.text(data, causes)
t.like(text, "\nk_groups %(8192,4096%) G=8 +smxx_registers +128 +16 +20%.22 +18%.20 +%+2%.02 +0%.900 +0%.870\n",
  "a line a problem")
t.like(text, "\n8192 +4096 +30000 +26%.22 +20%.22 +2563 +1144 +11212%.8 +99%.232 +681%.566 +113%.00\n",
  "the published columns, ours and theirs")
t.like(text, "rank correlation of %-?%d%.%d%d", "occupancy against throughput")
t.like(text, "smxx_registers, 4096 columns: from 51 to 6 %% the time grows 2%.9%d%-fold; above %d+ %% more occupancy "
  .. "brings less than 5 %%", "occupancy alone")
t.like(text, "\nL1: [^\n]*; smxx_registers, 4096 columns, 20%.55 instead of 20%.26 us; ", "L1 alone")
for _, cols in ipairs { "4096", "512" } do -- each shape for itself: the shorter one takes a fraction of the time
  t.like(text, cols .. " columns, 2 blocks of 4 warps: 20 KiB a multiprocessor take 1%.33 times as long as 80",
    "bytes in flight, " .. cols)
  t.like(text, cols .. " columns, at 25 %% occupancy: 8%-byte loads take 1%.08 times as long", "half the bytes a load")
  t.like(text, cols .. " columns, with the bytes held: 64 threads a block take 1%.18 times as long as 256",
    "more warps")
end
local drawn_causes = lab.draw.record(causes, { folder = folder / "whole" })
for _, cols in ipairs { "4096", "512" } do
  local points = t.read(("%s/scale_swizzle_in_flight_%s.dat"):format(folder / "whole", cols))
  t.is(select(2, points:gsub("\n20\t", "")), 1, "the figure of " .. cols .. " columns has one point at 20 KiB")
end
t.is(#drawn_causes, 5, "occupancy held and bytes in flight of both shapes, and stalls")
t.like(text, "smxx_registers at 131072 x 64 %+0%.64 of 6%.39 us", "waiting for the group ends")
t.like(text, "smxx_windows, whose loads need no ends, takes %d+%.%d%d us at 131072 x 224; ", "and not waiting")
t.like(text, "\nStores: [^\n]* 4096 columns 20%.92 instead of 23%.01 us; 512 columns", "stores of two groups at once")
t.like(text, "takes 0%.61 us, 27 %% of 2%.22 us at 2048 x 512 and 3 %% of 20%.22 us at 8192 x 4096", "launch")

-- A reason without a column of its own among the causes.
for _, row in ipairs(data.rows) do
  if row.variant == "smxx_naive" and row.top_stall ~= "-" then row.top_stall = "not_selected" end
end
t.like(summary.text(data, causes), "\nk_groups %(8192,4096%) G=8 +smxx_naive [^\n]* not_selected\n",
  "warps wait most for what the largest share of all reasons is")

-- What limits first.

local function verdict(variant, cols, changes)
  local list = {}
  for i, row in ipairs(causes.rows) do
    local copy = {}
    for key, value in pairs(row) do copy[key] = value end
    if row.series == "variants" and row.variant == variant and row.cols == cols then
      for key, value in pairs(changes or {}) do copy[key] = value end
    end
    list[i] = copy
  end
  local changed = setmetatable({ rows = list }, { __index = causes })
  local answers = table.concat(limits.answers(data, changed), "\n")
  return answers:match("\n  " .. variant .. ", " .. cols .. " columns: ([^%d\n][^:\n]*):") or "-"
end
t.is(verdict("smxx_registers", "4096"), "memory itself", "near a copy")
t.is(verdict("smxx_naive", "4096"), "access pattern", "few bytes of each sector")
local slow = { copy_ratio = "0.5", load_efficiency_pct = "90", store_efficiency_pct = "90" }
t.is(verdict("smxx_vec16", "4096", { copy_ratio = "0.5", load_efficiency_pct = "90", bank_conflict_pct = "30" }),
  "bank conflicts", "conflicts")
slow.issue_active_pct = "80"
t.is(verdict("smxx_vec16", "4096", slow), "instructions", "many instructions")
slow.issue_active_pct, slow.time_us = "30", "2"
t.is(verdict("smxx_vec16", "512", slow), "launch and latency", "short kernels")

-- Parts of records.

local all_data, all_causes = data.rows, causes.rows
local function only(list, column, wanted)
  local kept = {}
  for _, row in ipairs(list) do
    if row[column] == wanted then kept[#kept + 1] = row end
  end
  return kept
end
for _, grouping in ipairs { "dense", "m_groups", "k_groups" } do
  data.rows, causes.rows = only(all_data, "grouping", grouping), only(all_causes, "grouping", grouping)
  local ok, part = pcall(summary.text, data, causes)
  t.ok(ok and part:find(grouping, 1, true), grouping .. " alone: " .. (ok and "told" or tostring(part)))
  for _, each in ipairs { data, causes } do
    local drawn, message = pcall(lab.draw.record, each, { folder = folder / "figures" })
    t.ok(drawn, ("%s of %s is drawn%s"):format(grouping, each.experiment, drawn and "" or ": " .. tostring(message)))
  end
end
data.rows = all_data
for _, series in ipairs { "variants", "occupancy", "in_flight", "load_bytes", "warps" } do
  causes.rows = only(all_causes, "series", series)
  local ok, message = pcall(function()
    summary.text(data, causes)
    lab.draw.record(causes, { folder = folder / "figures" })
  end)
  t.ok(ok, ("the series %s alone%s"):format(series, ok and "" or ": " .. tostring(message)))
end
for _, row in ipairs(all_causes) do -- a machine that refuses counters
  for key in pairs(row) do
    if key:find "_pct$" or key == "dram_gbps" or key == "instructions" then row[key] = "-" end
  end
end
causes.rows = all_causes
local ok, message = pcall(summary.text, data, causes)
t.ok(ok, "without counters" .. (ok and "" or ": " .. tostring(message)))
t.ok(pcall(lab.draw.record, causes, { folder = folder / "figures" }), "nor are they needed for figures")

-- The schema.

local whole = t.read(lab.recorded.path("scale_swizzle", "cpu"))
t.write(folder / "scale_swizzle.tsv", (whole:gsub("\tdirty\t", "\tgrey\t", 1)))
local good, refusal = pcall(lab.recorded.read, folder / "scale_swizzle.tsv")
t.ok(not good and core.error_kind(refusal) == "refused" and tostring(refusal):find "column 'flush' holds 'grey'",
  "a flush that is none")
print, lab.recorded.folder = real_print, real -- luacheck: ignore
t.done()
