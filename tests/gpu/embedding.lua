-- embedding and embedding_backward on the GPU: the forward rows are copies, the sums those of the CPU
-- in fp32, bit for bit.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local against = dofile("tests/lua/against_cpu.lua")
local host, normal = against.host, against.normal

-- How ids are drawn: all over the vocabulary, mostly one id, or that one only.
local function ids_of(tokens, vocab, draw)
  local random, list = lab.random(tokens, vocab), {}
  for i = 1, tokens do
    local id = random:below(vocab)
    if draw == "one" or draw == "skewed" and random:below(4) > 0 then id = vocab // 3 end
    list[i] = id
  end
  return host("i32", tokens):assign(list)
end

-- What the CPU computes in fp32 on the same values.
local function on_cpu(op, args)
  args.op, args.variant = op, "cpu_plain"
  lab.check(lab.plan(args)):launch()
end

local function check(dtype, tokens, d, vocab, draw)
  local name = ("%s, %d tokens x %d of %d, %s"):format(dtype, tokens, d, vocab, draw)
  local ids, table, dtable = ids_of(tokens, vocab, draw), normal("fp32", 1, vocab, d), normal("fp32", 2, vocab, d)
  local gpu, _, steady = against.both { op = "embedding", inputs = { ids = ids, table = table },
    outputs = { y = host(dtype, tokens, d) } }
  local rows = host("fp32", tokens, d)
  on_cpu("embedding", { ids = ids, table = table, y = rows })
  t.ok(steady and against.same(gpu.y, host(dtype, tokens, d):convert(rows)), "embedding: " .. name)

  local dy = normal(dtype, 3, tokens, d)
  gpu, _, steady = against.both { op = "embedding_backward", inputs = { ids = ids, dy = dy },
    outputs = { dtable = dtable } }
  local sums = dtable:clone()
  on_cpu("embedding_backward", { ids = ids, dy = host("fp32", tokens, d):convert(dy), dtable = sums })
  t.ok(steady and against.same(gpu.dtable, sums), "embedding_backward: " .. name)
end

for _, dtype in ipairs { "bf16", "fp32" } do
  check(dtype, 1, 4, 1, "even")
  check(dtype, 0, 64, 5, "even")
  check(dtype, 37, 132, 7, "even")
  check(dtype, 300, 192, 256, "skewed")
  check(dtype, 1025, 8, 70, "one")
  check(dtype, 2049, 260, 3000, "skewed")
end

do -- ids out of range
  local ids = host("i32", 4):assign { 1, -1, 3, 9 }
  local gpu = against.gpu { op = "embedding", inputs = { ids = ids, table = normal("fp32", 1, 4, 8) },
    outputs = { y = host("fp32", 4, 8) } }
  local y = gpu.y:totable()
  t.ok(y[1] == y[1] and y[9] ~= y[9] and y[17] == y[17] and y[25] ~= y[25], "an id out of range gives NaN")
  gpu = against.gpu { op = "embedding_backward", inputs = { ids = ids, dy = host("fp32", 4, 8):fill(1) },
    outputs = { dtable = host("fp32", 4, 8):fill(0) } }
  local total = 0
  for _, value in ipairs(gpu.dtable:totable()) do total = total + value end
  t.is(total, 16, "and adds nothing")
end
t.done()
