-- Comparing result files: which rows belong together, verdicts by interval and threshold, conditions.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local core = require "tilelab_core"
local compare = require "tilelab.compare"
local rows = require "tilelab.rows"

local folder <close> = t.folder()

local count = 0
local function file(text)
  count = count + 1
  return lab.record.read(t.write(folder / (count .. ".tsv"), (text:gsub(" +", "\t"))))
end

local function refusal(fn, pattern, name)
  local ok, err = pcall(fn)
  t.ok(not ok and core.error_kind(err) == "refused" and tostring(err):find(pattern) ~= nil, name)
  if ok or not tostring(err):find(pattern) then print("# " .. tostring(err)) end
end

-- Keys.

local data = file "op experts beta shape top time_us rounds note\nfwd 32 0 1.5 x 10 7 y\n"
t.is(table.concat(rows.keys(data), " "), "op experts beta top",
  "keys: texts and integers before the first value, no fractions")
t.is(table.concat(rows.keys(file "kernel metric kind tilelab ncu ratio\nk m count 1 1 1\n"), " "),
  "kernel metric kind", "keys of an agreement")
t.is(table.concat(rows.keys(file "time_us op\n1 a\n"), " "), "", "no key before a value")
t.is(rows.identity({ a = "32", b = "x" }, { "a", "b" }), rows.identity({ a = "32.0", b = "x" }, { "a", "b" }),
  "numbers are equal as numbers")
for _, name in ipairs { "time_us", "time_us_lo", "call_us", "tflops", "dram_gbps", "sm_clock_mhz", "ratio",
  "copy_ratio", "power_w", "share_of_dense", "tensor_pct" } do
  t.ok(rows.is_value(name), name .. " is a value")
end
for _, name in ipairs { "op", "groups", "flush", "variant", "case", "block_threads", "cols" } do
  t.ok(not rows.is_value(name), name .. " is none")
end

-- Verdicts.

local function verdict(base, new, threshold, better)
  local item = compare.ratio(base[1], base[2], base[3], new[1], new[2], new[3])
  return compare.verdict(item, threshold or 0.03, better or "lower"), item
end
t.is(verdict({ 100, 99, 101 }, { 110, 109, 111 }), "slower", "apart and beyond: slower")
t.is(verdict({ 110, 109, 111 }, { 100, 99, 101 }), "faster", "the other way: faster")
t.is(verdict({ 100, 99.5, 100.5 }, { 101, 100.5, 101.5 }), "same", "close and tight: same")
t.is(verdict({ 100, 80, 120 }, { 101, 81, 121 }), "ambiguous", "close but wide: ambiguous")
t.is(verdict({ 100, 80, 130 }, { 110, 90, 140 }), "ambiguous", "beyond but overlapping: ambiguous")
t.is(verdict({ 100, 99.9, 100.1 }, { 102, 101.9, 102.1 }), "same", "certain but small: same")
t.is(verdict({ 100 }, { 103.1 }), "slower", "without intervals the threshold decides")
t.is(verdict({ 100 }, { 102.9 }), "same", "both ways")
t.is(verdict({ 100 }, { 103.1 }, 0.05), "same", "with another threshold")
t.is(verdict({ 100, 98, 102 }, { 110 }), "slower", "an interval in one file only")
t.is(verdict({ 0.9 }, { 0.8 }, 0.03, "higher"), "lower", "where high values are wanted")
t.is(verdict({ 0.8 }, { 0.9 }, 0.03, "higher"), "higher", "both ways")
local _, item = verdict({ 100, 97, 103 }, { 100, 96, 104 })
t.ok(math.abs(item.hi - 1.051) < 0.002 and math.abs(item.lo - 0.951) < 0.002, "half-widths add in quadrature")

t.is(compare.threshold "3%", 0.03, "threshold in percent")
t.is(compare.threshold "0.5%", 0.005, "and a fraction of it")
t.is(compare.threshold "0.03", 0.03, "and as a share")
for _, text in ipairs { "3", "0%", "-1%", "x%", "", "100%", "nan", "1e-2%" } do
  t.is(compare.threshold(text), nil, "no threshold: '" .. text .. "'")
end

-- Files.

local head = "op variant time_us time_us_lo time_us_hi\n"
local base = file(head .. "fwd a 100 99 101\nfwd b 50 49 51\nbwd a 10 9.9 10.1\nold a 1 1 1\nbwd b - - -\n")
local new = file(head .. "bwd a 9 8.9 9.1\nfwd b 50 49.5 50.5\nfwd a 120 119 121\nnew a 1 1 1\nbwd b 4 3 5\n")
local result = compare.files(base, new, {})
t.is(#result.rows, 3, "rows in both")
t.is(result.rows[1].verdict .. result.rows[1].row.op, "slowerfwd", "the worst comes first")
t.is(result.rows[3].verdict, "faster", "the best last")
t.is(result.regressions, 1, "regressions are counted")
t.is(result.only_base[1].op .. result.only_new[1].op .. result.without[1].op, "oldnewbwd",
  "rows of one file only, and rows without a value")
t.ok(math.abs(result.geomean - (1.2 * 1 * 0.9) ^ (1 / 3)) < 1e-12, "geometric mean")
t.is(compare.files(base, new, { key = { "op", "variant" } }).regressions, 1, "the caller's key")
t.is(#compare.varying(result), 2, "columns that tell rows apart")
result = compare.files(file "op share_of_dense\na 0.9\nb 0.8\n", file "op share_of_dense\na 0.8\nb 0.9\n",
  { value = "share_of_dense", better = "higher" })
t.is(result.rows[1].verdict .. " " .. result.rows[2].verdict, "lower higher", "another value")
t.is(result.regressions, 1, "lower is the regression there")

refusal(function() compare.files(file "op x\na 1\n", new, {}) end, "has no column 'time_us' to compare",
  "no such value")
refusal(function() compare.files(base, file "kernel time_us\nk 1\n", {}) end,
  "no column in common that tells rows apart", "files of two experiments")
t.is(#compare.files(file "time_us\n1\n", file "time_us\n2\n", {}).rows, 1, "one row each needs no key")
refusal(function() compare.files(base, new, { key = { "variants" } }) end, "did you mean 'variant'", "no such key")
refusal(function() compare.files(base, new, { key = { "op" } }) end,
  "1?%d%.tsv:%d: the same op as in .*:%d; give the columns", "rows that the key does not tell apart")
refusal(function() compare.files(base, file(head .. "fwd a nan 1 2\n"), {}) end,
  ":2: column 'time_us' holds 'nan'", "a value that is none")
refusal(function() compare.files(base, file(head .. "fwd a 0 0 0\n"), {}) end, "positive number", "a zero time")
refusal(function() compare.files(base, file(head .. "fwd a 5 6 7\n"), {}) end,
  ":2: time_us 5 lies outside its interval %[6, 7%]", "an interval beside its value")

-- Conditions.

local function with(provenance, clock)
  return file(provenance .. "op time_us sm_clock_mhz\na 1 " .. clock .. "\n")
end
local function conditions(a, b)
  local list = {}
  for i, entry in ipairs(compare.conditions(a, b)) do list[i] = table.concat(entry, "|") end
  return table.concat(list, "; ")
end
t.is(conditions(with("# commit: a\n# date: x\n", 1755), with("# commit: a\n# date: y\n", 1755)), "",
  "dates do not matter")
t.is(conditions(with("# commit: a\n# device_model: H200\n# kernel_sha256.gemm: 1\n", 1755),
  with("# commit: b\n# driver: 580\n# kernel_sha256.gemm: 2\n", 1400)),
  "commit|a|b; device_model|H200|-; driver|-|580; sm_clock_mhz (median)|1755|1400; kernels that changed|gemm",
  "device, driver, commit, clock and kernels do")
t.done()
