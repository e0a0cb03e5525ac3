-- cross_entropy and cross_entropy_backward on the GPU against the CPU in fp64.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local against = dofile("tests/lua/against_cpu.lua")
local host, normal, near = against.host, against.normal, against.near

local function targets_of(tokens, vocab)
  local random, list = lab.random(tokens, vocab), {}
  for i = 1, tokens do list[i] = random:below(vocab + 1) - 1 end -- -1: ignored
  return host("i32", tokens):assign(list)
end

-- The short exponential of bf16 is off by some 2^-21, times the distance to the top.
local ABSOLUTE = { bf16 = 2 ^ -17, fp32 = 2 ^ -20 }

local function check(dtype, tokens, vocab, spread)
  local name = ("%s, %d x %d, spread %g"):format(dtype, tokens, vocab, spread)
  local logits = host(dtype, tokens, vocab):normal { std = spread, seed = 1 }
  local targets = targets_of(tokens, vocab)
  local gpu, reference, steady = against.both { op = "cross_entropy", inputs = { logits = logits, targets = targets },
    outputs = { lse = host("fp32", tokens), losses = host("fp32", tokens), loss_sum = host("fp32", 1):fill(3) },
    params = { scale = 0.25 } }
  local good, text = near(gpu.lse, reference.lse, ABSOLUTE[dtype])
  t.ok(good and steady, "lse: " .. name .. text)
  good, text = near(gpu.losses, reference.losses, ABSOLUTE[dtype], 2 ^ -22)
  t.ok(good, "losses: " .. name .. text)
  good, text = near(gpu.loss_sum, reference.loss_sum, ABSOLUTE[dtype], 2 ^ -18)
  t.ok(good, "loss_sum: " .. name .. text)

  gpu, reference, steady = against.both { op = "cross_entropy_backward",
    inputs = { logits = logits, targets = targets, lse = gpu.lse }, outputs = { dlogits = host(dtype, tokens, vocab) },
    params = { scale = 0.25 } }
  good, text = near(gpu.dlogits, reference.dlogits, 2 ^ -22, 2 ^ -16)
  t.ok(good and steady, "dlogits: " .. name .. text)
end

for _, dtype in ipairs { "bf16", "fp32" } do
  check(dtype, 1, 8, 1)
  check(dtype, 0, 64, 1)
  check(dtype, 7, 264, 3)
  check(dtype, 129, 256, 1)
  check(dtype, 5, 20008, 20)
  check(dtype, 3, 65536, 2)
end

do -- in place, and what is out of the ordinary
  local function gpu(source)
    return lab.check(lab.tensor { device = against.device, dtype = source.dtype, shape = source.shape }):copy(source)
  end
  local logits, targets, lse = normal("bf16", 1, 33, 264), targets_of(33, 264), normal("fp32", 2, 33)
  local apart = against.gpu { op = "cross_entropy_backward", inputs = { logits = logits, targets = targets, lse = lse },
    outputs = { dlogits = host("bf16", 33, 264) } }
  local both = gpu(logits)
  lab.check(lab.plan { op = "cross_entropy_backward", variant = against.variant, logits = both, targets = gpu(targets),
    lse = gpu(lse), dlogits = both }):launch()
  t.ok(against.same(both, apart.dlogits), "dlogits may be logits itself")

  local wild = normal("fp32", 1, 3, 8)
  wild:set(0 / 0, 1, 3)
  wild:set(math.huge, 2, 5)
  local odd = against.gpu { op = "cross_entropy",
    inputs = { logits = wild, targets = host("i32", 3):assign { 0, 0, 8 } },
    outputs = { lse = host("fp32", 3), losses = host("fp32", 3), loss_sum = host("fp32", 1):fill(0) } }
  local lse_list, losses = odd.lse:totable(), odd.losses:totable()
  t.ok(lse_list[1] ~= lse_list[1] and not (lse_list[2] < math.huge), "NaN and infinite logits show")
  t.ok(lse_list[3] == lse_list[3] and losses[3] ~= losses[3], "a target out of range makes its loss NaN")

  local legal, reason = lab.legal { op = "cross_entropy_backward", variant = against.variant,
    logits = gpu(host("bf16", 2, 12)), targets = gpu(host("i32", 2)), lse = gpu(host("fp32", 2)),
    dlogits = gpu(host("bf16", 2, 12)) }
  t.ok(not legal and reason:find "multiple of 8", "a vocabulary of 12 in bf16 is refused")
end
t.done()
