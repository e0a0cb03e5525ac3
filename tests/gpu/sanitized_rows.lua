-- A case small enough for compute-sanitizer of every kernel that is bound by memory: several blocks,
-- tails, an empty group, pad rows. Two launches must agree; what is right, the kernels' own tests say.

local t = dofile("tests/lua/tap.lua")
local against = dofile("tests/lua/against_cpu.lua")
local routes = dofile("tests/lua/routes.lua")
local host, normal = against.host, against.normal

local function check(op, inputs, outputs, params, variant)
  local _, _, steady = against.both { op = op, inputs = inputs, outputs = outputs, params = params, variant = variant }
  t.ok(steady, op)
end

local route = routes.route({ tokens = 37, top_k = 9, num_experts = 6, draw = "few" }, 128, 70)
local tokens, top_k, rows = route.tokens, route.top_k, route.rows

for _, dtype in ipairs { "bf16", "fp32" } do
  for _, d in ipairs { 264, 3080 } do
    local x, weight, rstd = normal(dtype, 1, tokens, d), normal("fp32", 2, d), host("fp32", tokens):fill(0.9)
    check("rmsnorm", { x = x, residual = x, weight = weight }, { y = host(dtype, tokens, d),
      rstd = host("fp32", tokens), sum = host(dtype, tokens, d) })
    check("rmsnorm_backward", { dy = x, x = x, weight = weight, rstd = rstd, dsum = x },
      { dx = host(dtype, tokens, d), dweight = normal("fp32", 3, d) })
  end
  check("convert", { x = normal(dtype, 1, 5001) }, { y = host(dtype == "bf16" and "fp32" or "bf16", 5001) })
  check("rope", {}, { qkv = normal(dtype, 1, 3, 5, 7, 48) }, { rotated_heads = 6 })
  local z, offsets = normal(dtype, 1, rows, 144), route.group_offsets
  check("swiglu", { x = z, group_offsets = offsets }, { y = host(dtype, rows, 72) })
  check("swiglu_backward", { x = z, dy = normal(dtype, 2, rows, 72), group_offsets = offsets },
    { dx = host(dtype, rows, 144) })
  local x, slots = normal(dtype, 1, tokens, 264), host("fp32", tokens, top_k):fill(0.5)
  check("permute", { x = x, row_slots = route.row_slots, slot_rows = route.slot_rows, group_offsets = offsets },
    { y = host("bf16", rows, 264) })
  local y = normal("bf16", 4, rows, 264)
  check("permute_backward", { dy = y, slot_rows = route.slot_rows }, { dx = x:clone() }, { beta = 1 })
  check("combine", { x = y, slot_rows = route.slot_rows, weights = slots, shared = x },
    { y = host(dtype, tokens, 264) })
  check("combine_backward", { dy = x, x = y, row_slots = route.row_slots, slot_rows = route.slot_rows,
    weights = slots, group_offsets = offsets }, { dx = host("bf16", rows, 264),
    dweights = host("fp32", tokens, top_k) })
  local logits, forced = normal(dtype, 5, 77, 40), host("i32", 77, 3):fill(7)
  for _, choice in ipairs { false, forced } do
    check("router", { logits = logits, forced = choice or nil }, { probs = host("fp32", 77, 40),
      experts = host("i32", 77, 3), weights = host("fp32", 77, 3), load = host("i32", 40),
      aux = host("fp32", 1):fill(0) }, nil, "smxx_warp")
  end
  check("router_backward", { probs = normal("fp32", 6, 77, 40), experts = forced, weights = normal("fp32", 7, 77, 3),
    dweights = normal("fp32", 8, 77, 3), load = host("i32", 40):fill(3) }, { dlogits = host(dtype, 77, 40) }, nil,
    "smxx_warp")
end
check("permute_index", { experts = route.experts }, routes.index_outputs(route), { align = 128 }, "smxx_sort")
local long = routes.route({ tokens = 300, top_k = 8, num_experts = 40 }, 1)
check("permute_index", { experts = long.experts }, routes.index_outputs(long), nil, "smxx_sort")

t.done()
