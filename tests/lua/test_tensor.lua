-- Tensors from Lua: creation, values in and out, views, files, and what is refused.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"

local function join(list) return table.concat(list, " ") end

local a = lab.tensor { shape = { 2, 3 } }
t.is(tostring(a), "tensor [2, 3] fp32 cpu", "tostring")
t.is(a.dtype, "fp32", "default dtype")
t.is(join(a.shape), "2 3", "shape")
t.is(a.rank, 2, "rank")
t.is(a.numel, 6, "numel")
t.is(a.bytes, 24, "bytes")
t.is(a.device, lab.device("cpu"), "devices compare")
t.ok(a:get(1, 1) ~= a:get(1, 1), "a fresh tensor holds NaN")
t.is(lab.tensor { shape = 3, dtype = "i32", fill = 7 }:get(3), 7, "fill, and a shape of one size")
a.shape[1] = 99
t.is(a.shape[1], 2, "shape is a fresh list")

t.is(join(a:assign { 1, 2, 3, 4, 5, 6 }:totable()), "1.0 2.0 3.0 4.0 5.0 6.0", "assign and totable")
t.is(a:set(9, 2, 1), a, "set returns the tensor")
t.is(a:get(2, 1), 9.0, "get what was set")
t.error(function() a:get(3, 1) end, "index 1 is 3, outside 1 to 2", "index out of range")
t.error(function() a:get(1) end, "takes 2 indices, not 1", "too few indices")
t.error(function() a:get(1.5, 1) end, "integer", "a fractional index")
t.error(function() a:set("x", 1, 1) end, "number expected", "a text as an element")

local nested = lab.tensor_from("cpu", "i32", { { 1, 2 }, { 3, 4 }, { 5, 6 } })
t.is(join(nested.shape), "3 2", "shape of nested values")
t.is(join(nested:totable()), "1 2 3 4 5 6", "i32 gives integers")
t.is(join(nested:assign_bytes("\0\1\254\255AB", 1):totable()), "0 1 254 255 65 66", "bytes")
t.is(join(nested:view(2, { 3 }):assign_bytes("\0\1\254\255AB", 2):totable()), "1 65279 16706", "and pairs of them")
t.is(join(nested:totable()), "0 1 1 65279 16706 66", "into a view")
t.error(function() nested:assign_bytes("ABC", 1) end, "3 bytes for a tensor of 6 elements, 1 bytes each",
  "too few bytes")
t.error(function() nested:assign_bytes("ABC", 3) end, "expected 1 or 2", "three bytes an element")
t.error(function() a:assign_bytes("ABCDEF", 1) end, "an i32 tensor is expected", "bytes into fp32")
nested:assign { { 1, 2 }, { 3, 4 }, { 5, 6 } }
t.is(join(lab.tensor_from("cpu", "fp64", { 1, 2, 3, 4 }, { 2, 2 }).shape), "2 2", "flat values and a shape")
t.is(lab.tensor_from("cpu", "fp32", {}).numel, 0, "no values")
t.error(function() lab.tensor_from("cpu", "fp32", { { 1, 2 }, { 3 } }) end, "ragged", "ragged values")
t.error(function() lab.tensor_from("cpu", "fp32", { 1, { 2 } }) end, "is a table, not a number", "mixed values")
t.error(function() lab.tensor_from("cpu", "fp32", { 1, 2 }, { 3 }) end, "2 values for a tensor of 3", "count")
t.error(function() lab.tensor_from("cpu", "u8", { 1, 256 }) end, "element 2: 256 does not fit into u8", "range")
t.error(function() nested:assign { 1, 2, 3, 4, 5, 6.5 } end, "element 6: 6.5 does not fit into i32", "fraction")
t.is(nested:get(1, 1), 1, "a failed assign changes nothing")
t.is(lab.tensor_from("cpu", "bf16", { 1.00390625 }):get(1), 1.0, "bf16 rounds to nearest even")

local view = nested:view(2, { 2, 2 })
t.is(join(view:totable()), "3 4 5 6", "view")
view:set(42, 1, 1)
t.is(nested:get(2, 1), 42, "a view shares memory")
t.is(join(nested:rows(2, 3):totable()), "42 4 5 6", "rows")
t.is(nested:rows(2, 1).numel, 0, "no rows")
t.error(function() nested:rows(1, 4) end, "rows 1 to 4 are not in a tensor of 3", "rows out of range")
t.error(function() nested:view(3, { 4 }) end, "does not fit", "a view that does not fit")

local copy = nested:clone()
copy:fill(0)
t.is(nested:get(2, 1), 42, "a clone has its own memory")
t.is(copy:copy(nested):get(2, 1), 42, "copy")
local wide = lab.tensor { dtype = "fp64", shape = { 3, 2 } }
t.is(wide:convert(nested):get(2, 1), 42.0, "convert")
t.error(function() wide:copy(nested) end, "cannot copy", "copy needs the same dtype")
t.error(function() wide:convert(lab.tensor { shape = 5 }) end, "cannot convert", "convert needs as many elements")

local x = lab.tensor { shape = 1000 }:normal { seed = 3, sequence = 1, std = 2 }
local y = lab.tensor { shape = 1000 }:normal { seed = 3, sequence = 1, std = 2 }
t.is(join(x:totable()), join(y:totable()), "the same numbers for the same seed")
local sum, squares = 0, 0
for _, value in ipairs(x:totable()) do sum, squares = sum + value, squares + value * value end
t.ok(math.abs(sum / 1000) < 0.3 and math.abs(squares / 1000 - 4) < 0.6, "mean 0 and variance 4")
local u = lab.tensor { shape = 100, dtype = "fp64" }:uniform { low = 5, high = 6 }:totable()
t.ok(math.min(table.unpack(u)) >= 5 and math.max(table.unpack(u)) < 6, "uniform in its range")
t.ok(lab.tensor { shape = 4, dtype = "u8" }:bits { seed = 1 }:get(1) >= 0, "bits")
t.error(function() x:normal { stdd = 1 } end, "did you mean 'std'", "unknown field of a distribution")
t.error(function() x:normal { seed = "a" } end, "seed must be an integer", "a seed is an integer")

-- Numbers that the dtype cannot hold, and sizes whose product overflows.
local i = lab.tensor { dtype = "i32", shape = 2, fill = 7 }
t.error(function() i:fill(1.5) end, "fill: 1.5 does not fit into i32", "a fraction into i32")
t.error(function() i:fill(2 ^ 31) end, "does not fit into i32", "too large for i32")
t.error(function() i:fill(0 / 0) end, "does not fit into i32", "NaN into i32")
t.error(function() lab.tensor { dtype = "u8", shape = 2, fill = -1 } end, "-1 does not fit into u8", "below u8")
t.is(join(i:totable()), "7 7", "and nothing is written")
t.ok(lab.tensor { dtype = "bf16", shape = 1, fill = 0 / 0 }:get(1) ~= 0, "NaN into a float type")
for _, shape in ipairs { { 1 << 40, 1 << 40 }, { 1 << 32, 1 << 32 }, { -1 << 62, 4 } } do
  t.error(function() lab.tensor_from("cpu", "fp32", {}, shape) end, "more than 2%^63", "an overflowing shape")
end
local endless = setmetatable({}, { __len = function() return 1 << 32 end })
t.error(function() lab.tensor_from("cpu", "fp32", { endless, endless }, { 0 }) end, "values", "endless values")

local folder <close> = t.folder()
t.is(nested:save(folder / "n.npy"), true, "save")
local back = lab.load(folder / "n.npy", "cpu")
t.is(tostring(back), "tensor [3, 2] i32 cpu", "load")
t.is(join(back:totable()), join(nested:totable()), "load what was saved")
local _, written = nested:save(folder / "n.npy")
local into = lab.tensor { dtype = "i32", shape = { 6 } }
local loaded, read = into:load(folder / "n.npy")
t.ok(loaded and read == written and #read == 16, "load into a tensor, with the checksum that save gave")
t.is(join(into:totable()), join(nested:totable()), "and the same elements")
local refused, reason, kind = into:view(0, { 5 }):load(folder / "n.npy")
t.ok(refused == nil and kind == "format" and reason:find("holds 6 elements of i32, no [5] i32", 1, true),
  "a file of another size")
t.ok(lab.sync(folder / "n.npy") and lab.sync(folder / "."), "sync of a file and of a folder")
refused, reason, kind = lab.sync(folder / "absent")
t.ok(refused == nil and kind == "io" and reason:find("absent", 1, true), "of nothing")
local nothing, message, code = lab.load(folder / "absent.npy")
t.ok(nothing == nil and message:find("absent.npy", 1, true) and code == "io", "an absent file")
nothing, message, code = nested:save(folder / "no/n.npy")
t.ok(nothing == nil and message:find("no/n.npy", 1, true) and code == "io", "an absent folder")
t.write(folder / "bad.npy", "no numpy")
nothing, message, code = lab.load(folder / "bad.npy")
t.ok(nothing == nil and message:find("bad.npy", 1, true) and code == "format", "no .npy file")

nothing, message, code = lab.device("cuda:77")
t.ok(nothing == nil and message:find("cuda:77", 1, true) and code == "unsupported", "an absent device")
t.error(function() lab.device("gpu") end, "unknown device 'gpu'", "an unknown device")
nothing, message, code = lab.tensor { shape = { 1 << 20, 1 << 30 }, dtype = "u8" }
t.ok(nothing == nil and message:find("1125899906842624") and code == "memory", "memory that is refused")
t.error(function() lab.tensor { shape = { 2, -1 } } end, "negative", "a negative size")
t.error(function() lab.tensor { shape = { 2, "x" } } end, "size 2 of a shape must be an integer", "a size that is none")
t.error(function() lab.tensor { dtype = "fp32" } end, "shape must be a list", "no shape")
t.error(function() lab.tensor { shape = 2, dtype = "fp23" } end, "fp23.*fp32", "an unknown dtype lists the known ones")
t.error(function() lab.tensor { shpe = 2 } end, "did you mean 'shape'", "an unknown field")
t.error(function() return a.shap end, "unknown tensor field 'shap'; did you mean 'shape'", "an unknown attribute")

x:close()
x:close()
t.error(function() return x.numel end, "closed", "a closed tensor")
t.is(tostring(x), "tensor (closed)", "tostring of a closed tensor")
do
  local source = lab.tensor { shape = 4, fill = 3 }
  local kept = source:view(1, { 2 })
  source:close()
  collectgarbage()
  t.is(kept:get(1), 3.0, "a view outlives its source")
end

local before = collectgarbage("count")
for _ = 1, 2000 do lab.tensor { shape = 250000 } end -- 2 GB in all
t.ok(collectgarbage("count") < before + 10000, "forgotten tensors are collected on the way")

local start, stop = lab.device("cpu"):event(), lab.device("cpu"):event()
t.error(function() start:elapsed_us(stop) end, "never recorded", "events must be recorded")
start:record()
lab.sleep(0.01)
stop:record()
t.ok(start:elapsed_us(stop) >= 9000, "elapsed_us")
local stream = lab.device("cpu"):stream()
stream:synchronize()
stream:close()
t.error(function() stream:synchronize() end, "closed", "a closed stream")
t.is(lab.devices()[1].name, "cpu", "devices")
t.done()
