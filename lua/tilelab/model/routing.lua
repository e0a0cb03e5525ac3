-- Fixed expert loads for studies that take the router's habits out: each token's top_k distinct
-- experts are drawn once, when the model is built, uniformly ("multinomial") or with probability
-- proportional to 1 / rank^0.8 ("zipf"; ranks are expert numbers). Under "model" the router chooses.

local lab = require "tilelab"

local ZIPF_EXPONENT = 0.8
local STREAM = 0x726f757465 -- "route": apart from the streams of weights and text

local Routing = {}
Routing.__index = Routing

local kinds = { "model", "multinomial", "zipf" }

-- nil under "model": nothing is forced.
local function new(kind, config, tokens, seed)
  if kind == "model" then return nil end
  local cumulative, total = {}, 0
  for e = 1, config.experts do
    total = total + (kind == "zipf" and e ^ -ZIPF_EXPONENT or 1)
    cumulative[e] = total
  end
  return setmetatable({ config = config, tokens = tokens, seed = seed, cumulative = cumulative,
    layers = {} }, Routing)
end

local function find(cumulative, value)
  local low, high = 1, #cumulative
  while low < high do
    local middle = (low + high) // 2
    if value < cumulative[middle] then high = middle else low = middle + 1 end
  end
  return low
end

-- Flat [tokens, top_k] expert ids, 0-based. Draws are repeated until the token's experts differ.
local function draw(self, sequence)
  local random, cumulative, ids = lab.random(self.seed, STREAM + sequence), self.cumulative, {}
  local total = cumulative[#cumulative]
  for token = 1, self.tokens do
    local taken, first = {}, (token - 1) * self.config.top_k
    for j = 1, self.config.top_k do
      local expert
      repeat expert = find(cumulative, random:uniform() * total) until not taken[expert]
      taken[expert] = true
      ids[first + j] = expert - 1
    end
  end
  return ids
end

-- The tensor that the layer's router reads; its contents change with `load`.
function Routing:tensor(builder, layer)
  local entry = { current = builder:index { self.tokens, self.config.top_k }, pool = {} }
  for micro = 0, self.config.update_frequency - 1 do
    entry.pool[micro] = builder:index { self.tokens, self.config.top_k }
    entry.pool[micro]:assign(draw(self, layer * self.config.update_frequency + micro))
  end
  self.layers[#self.layers + 1] = entry
  return entry.current
end

-- Puts micro-batch `micro`'s (from 0) experts in place for every layer.
function Routing:load(micro)
  for _, entry in ipairs(self.layers) do entry.current:copy(entry.pool[micro]) end
end

return { new = new, kinds = kinds }
