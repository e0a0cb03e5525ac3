-- Plans: binding by name, launches, life time of the tensors, and mistakes.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"

local function gemm_args(m, n, k)
  return { op = "gemm", variant = "cpu_plain",
    a = lab.tensor { shape = { m, k } }:normal { seed = 1, sequence = 1 },
    b = lab.tensor { shape = { n, k } }:normal { seed = 1, sequence = 2 },
    d = lab.tensor { shape = { m, n } } }
end

local function changed(args, changes)
  local copy = {}
  for key, value in pairs(args) do copy[key] = value end
  for key, value in pairs(changes) do copy[key] = value end
  return copy
end

local args = gemm_args(4, 5, 3)
local plan = lab.plan(args)
t.is(tostring(plan), "plan gemm/cpu_plain cpu", "tostring")
t.is(plan.op, "gemm", "op")
t.is(plan.variant, "cpu_plain", "variant")
t.is(plan.device, lab.device("cpu"), "device")
t.is(plan:flops(), 120.0, "flops")
t.is(plan:bytes(), 4.0 * (12 + 15 + 20), "bytes")
t.is(plan:workspace(), 0, "workspace")
t.is(type(plan:tunables()), "table", "tunables")

plan:launch()
local worst = 0
for i = 1, 4 do
  for j = 1, 5 do
    local sum = 0
    for k = 1, 3 do sum = sum + args.a:get(i, k) * args.b:get(j, k) end
    worst = math.max(worst, math.abs(sum - args.d:get(i, j)))
  end
end
t.ok(worst < 1e-5, "the product is right")

local fresh = setmetatable({}, { __index = function(_, key) -- each name is a new text
  collectgarbage()
  return args[key] and type(args[key]) == "string" and table.concat { args[key] } or args[key]
end })
t.is(tostring(lab.plan(fresh)), "plan gemm/cpu_plain cpu", "names from a metamethod")

local first = args.d:clone()
lab.plan(changed(args, { beta = 1 })):launch()
t.ok(math.abs(args.d:get(1, 1) - 2 * first:get(1, 1)) < 1e-5, "parameters share the table")
local stream = lab.device("cpu"):stream()
plan:launch(stream)
t.ok(lab.compare(args.d, first).pass, "a launch on a stream, with the same bits")

t.error(function() lab.plan(changed(args, { dd = args.d })) end, "unknown gemm field 'dd'; did you mean 'd'",
  "an unknown key names the nearest")
t.error(function() lab.plan(changed(args, { op = "gem" })) end, "did you mean 'gemm'", "an unknown operation")
t.error(function() lab.plan(changed(args, { variant = "cpu_plan" })) end, "cpu_plain", "an unknown variant")
t.error(function() lab.plan { a = 1 } end, "a plan needs op", "no operation")
t.error(function() lab.plan { op = "gemm" } end, "a plan needs variant", "no variant")
t.error(function() lab.plan(changed(args, { a = 3 })) end, "'a' must be a tensor, not a number", "no tensor")
t.error(function() lab.plan { op = "gemm", variant = "cpu_plain", a = args.a, b = args.b } end,
  "argument 'd'.*missing", "an argument is missing")
t.error(function() lab.plan(changed(args, { a = lab.tensor { shape = { 4, 4 } } })) end, "dimension",
  "a dimension that disagrees")
do
  local x = lab.tensor { shape = { 5, 5 }, fill = 1 }
  t.error(function() lab.plan { op = "gemm", variant = "cpu_plain", a = x, b = x, d = x } end,
    "gemm: input and output 'd' overlaps input 'a'; give it memory of its own", "an output on an input")
  local norm = { op = "rmsnorm", variant = "cpu_plain", x = x, residual = lab.tensor { shape = { 5, 5 }, fill = 1 },
    weight = lab.tensor { shape = 5, fill = 1 }, y = lab.tensor { shape = { 5, 5 } }, rstd = lab.tensor { shape = 5 } }
  t.is(lab.legal(changed(norm, { sum = x })), true, "an output in the place of an input, as its operation allows")
  t.error(function() lab.plan(changed(norm, { sum = norm.y })) end, "output 'y' overlaps output 'sum'", "two outputs")
  t.error(function() lab.plan(changed(norm, { sum = x, y = x })) end, "output 'y' overlaps input 'x'",
    "another output in that place")
end
t.error(function() lab.plan(changed(args, { layout = "xx" })) end, "choices are: nt nn tn", "an unknown choice")
t.error(function() lab.plan(changed(args, { layout = 1 })) end, "'layout' must be a string", "a choice is a string")
t.error(function() lab.plan(changed(args, { beta = "1" })) end, "'beta' must be a number", "beta is a number")
t.error(function() lab.plan(changed(args, { tunables = { nope = 1 } })) end, "nope", "an unknown tunable")
t.error(function() lab.plan(changed(args, { tunables = { 1 } })) end, "named", "tunables are named")
t.error(function() plan:set_tunable("nope", 1) end, "nope", "setting an unknown tunable")
t.error(function() plan:launch(3) end, "tilelab.stream expected", "a stream is a stream")
for _, count in ipairs { -1, 0, math.mininteger } do
  t.error(function() plan:launch(nil, count) end, "a count of launches is at least 1", "no launch is no launch")
end
t.error(function() plan:launch(nil, 1.5) end, "number has no integer representation", "half a launch")
t.error(function() plan:launch(nil, "twice") end, "number expected", "a count in words")
do
  local sum = lab.tensor { shape = { 4, 5 }, fill = 0 }
  lab.plan(changed(args, { d = sum, beta = 1 })):launch(nil, 3)
  t.ok(math.abs(sum:get(1, 1) - 3 * first:get(1, 1)) < 1e-5, "three launches")
end
t.error(function() return plan.opp end, "unknown plan field 'opp'; did you mean 'op'", "an unknown attribute")
t.is(type(plan:tune()), "table", "tune")

t.is(lab.legal(args), true, "legal")
local offsets = lab.tensor_from("cpu", "i32", { 0, 3, 256 })
local grouped = { op = "m_grouped_gemm", variant = "cpu_padded", group_offsets = offsets,
  a = lab.tensor { shape = { 256, 8 }, fill = 1 }, b = lab.tensor { shape = { 2, 4, 8 }, fill = 1 },
  d = lab.tensor { shape = { 256, 4 } },
  row_experts = lab.tensor { dtype = "i32", shape = 256, fill = 0 },
  counts_host = lab.tensor { dtype = "i32", shape = 2, fill = 0 } }
local padded = lab.plan(grouped)
t.error(function() padded:launch() end, "128", "what only the offsets' values show is refused by the launch")
local wide = { op = "attention", variant = "cpu_plain", qkv = lab.tensor { shape = { 1, 2, 3, 4096 } },
  o = lab.tensor { shape = { 1, 2, 1, 4096 } }, lse = lab.tensor { shape = { 1, 1, 2 } } }
local refused, reason, code = lab.plan(wide)
t.ok(refused == nil and code == "illegal" and reason:find("head_dim is 4096"), "an illegal plan is refused")
local legal, why = lab.legal(wide)
t.ok(legal == false and why == reason, "legal says why")
local index = lab.plan { op = "permute_index", variant = "cpu_plain",
  experts = lab.tensor { dtype = "i32", shape = { 4, 1 } }:assign { 1, 0, 1, 1 },
  group_offsets = lab.tensor { dtype = "i32", shape = 3 }, row_slots = lab.tensor { dtype = "i32", shape = 4 },
  slot_rows = lab.tensor { dtype = "i32", shape = { 4, 1 } }, row_experts = lab.tensor { dtype = "i32", shape = 4 } }
t.ok(index:workspace() > 0, "a plan that needs workspace")
index:launch()
t.ok(true, "has it")

do -- shared workspaces
  local pool, dqkv = {}, {}
  local function backward(sequence)
    local shape = { 1, sequence, 2, 8 }
    local own = { op = "attention_backward", variant = "cpu_plain", dout = lab.tensor { shape = shape, fill = 1 },
      qkv = lab.tensor { shape = { 1, sequence, 6, 8 } }:normal { seed = sequence },
      o = lab.tensor { shape = shape, fill = 1 }, lse = lab.tensor { shape = { 1, 2, sequence }, fill = 2 },
      dqkv = lab.tensor { shape = { 1, sequence, 6, 8 } } }
    lab.plan(own):launch()
    local alone = own.dqkv:clone()
    own.workspaces = pool
    lab.plan(own):launch()
    return lab.compare(own.dqkv, alone).mismatched_bits == 0
  end
  t.ok(backward(5) and backward(5) and backward(9), "plans that share a workspace give what each gives alone")
  local sizes = {}
  for bytes, tensor in pairs(pool) do sizes[#sizes + 1] = bytes == tensor.bytes and bytes end
  table.sort(sizes)
  t.is(table.concat(sizes, " "), "40 72", "one workspace for each size")
  lab.plan(changed(grouped, { workspaces = dqkv }))
  t.is(next(dqkv), nil, "none of a kernel that keeps something in it")
  t.error(function() lab.plan(changed(args, { workspaces = 1 })) end, "workspaces must be a table", "no table")
  t.is(lab.plan(args):algorithm(), nil, "a kernel of this project has no library's algorithm")
end
t.error(function() lab.legal(changed(args, { dd = 1 })) end, "unknown gemm field", "legal raises mistakes")
local names = {}
for _, operation in ipairs(lab.operations()) do names[operation.name] = operation end
t.is(names.gemm.args[1].name, "a", "operations list their arguments")
t.is(names.gemm.args[1].role, "in", "with roles")
t.is(names.gemm.params[1].choices[1], "nt", "and choices")
t.is(names.gemm.params[1].default, "nt", "and defaults")
t.is(table.concat(names.gemm.dims, " "), "m n k", "and dimensions")
t.is(lab.kernels("gemm")[1].variant, "cpu_plain", "kernels of an operation")
t.is(table.concat(lab.kernels("gemm")[1].dtypes, " "), "fp64 fp32 bf16", "dtypes a kernel computes on")
t.is(table.concat(lab.kernels("rope")[1].dtypes, " "), "fp64 fp32", "those of an operation without bf16")
t.error(function() lab.kernels("gem") end, "did you mean 'gemm'", "kernels of an unknown operation")

local bound = lab.plan(gemm_args(64, 64, 64)) -- nobody else holds these tensors
collectgarbage()
collectgarbage()
bound:launch()
t.ok(true, "a plan keeps its tensors' memory")
args.a:close()
plan:launch()
t.ok(lab.compare(args.d, first).pass, "even of tensors that were closed")
plan:close()
plan:close()
t.error(function() plan:launch() end, "this plan is closed", "a closed plan")
t.done()
