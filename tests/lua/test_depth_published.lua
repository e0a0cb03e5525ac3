-- The published figures against the analysis, and files that cannot be used.

package.path = "lua/?.lua;" .. package.path

local t = dofile("tests/lua/tap.lua")
local published = require "tilelab.depth.published"

local path = os.tmpname()

local ORIGINAL = t.read(published.default_path)

local function with(text) return t.write(path, text) end

-- The shipped file with `pattern` replaced once.
local function edited(pattern, replacement)
  local text, count = ORIGINAL:gsub(pattern, replacement)
  assert(count == 1, pattern)
  return with(text)
end

local function report(name)
  local parts = {}
  local passed, message = published.report(name, function(text) parts[#parts + 1] = text end)
  return passed, table.concat(parts), message
end

-- Numbers as printed.
local function parsed(text, value, half)
  local result = published.parse(text)
  t.ok(result and math.abs(result.value - value) < 1e-9 * math.abs(value)
    and math.abs(result.half - half) < 1e-9 * half, "parses " .. text)
end
parsed("449.17k", 449170, 5)
parsed("1.500", 1.5, 0.0005)
parsed("6.27", 6.27, 0.005)
parsed("67.2k", 67200, 50)
parsed("-3", -3, 0.5)
parsed("+1.46", 1.46, 0.005)
parsed("2M", 2e6, 5e5)
local REFUSED = {"", "k", "1.", ".5", "1.5.2", "nan", "inf", "0x10", "1e5", "1,5", "12 k", "6.27%"}
for _, text in ipairs(REFUSED) do
  t.is(published.parse(text), nil, "refuses '" .. text .. "'")
end

-- The nine figures.
do
  local result = published.compare(published.default_path)
  local got = {}
  for i, row in ipairs(result.rows) do
    got[i] = string.format("%s %s %s", row.figure, row.backend, row.recomputed)
    t.ok(row.ok, row.figure .. " of " .. row.backend .. " agrees")
  end
  t.is(table.concat(got, "\n"), table.concat({
    "dt rapidgemm 0.666", "dt deepgemm 0.711", "R rapidgemm 1.501", "R deepgemm 1.406",
    "T_20 rapidgemm 67.2k", "T_20 deepgemm 63.4k", "gain_dt rapidgemm/deepgemm 6.27",
    "gain_R rapidgemm/deepgemm 6.69", "gain_T_20 rapidgemm/deepgemm 5.91"}, "\n"),
    "the nine recomputed figures")
  local gain = result.rows[8]
  t.is(gain.lo .. " " .. gain.hi, "6.6654 6.7076", "what rounding allows for the gain in R")
  local passed, text = report(published.default_path)
  t.is(passed, true, "the shipped file passes")
  t.like(text, "1.500 +1.501 +1.50037 +1.50067 +M token%-layers/s +ok\n", "a line of the table")
  t.ok(not text:find("OUTSIDE"), "nothing lies outside")
end

-- One throughput changed by 1 %, either way: must not pass.
for _, input in ipairs {"449.17", "345.69", "442.69", "336.71"} do
  for _, factor in ipairs {0.99, 1.01} do
    local changed = string.format("%.2f", tonumber(input) * factor)
    local pattern = input:gsub("%.", "%%.")
    local passed, text = report(edited(pattern, changed))
    t.is(passed, false, input .. " as " .. changed .. " is noticed")
    t.like(text, "OUTSIDE", "and marked")
  end
end

-- A figure just inside and just outside of what both roundings allow (R: up to 1.50067).
t.is((report(edited("1%.500", "1.501"))), true, "R of 1.501 agrees")
t.is((report(edited("1%.500", "1.502"))), false, "R of 1.502 does not")
t.is((report(edited("1%.500", "1.5"))), true, "fewer digits allow more")
t.is((report(edited("1%.500\tM token", "1500.6\tk token"))), true, "in thousands")
t.is((report(edited("0%.666", "0.6660"))), false, "more digits allow less")

-- Other columns, their order and carriage returns do not matter.
do
  local text = ORIGINAL:gsub("([^\n\t]+)\t([^\n\t]+)\t([^\n\t]+)\t([^\n\t]+)\n",
    "%4\t%3\t-\t%2\t%1\r\n")
  text = text:gsub("unit\tvalue\t%-", "unit\tvalue\tnote")
  t.is((report(with(text))), true, "columns are found by name")
end

-- Files that cannot be used: file:line, culprit, remedy.
local function refused(name, pattern, what)
  local passed, _, message = report(name)
  t.is(passed, nil, what .. ": refused")
  t.like(message, pattern, what)
end
local file_name = path:gsub("%p", "%%%0")
local last = select(2, ORIGINAL:gsub("\n", ""))
refused(edited("value\tunit", "worth\tunit"), file_name .. ":8: column 'value' is missing",
  "missing column")
refused(edited("gain_R[^\n]*\n", ""),
  string.format("%s:%d: .*figure gain_R of rapidgemm/deepgemm: add", file_name, last - 1),
  "missing figure")
refused(edited("T_2\tdeepgemm[^\n]*\n", ""), "without figure T_2 of deepgemm", "missing throughput")
refused(edited("345%.69k", "nan"),
  file_name .. ":11: T_2 of rapidgemm: 'nan' is not a number; write", "not a number")
refused(edited("0%.711", ""), file_name .. ":14: dt of deepgemm: '' is not a number", "empty cell")
refused(edited("0%.711\t", ""), file_name .. ":14: 3 cells where the header has 4", "missing cell")
refused(edited("449%.17k", "0.00k"), ":9: T_1 of rapidgemm: .*not above 0", "throughput of zero")
refused(edited("M token%-layers/s\nR", "M tokens\nR"), ":15: R of rapidgemm: unit 'M tokens' where",
  "wrong unit")
refused(edited("T_2\tdeepgemm", "T_1\tdeepgemm"),
  ":12: figure T_1 of deepgemm stands in line 10 already", "double figure")
refused(with(ORIGINAL:sub(1, -4)),
  string.format("%s:%d: the last row has no newline", file_name, last), "cut last row")
refused(with("# only a comment\n"), "no header row", "no rows")
refused(with(""), "no header row", "empty file")
refused("no/such/file.tsv", "no/such/file.tsv", "no such file")
refused("experiments", "experiments: .*folder", "a folder")

os.remove(path)
t.done()
