-- Figures of merit over rows: what they compute, and what they refuse.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local core = require "tilelab_core"
local expression = require "tilelab.expression"

local folder <close> = t.folder()
local data = lab.record.read(t.write(folder / "rows.tsv", ([[
op variant experts time_us copy_us tflops share_of_dense note
fwd ragged 32 100 99 50 0.98 x_sectors
fwd padded 32 120 99 40 0.90 -
bwd ragged 32 200 198 40 0.95 y
bwd padded 32 220 198 25 0.85 y
fwd ragged 128 300 299 30 0.80 two
fwd padded 128 400 299 20 - y
]]):gsub(" ", "\t")))

local function value(text) return expression.value(text, data) end
local function near(text, want, name)
  local ok, got = pcall(value, text)
  t.ok(ok and math.abs(got - want) < 1e-12 * math.max(1, math.abs(want)), name or text)
  if not ok then print("# " .. tostring(got)) end
end

near("min share_of_dense where op=fwd experts=32 variant=ragged", 0.98)
near("min share_of_dense where variant=ragged", 0.80)
near("max time_us", 400)
near("mean time_us where experts=32", 160)
near("median time_us where experts=32", 160)
near("median time_us where variant=ragged", 200)
near("sum tflops where op=bwd", 65)
near("count", 6)
near("count where op=fwd variant=ragged", 2)
near("count - count where op=fwd", 2)
near("geomean tflops where experts=32 op=fwd", math.sqrt(2000))
near("value time_us where op=bwd variant=padded", 220)
near("max (time_us - copy_us) where variant=ragged", 2)
near("max abs(tflops - 45) where experts=32", 20)
near("min -time_us", -400)
near("geomean tflops of variant=ragged over variant=padded", (50 / 40 * 40 / 25 * 30 / 20) ^ (1 / 3))
near("min tflops of variant=ragged over variant=padded where experts=32", 1.25)
near("max (time_us + 0) of op=bwd over op=fwd where experts=32", 2)
near("value time_us where op=fwd variant=ragged experts=32 - value time_us where op=bwd variant=ragged", -100)
near("(max time_us - min time_us) / 100", 3)
near("1 + 2 * 3 - 4 / 2", 5)
near("abs(min time_us - max time_us) * 1e-2", 3)
near("-(2 - 3)", 1)
near("count where experts=32.0", 4, "numbers are equal as numbers")
near("count where op=fwd,bwd", 6, "alternatives")
near("count where op!=fwd", 2)
near("count where variant!=ragged,padded", 0)
near("count where experts<128", 4)
near("count where experts<=128 experts>=128", 2)
near("count where time_us>200 op=fwd", 2)
near("count where note~sectors", 1, "contains")
near('count where note="two"', 1, "a quoted text")
near("  max   time_us   where   op=bwd  ", 220, "spaces")

local function refused(text, pattern)
  local ok, err = pcall(value, text)
  t.ok(not ok and core.error_kind(err) == "refused" and tostring(err):find(pattern) ~= nil, text .. ": refused")
  if ok or not tostring(err):find(pattern) then print("# " .. tostring(err)) end
end
refused("", "at character 1: expected a number or one of count geomean .*the end")
refused("maxx time_us", "at character 1: .*found 'maxx'; did you mean 'max'")
refused("max", "at character 4: expected a column or a number, found the end")
refused("max tim_us", "no column 'tim_us'; did you mean 'time_us'")
refused("max time_us where", "a condition such as column=text is missing after 'where'")
refused("max time_us where op fwd", "missing after 'where'")
refused("max time_us where opp=fwd", "no column 'opp'; did you mean 'op'")
refused("max time_us where op=", "a text is missing after 'op='")
refused("max time_us where op=nothing", "no row matches")
refused("max time_us where op==fwd", "'==' is none of")
refused("max time_us where op<fwd", "compares with a number")
refused("max time_us - copy_us where op=fwd", "found 'copy_us'")
refused("max time_us - 1 where op=fwd", "'where' is left over; an operand with .* in parentheses")
refused("max (time_us", "expected '%)', found the end")
refused("max time_us )", "'%)' is left over")
refused("max time_us 5", "'5' is left over")
refused("value time_us where op=bwd", "2 rows match where `value` wants one")
refused("min share_of_dense", "rows.tsv:7: column 'share_of_dense' holds '%-'")
refused("max note", "column 'note' holds")
refused("geomean (time_us - 100)", "a geometric mean of 0")
refused("1 / 0", "division by zero")
refused("min tflops of variant=ragged", "expected 'over'")
refused("count of op=fwd over op=bwd", "'of' is left over")
refused("min tflops of op=fwd over op=bwd", "rows.tsv:6: no row of `over` agrees with it in variant, experts")
refused("min tflops of experts=32 over experts=128 where op=bwd", "no row of `over`")
refused("min tflops of op=bwd over variant=ragged where experts=32", "the same experts as in .*:2; add conditions")
refused("max max time_us", "'time_us' is left over")
refused("max time_us; 1", "';' is left over")
refused(("("):rep(300) .. "1", "expected '%)'")
t.done()
