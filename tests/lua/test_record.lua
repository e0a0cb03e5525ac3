-- Result files: written by name, read back exactly, and refused with file and line when damaged.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local core = require "tilelab_core"

local folder <close> = t.folder()
local path = folder / "rows.tsv"
local columns = { "n", "backend", "time_us" }

do
  local record <close> = assert(lab.record.create(path, "commit: abc\nseed: 3\n", columns))
  record:row { n = 1, backend = "rapidgemm", time_us = 0.1 }
  t.is(t.read(path), "# commit: abc\n# seed: 3\nn\tbackend\ttime_us\n1\trapidgemm\t0.1\n",
    "a row is on disk as soon as it is written")
  record:row { backend = "-", time_us = 1 / 3, n = math.maxinteger }
  t.error(function() record:row { n = 1, backend = "x" } end, "lacks column 'time_us'", "column missing")
  t.error(function() record:row { n = 1, backend = "x", time_us = 1, tim_us = 2 } end,
    "unknown row field 'tim_us'; did you mean 'time_us'", "unknown column")
  t.error(function() record:row { n = 1, backend = "a\tb", time_us = 1 } end, "tab", "a tab in a cell")
  t.error(function() record:row { n = 1, backend = {}, time_us = 1 } end, "column 'backend' holds a table",
    "a cell of the wrong type")
  t.error(function() record:row { n = 1, backend = "a\0b", time_us = 1 } end, "zero byte", "a zero byte")
  t.is(record:close(), true, "close")
  t.is(record:close(), true, "close again")
  t.error(function() record:row { n = 1, backend = "x", time_us = 1 } end, "closed", "row after close")
end

do
  local record <close> = assert(lab.record.append(path, columns))
  record:row { n = 0 / 0, backend = true, time_us = -0.0 }
end
local data = lab.record.read(path, { "time_us", "n" })
t.is(#data.rows, 3, "rows; failed ones left no trace")
t.is(data.provenance.seed, "3", "provenance")
t.is(table.concat(data.columns, " "), "n backend time_us", "columns")
t.is(data:number(data.rows[2], "time_us"), 1 / 3, "a float comes back bit for bit")
t.is(data:number(data.rows[2], "n"), math.maxinteger, "an integer too")
t.is(data:text(data.rows[2], "backend"), "-", "not applicable")
t.is(data:where(data.rows[1]), path .. ":4", "where a row is")

-- What reading `text` raises: always a refusal, never a defect.
local function refusal(text, required, number)
  t.write(path, text)
  local ok, err = pcall(function()
    local bad = lab.record.read(path, required)
    if number then bad:number(bad.rows[1], number) end
  end)
  if ok then return "no error" end
  return (core.error_kind(err) == "refused" and err.code or "defect") .. " " .. tostring(err)
end
local at = "format " .. path:gsub("%p", "%%%0")
t.like(refusal("# k: v\na\tb\n1\t2\n", { "a", "bb" }), at .. ":2: column 'bb' is missing .*'b'", "missing column")
t.like(refusal("a\tb\n1\t2\n1\n"), at .. ":3: 1 columns where the header has 2", "too few cells")
t.like(refusal("a\tb\n1\t2\t3\n"), at .. ":2: 3 columns", "too many cells")
t.like(refusal("a\tb\n1\t2\n1\t"), at .. ":3: the last row is cut off", "truncated last row")
t.like(refusal("a\tb\n1\t2\n1\t2"), at .. ":3: the last row is cut off", "last row without its newline")
t.like(refusal("a\ta\n"), at .. ":1: column 'a' is there twice", "column twice")
t.like(refusal("# only: this\n"), at .. ":1: no header row", "no header")
t.like(refusal(""), at .. ":1: no header row", "empty file")
t.like(refusal("a\tb\n1\tnan\n", {}, "b"), at .. ":2: column 'b' holds 'nan'", "NaN where a number is needed")
t.like(refusal("a\tb\n1\t-\n", {}, "b"), "holds '%-'", "not applicable is no number")
t.like(refusal("a\tb\n\n"), at .. ":2: 1 columns", "an empty line")
t.error(function() data:number(data.rows[1], "tim_us") end, "no column 'tim_us'; did you mean 'time_us'",
  "asking for an unknown column is the caller's mistake")
t.error(function() lab.record.read(folder / "absent.tsv") end, "absent.tsv: No such file", "absent file")

t.write(path, "a\n1\n2")
local cut = lab.record.read(path, { "a" }, { drop_cut_row = true })
t.is(#cut.rows, 1, "a cut row may be left out")
t.is(cut.cut, "2", "and is reported")

local record, message, code = lab.record.append(path, { "a" })
t.is(record, nil, "no appending to a cut file")
t.like(message, ":3", "it says where")
t.is(code, "format", "with a code")
record, message, code = lab.record.create(folder / "no/such.tsv", "", { "a" })
t.ok(record == nil and message:find("no/such.tsv", 1, true) and code == "io", "an absent folder")
t.error(function() lab.record.create(path, "", {}) end, "1 to 128 columns", "no columns")
t.error(function() lab.record.create(path, "", { "a", "a" }) end, "twice", "columns differ")

do
  local own = assert(lab.record.create(path, "", { "a" }))
  local closes = setmetatable({}, { __index = function() own:close(); return "1" end })
  t.error(function() own:row(closes) end, "closed", "a row that closes its record")
end

if lab.stat("/dev/full") then
  local full = lab.record.create("/dev/full", "", { "a" })
  t.ok(full == nil, "a full disk is refused")
else
  t.skip("no /dev/full")
end
t.done()
