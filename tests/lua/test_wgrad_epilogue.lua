-- The record of the weight gradients' epilogues: its figures and its schema, on made-up rows.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local core = require "tilelab_core"
local expression = require "tilelab.expression"
local made_up = dofile("tests/lua/made_up.lua")

local folder <close> = t.folder()
local real = lab.recorded.folder
lab.recorded.folder = folder / "records"
print = function() end -- luacheck: ignore (what publish says is no TAP)

local data = made_up.record("wgrad_epilogue", folder / "out")
t.is(#data.rows, 2 * 2 * 21, "rows of all ways")
local function is(text, want) t.ok(math.abs(expression.value(text, data) - want) < 1e-9, text) end
is("min (store_us / time_us) where way=write experts=128 stages=4 block_n=256", 1007 / 1309)
is("max time_us of way=load over way=reduce where variant=sm90_cooperative zeroed=0 experts=128", 2185 / 3131)
is("value time_us where op=wgrad_w13 experts=32 way=reduce zeroed=1", 972 + 222)
is("min time_us of zeroed=1 over zeroed=0 where way=load experts=32 op=wgrad_w13 variant=sm90_ragged",
  (941 + 222) / 941)

local function lines(name) return t.read(folder / ("figures/" .. name .. ".dat")) end
local files = lab.draw.record(data, { folder = folder / "figures" })
t.is(#files, 4, "figures")
for _, name in ipairs { "wgrad_epilogue_32", "wgrad_epilogue_128" } do
  local text = lines(name)
  for _, category in ipairs { "w13: 1/4 tile", "w13: 1/2 tile", "w13: whole tile", "w2: 256x128", "w2: in turn" } do
    t.ok(text:find(category, 1, true) ~= nil, name .. ": " .. category)
  end
end
t.ok(lines("wgrad_epilogue_zeroing"):find("w13, 32", 1, true) ~= nil, "zeroing: problems")
t.ok(lines("wgrad_epilogue_bytes"):find("w2, 128: loaded", 1, true) ~= nil, "bytes: ways of a problem")
t.like(t.read(files[1].caption), "fp32 weight gradients: 32768 rows over 32 experts, multinomial sizes",
  "captions say the conditions")
for _, name in ipairs { "zeroing", "bytes" } do
  t.like(t.read(folder / ("figures/wgrad_epilogue_%s.caption.txt"):format(name)),
    "loaded: sm90_ragged, at the better number of stages; added by TMA, which it does not do: sm90_cooperative",
    name .. ": whose kernel each way is")
end
t.like(t.read(folder / "figures/wgrad_epilogue_bytes.caption.txt"), "%(n = 1 launch%)", "bytes are read once")

do -- a machine that refuses counters
  local ok, uncounted = pcall(made_up.record, "wgrad_epilogue", folder / "uncounted", function(row)
    row.dram_read_bytes, row.dram_write_bytes = "-", "-"
  end)
  t.ok(ok, "times are a record without counters " .. (ok and "" or tostring(uncounted)))
  local drawn = ok and lab.draw.record(uncounted, { folder = folder / "uncounted" }) or {}
  t.is(#drawn, 3, "and all figures but that of bytes are drawn")
end

local whole = t.read(lab.recorded.path("wgrad_epilogue", "cpu"))
local function refused(pattern, with, message, name)
  t.write(folder / "wgrad_epilogue.tsv", (whole:gsub(pattern, with, 1)))
  local ok, err = pcall(lab.recorded.read, folder / "wgrad_epilogue.tsv")
  t.ok(not ok and core.error_kind(err) == "refused" and tostring(err):find(message) ~= nil, name)
end
refused("\treduce\t", "\tsum\t", "column 'way' holds 'sum'", "a way that is none")
refused("\nwgrad_w13\t", "\nfwd_w13\t", "column 'op' holds 'fwd_w13'", "a product that is no weight gradient")
lab.recorded.folder = real
t.done()
