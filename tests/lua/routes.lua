-- Choices of experts and their index, for tests of what permutes rows: empty experts, token counts that
-- are no multiple of anything, all tokens to one expert, more experts than slots.
--
--   routes.cases([most tokens]) -> list of {name, tokens, top_k, num_experts, draw}
--   routes.route(case, align [, spare rows]) -> {experts, group_offsets, row_slots, slot_rows,
--     row_experts (host tensors), tokens, top_k, num_experts, rows, used}
--   routes.sweep(check)   calls check(case, d, dtype of the tokens, dtype of the rows, align) over all cases
--     at small widths, over widths, and once where rows fill many blocks
--   routes.index_outputs(route) -> poisoned outputs of permute_index, on the host

local lab = require "tilelab"

local routes = {}

local function i32(...) return lab.check(lab.tensor { dtype = "i32", shape = { ... } }) end

local CASES = {
  { name = "37 tokens", tokens = 37, top_k = 3, num_experts = 5 },
  { name = "one token", tokens = 1, top_k = 1, num_experts = 1 },
  { name = "more experts than slots", tokens = 3, top_k = 2, num_experts = 130 },
  { name = "one takes all", tokens = 301, top_k = 8, num_experts = 128, draw = "one" },
  { name = "some experts empty", tokens = 333, top_k = 8, num_experts = 128, draw = "few" },
  { name = "11 slots a token", tokens = 129, top_k = 11, num_experts = 16 },
  { name = "no tokens", tokens = 0, top_k = 2, num_experts = 4 },
  { name = "chunks", tokens = 3077, top_k = 8, num_experts = 128 },
  { name = "1024 experts", tokens = 2049, top_k = 2, num_experts = 1024 },
  { name = "several turns a chunk", tokens = 17001, top_k = 8, num_experts = 128, draw = "few" },
}

function routes.cases(most)
  local list = {}
  for _, case in ipairs(CASES) do
    if case.tokens <= (most or math.huge) then list[#list + 1] = case end
  end
  return list
end

function routes.index_outputs(route)
  return { group_offsets = i32(route.num_experts + 1), row_slots = i32(route.rows),
    slot_rows = i32(route.tokens, route.top_k), row_experts = i32(route.rows) }
end

local function draw(case)
  local random, list = lab.random(case.tokens, case.num_experts), {}
  for i = 1, case.tokens * case.top_k do
    local expert = random:below(case.num_experts)
    if case.draw == "few" then expert = expert // 7 * 7 end
    list[i] = case.draw == "one" and case.num_experts // 3 or expert
  end
  return i32(case.tokens, case.top_k):assign(list), list
end

function routes.route(case, align, spare)
  local route = { tokens = case.tokens, top_k = case.top_k, num_experts = case.num_experts }
  local counts, experts, list = {}, draw(case)
  route.experts = experts
  for _, expert in ipairs(list) do counts[expert] = (counts[expert] or 0) + 1 end
  route.used = 0
  for _, count in pairs(counts) do route.used = route.used + (count + align - 1) // align * align end
  route.rows = route.used + (spare or 0)
  local args = { op = "permute_index", variant = "cpu_plain", experts = route.experts, align = align }
  for name, tensor in pairs(routes.index_outputs(route)) do route[name], args[name] = tensor, tensor end
  lab.check(lab.plan(args)):launch()
  return route
end

function routes.sweep(check)
  for _, case in ipairs(routes.cases(400)) do
    for _, align in ipairs { 1, 128 } do
      check(case, 72, "bf16", "bf16", align)
      check(case, 72, "fp32", "bf16", align)
      check(case, 20, "fp32", "fp32", align)
    end
  end
  local few = routes.cases()[1]
  for _, d in ipairs { 8, 192, 1032, 3072, 4104 } do
    check(few, d, "bf16", "bf16", 1)
    check(few, d, "fp32", "bf16", 128)
    check(few, d, "fp32", "fp32", 1)
  end
  local many = routes.cases()[8]
  check(many, 512, "bf16", "bf16", 1)
  check(many, 512, "fp32", "bf16", 128)
end

return routes
