-- The kernels of the training step that memory bounds, at the shapes of 30b-a3b: for each a function that
-- makes its arguments for any number of tokens.

local lab = require "tilelab"

-- Of 30b-a3b; t tokens make t * TOP_K rows of the experts' layout.
local D, HEADS, KV_HEADS, HEAD_DIM, EXPERTS, TOP_K, EXPERT_FFN, VOCABULARY = 3072, 24, 4, 128, 128, 8, 1280, 65536
local PARAMETERS = 1 << 14 -- of AdamW, for each token: 2^28 for 16 384

local cases = {}

-- --- tensors ------------------------------------------------------------------------------------

-- Random numbers that arguments are views of: kernels take as long on any, and filling anew would take longer
-- than all measurements. Outputs lie in it too.
local Pool = {}
Pool.__index = Pool

local TILE = 1 << 22

-- Rows of the embedding: fewer beside few tokens, for the reference's sake.
local function table_rows(tokens) return tokens < 4096 and 1024 or VOCABULARY end

function cases.pool(device, tokens)
  local slack = 1 << 22
  local numel = { -- what the largest case takes, and the largest copy
    fp32 = 9 * PARAMETERS * tokens + table_rows(tokens) * D + slack,
    bf16 = (VOCABULARY + 1024) * tokens + 3 * EXPERTS * 128 * D + slack }
  return setmetatable({ device = device, numel = numel, flat = {}, used = {}, index = {} }, Pool)
end

-- Writes the first `count` elements anew: what kernels left there may be no numbers to compute with.
local function randomise(flat, count)
  local first = math.min(TILE, flat.numel)
  flat:view(0, { first }):normal { seed = 1 }
  for from = first, count - 1, first do
    local length = math.min(first, flat.numel - from)
    flat:view(from, { length }):copy(flat:view(0, { length }))
  end
end

-- A random tensor.
function Pool:normal(dtype, ...)
  local count, flat = 1, self.flat[dtype]
  for _, size in ipairs { ... } do count = count * size end
  if not flat then
    flat = lab.check(lab.tensor { device = self.device, dtype = dtype, shape = { self.numel[dtype] }, fill = 0 })
    self.flat[dtype], self.used[dtype] = flat, 0
    randomise(flat, flat.numel)
  end
  local first = self.used[dtype]
  if first + count > flat.numel then
    error(("the pool of %s has %d elements, and %d are asked for"):format(dtype, flat.numel, first + count), 2)
  end
  self.used[dtype] = first + (count + 127) // 128 * 128
  return flat:view(first, { ... })
end

-- Makes all of it available again, and random.
function Pool:reset()
  for dtype, flat in pairs(self.flat) do
    if self.used[dtype] > 0 then randomise(flat, math.min(self.used[dtype], flat.numel)) end
    self.used[dtype] = 0
  end
end

-- A tensor of its own, with poison or `fill` in it.
function Pool:own(dtype, fill, ...)
  return lab.check(lab.tensor { device = self.device, dtype = dtype, shape = { ... }, fill = fill })
end

-- Each token's distinct experts, drawn uniformly.
local function draw(tokens)
  local random, list = lab.random(1), {}
  for t = 0, tokens - 1 do
    local seen = {}
    for j = 1, TOP_K do
      local expert
      repeat expert = random:below(EXPERTS) until not seen[expert]
      seen[expert], list[t * TOP_K + j] = true, expert
    end
  end
  return list
end

-- Which rows of the experts' layout the slots are, made once for each size.
local function index_of(pool, tokens, align)
  local key = tokens .. " " .. align
  local made = pool.index[key]
  if made then return made end
  local rows = tokens * TOP_K + (align > 1 and EXPERTS * align or 0)
  made = { rows = rows, args = { op = "permute_index", variant = "smxx_sort", align = align,
    experts = lab.check(lab.tensor_from(pool.device, "i32", draw(tokens))):view(0, { tokens, TOP_K }),
    group_offsets = pool:own("i32", 0, EXPERTS + 1), row_slots = pool:own("i32", 0, rows),
    slot_rows = pool:own("i32", 0, tokens, TOP_K), row_experts = pool:own("i32", 0, rows) } }
  for key_of, value in pairs(made.args) do made[key_of] = value end
  lab.check(lab.plan(made.args)):launch()
  pool.index[key] = made
  return made
end

-- --- cases --------------------------------------------------------------------------------------

local V = "smxx_vec16"

local function norms(add, a)
  add("rmsnorm", "with residual", a, function(p, t)
    return { x = p:normal(a, t, D), residual = p:normal(a, t, D), weight = p:own("fp32", 1, D), y = p:normal(a, t, D),
      rstd = p:own("fp32", 0, t), sum = p:normal(a, t, D) }
  end)
  add("rmsnorm", "first of the model", a, function(p, t)
    return { x = p:normal(a, t, D), weight = p:own("fp32", 1, D), y = p:normal(a, t, D), rstd = p:own("fp32", 0, t) }
  end)
  add("rmsnorm_backward", "adds to the stream", a, function(p, t)
    local stream = p:normal(a, t, D)
    return { dy = p:normal(a, t, D), x = p:normal(a, t, D), weight = p:own("fp32", 1, D), rstd = p:own("fp32", 1, t),
      dsum = stream, dx = stream, dweight = p:own("fp32", 0, D) }
  end)
end

local function row_wise(add, a)
  add("rope", "queries and keys", a, function(p, t)
    local sequences = t > 4096 and 4 or 1
    return { qkv = p:normal(a, sequences, t // sequences, HEADS + 2 * KV_HEADS, HEAD_DIM),
      rotated_heads = HEADS + KV_HEADS }
  end)
  add("swiglu", "shared expert", a, function(p, t)
    return { x = p:normal(a, t, 2 * EXPERT_FFN), y = p:normal(a, t, EXPERT_FFN) }
  end)
  add("swiglu_backward", "shared expert", a, function(p, t)
    return { x = p:normal(a, t, 2 * EXPERT_FFN), dy = p:normal(a, t, EXPERT_FFN), dx = p:normal(a, t, 2 * EXPERT_FFN) }
  end)
end

local function expert_rows(add)
  add("swiglu", "experts", "bf16", function(p, t)
    return { x = p:normal("bf16", t * TOP_K, 2 * EXPERT_FFN), y = p:normal("bf16", t * TOP_K, EXPERT_FFN),
      group_offsets = index_of(p, t, 1).group_offsets }
  end)
  add("swiglu_backward", "experts", "bf16", function(p, t)
    local r = t * TOP_K
    return { x = p:normal("bf16", r, 2 * EXPERT_FFN), dy = p:normal("bf16", r, EXPERT_FFN),
      dx = p:normal("bf16", r, 2 * EXPERT_FFN), group_offsets = index_of(p, t, 1).group_offsets }
  end)
end

-- Between tokens of type `a` and rows of the experts in bf16.
local function permutes(add, a, align)
  local case = align == 1 and "tight" or "aligned to 128"
  add("permute", case, a, function(p, t)
    local i = index_of(p, t, align)
    return { x = p:normal(a, t, D), row_slots = i.row_slots, slot_rows = i.slot_rows, group_offsets = i.group_offsets,
      y = p:normal("bf16", i.rows, D) }
  end)
  add("permute_backward", case, a, function(p, t)
    local i = index_of(p, t, align)
    return { dy = p:normal("bf16", i.rows, D), slot_rows = i.slot_rows, dx = p:normal(a, t, D), beta = 1 }
  end)
  add("combine", case, a, function(p, t)
    local i = index_of(p, t, align)
    return { x = p:normal("bf16", i.rows, D), slot_rows = i.slot_rows, weights = p:normal("fp32", t, TOP_K),
      shared = p:normal(a, t, D), y = p:normal(a, t, D) }
  end)
  add("combine_backward", case, a, function(p, t)
    local i = index_of(p, t, align)
    return { dy = p:normal(a, t, D), x = p:normal("bf16", i.rows, D), row_slots = i.row_slots, slot_rows = i.slot_rows,
      weights = p:normal("fp32", t, TOP_K), group_offsets = i.group_offsets, dx = p:normal("bf16", i.rows, D),
      dweights = p:own("fp32", 0, t, TOP_K) }
  end)
end

local function targets(p, t, vocabulary)
  local random, list = lab.random(2), {}
  for i = 1, t do list[i] = random:below(vocabulary) end
  return lab.check(lab.tensor_from(p.device, "i32", list))
end

local function ends(add, a)
  add("embedding", "of the text", a, function(p, t)
    local rows = table_rows(t)
    return { ids = targets(p, t, rows), table = p:normal("fp32", rows, D), y = p:normal(a, t, D) }
  end)
  add("embedding_backward", "of the text", a, function(p, t)
    local rows = table_rows(t)
    return { ids = targets(p, t, rows), dy = p:normal(a, t, D), dtable = p:normal("fp32", rows, D) }
  end)
  add("cross_entropy", "whole vocabulary", a, function(p, t)
    return { logits = p:normal(a, t, VOCABULARY), targets = targets(p, t, VOCABULARY), lse = p:own("fp32", 0, t),
      losses = p:own("fp32", 0, t), loss_sum = p:own("fp32", 0, 1), scale = 1 / t }
  end)
  add("cross_entropy_backward", "in place", a, function(p, t)
    local logits = p:normal(a, t, VOCABULARY)
    return { logits = logits, targets = targets(p, t, VOCABULARY), lse = p:own("fp32", 12, t), dlogits = logits,
      scale = 1 / t }
  end)
end

local function optimiser(add)
  local function states(p, t, extra)
    local count = t * PARAMETERS
    local args = { param = p:normal("fp32", count), grad = p:normal("fp32", count), m = p:normal("fp32", count),
      v = p:own("fp32", 0, count), step = p:own("i32", 1, 1), norm_squared = p:own("fp32", 4, 1), lr = 2e-4,
      weight_decay = 0.1, max_norm = 1 }
    for name, value in pairs(extra(count)) do args[name] = value end
    return args
  end
  add("adamw", "with a bf16 copy", "bf16", function(p, t)
    return states(p, t, function(count) return { param_bf16 = p:normal("bf16", count) } end)
  end, { without = { "param_bf16" } })
  add("adamw", "without a copy", "fp32", function(p, t) return states(p, t, function() return {} end) end)
  add("squared_norm", "of the gradients", "fp32", function(p, t)
    return { x = p:normal("fp32", t * PARAMETERS), sum = p:own("fp32", 0, 1) }
  end)
end

local function routers(add, a)
  add("router", "top 8 of 128", a, function(p, t)
    return { logits = p:normal("fp32", t, EXPERTS), probs = p:own("fp32", 0, t, EXPERTS),
      experts = p:own("i32", 0, t, TOP_K), weights = p:own("fp32", 0, t, TOP_K), load = p:own("i32", 0, EXPERTS),
      aux = p:own("fp32", 0, 1) }
  end, { variant = "smxx_warp" })
end

-- List of {op, case, precision, variant, make = function(pool, tokens) -> arguments of lab.plan, without =
-- arguments that the reference does not take}. precision: of the tokens' activations.
function cases.list()
  local list = {}
  local function add(op, case, precision, make, more)
    more = more or {}
    list[#list + 1] = { op = op, case = case, precision = precision, variant = more.variant or V,
      without = more.without, make = function(pool, tokens)
        pool:reset()
        local args = make(pool, tokens)
        args.op, args.variant = op, more.variant or V
        return args
      end }
  end
  for _, a in ipairs { "bf16", "fp32" } do
    norms(add, a)
    row_wise(add, a)
    for _, align in ipairs { 1, 128 } do permutes(add, a, align) end
  end
  expert_rows(add)
  add("permute_index", "tight", "bf16", function(p, t) return index_of(p, t, 1).args end, { variant = "smxx_sort" })
  routers(add, "bf16")
  ends(add, "bf16")
  optimiser(add)
  return list
end

return cases
