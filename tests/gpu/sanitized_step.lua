-- A case small enough for compute-sanitizer of the training step's other kernels: embedding, attention,
-- cross-entropy, AdamW; several blocks and tails. Two launches must agree; what is right, the kernels'
-- own tests say.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local against = dofile("tests/lua/against_cpu.lua")
local host, normal = against.host, against.normal

-- On inputs that stay, outputs that start alike.
local function check(op, inputs, outputs, params, variant)
  local spec = { op = op, inputs = inputs, outputs = outputs, params = params, variant = variant }
  local first, second, steady = against.gpu(spec), against.gpu(spec), true
  for name, tensor in pairs(first) do steady = steady and against.same(tensor, second[name]) end
  t.ok(steady, op)
end

local function below(bound, count)
  local random, list = lab.random(count, bound), {}
  for i = 1, count do list[i] = random:below(bound) end
  return host("i32", count):assign(list)
end

for _, dtype in ipairs { "bf16", "fp32" } do
  local ids = below(11, 70)
  check("embedding", { ids = ids, table = normal("fp32", 1, 11, 132) }, { y = host(dtype, 70, 132) })
  check("embedding_backward", { ids = ids, dy = normal(dtype, 2, 70, 132) }, { dtable = normal("fp32", 3, 11, 132) })
  local logits, lse = normal(dtype, 1, 5, 2056), normal("fp32", 2, 5)
  check("cross_entropy", { logits = logits, targets = below(2056, 5) },
    { lse = host("fp32", 5), losses = host("fp32", 5), loss_sum = host("fp32", 1):fill(0) })
  check("cross_entropy_backward", { logits = logits, lse = lse, targets = below(2056, 5) },
    { dlogits = host(dtype, 5, 2056) })
  for _, head_dim in ipairs { 24, 128 } do
    local qkv, o = normal(dtype, 1, 1, 70, 4, head_dim), normal(dtype, 2, 1, 70, 2, head_dim)
    check("attention", { qkv = qkv }, { o = host(dtype, 1, 70, 2, head_dim), lse = host("fp32", 1, 2, 70) }, nil,
      "smxx_plain")
    check("attention_backward", { qkv = qkv, o = o, dout = o, lse = normal("fp32", 3, 1, 2, 70) },
      { dqkv = host(dtype, 1, 70, 4, head_dim) }, nil, "smxx_plain")
  end
end
check("squared_norm", { x = normal("fp32", 1, 70003) }, { sum = host("fp32", 1):fill(0) })
check("adamw", { grad = normal("fp32", 1, 9003), step = host("i32", 1):fill(3),
  norm_squared = host("fp32", 1):fill(9) },
  { param = normal("fp32", 2, 9003), m = normal("fp32", 3, 9003), v = host("fp32", 9003):fill(0.5),
    param_bf16 = host("bf16", 9003) }, { lr = 0.1, max_norm = 1 })

t.done()
