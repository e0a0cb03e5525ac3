-- combine and combine_backward on the GPU against the CPU in fp64.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local against = dofile("tests/lua/against_cpu.lua")
local routes = dofile("tests/lua/routes.lua")
local host, normal = against.host, against.normal

local function weights_of(route)
  return host("fp32", route.tokens, route.top_k):uniform { low = -1, high = 1, seed = 5 }
end

local function check(case, d, dtype, row_dtype, align)
  local route = routes.route(case, align, 5)
  local name = ("%s, d %d, %s%s, align %d"):format(case.name, d, dtype,
    row_dtype ~= dtype and " beside " .. row_dtype or "", align)
  local tokens, used, rows = route.tokens, route.used, route.rows
  for _, shared in ipairs { false, true } do
    local gpu, reference, steady = against.both { op = "combine", outputs = { y = host(dtype, tokens, d) }, inputs = {
      x = normal(row_dtype, 1, rows, d), slot_rows = route.slot_rows, weights = weights_of(route),
      shared = shared and normal(dtype, 2, tokens, d) or nil } }
    -- top_k additions of terms below 8.
    local good, text = against.near(gpu.y, reference.y, (route.top_k + 1) ^ 2 * 8 * 2 ^ -24)
    t.ok(good and steady, ("combine: %s%s%s"):format(name, shared and ", shared" or "", text))
  end

  local dx = host(row_dtype, rows, d)
  local gpu, reference, steady = against.both { op = "combine_backward",
    outputs = { dx = dx, dweights = host("fp32", tokens, route.top_k) }, inputs = {
      dy = normal(dtype, 3, tokens, d), x = normal(row_dtype, 1, rows, d), row_slots = route.row_slots,
      slot_rows = route.slot_rows, weights = weights_of(route), group_offsets = route.group_offsets } }
  local good, text = true, ""
  if used > 0 then good, text = against.near(gpu.dx:rows(1, used), reference.dx:rows(1, used)) end
  t.ok(good and steady, ("combine_backward: %s, dx%s"):format(name, text))
  t.ok(against.untouched(gpu.dx, dx, used), ("combine_backward: %s, the rest as it was"):format(name))
  -- A lane's d / 32 products one after the other, then five additions; their magnitudes add up to d.
  good, text = against.near(gpu.dweights, reference.dweights, d * (d / 32 + 13) * 2 ^ -24)
  t.ok(good, ("combine_backward: %s, dweights%s"):format(name, text))
end

routes.sweep(check)

-- --- in place ------------------------------------------------------------------------------------

local function gpu(source)
  return lab.check(lab.tensor { device = against.device, dtype = source.dtype, shape = source.shape }):copy(source)
end

do
  local route, d = routes.route(routes.cases()[1], 128), 264
  local inputs = { dy = normal("bf16", 3, route.tokens, d), x = normal("bf16", 1, route.rows, d),
    row_slots = route.row_slots, slot_rows = route.slot_rows, weights = weights_of(route),
    group_offsets = route.group_offsets }
  local outputs = { dx = host("bf16", route.rows, d), dweights = host("fp32", route.tokens, route.top_k) }
  local apart = against.gpu { op = "combine_backward", inputs = inputs, outputs = outputs }
  local args = { op = "combine_backward", variant = against.variant, dweights = gpu(outputs.dweights) }
  for name, tensor in pairs(inputs) do args[name] = gpu(tensor) end
  args.dx = args.x
  lab.check(lab.plan(args)):launch()
  t.ok(against.same(args.dx, apart.dx) and against.same(args.dweights, apart.dweights), "dx may be x itself")

  inputs = { x = inputs.x, slot_rows = inputs.slot_rows, weights = inputs.weights,
    shared = normal("bf16", 2, route.tokens, d) }
  apart = against.gpu { op = "combine", inputs = inputs, outputs = { y = host("bf16", route.tokens, d) } }
  args = { op = "combine", variant = against.variant }
  for name, tensor in pairs(inputs) do args[name] = gpu(tensor) end
  args.y = args.shared
  lab.check(lab.plan(args)):launch()
  t.ok(against.same(args.y, apart.y), "shared may be y itself")
end
t.done()
