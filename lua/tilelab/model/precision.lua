-- The float type of every buffer of the training step, in one place.
--
-- A precision gives a type to each of five classes of buffers:
--   activation  what flows from operation to operation, a row a token, its gradients, and the weights
--               as dense GEMMs read them
--   attention   what attention reads and writes where it is cuDNN's, which computes in bf16; elsewhere it is
--               an activation
--   row         the same in the experts' layout, and the weights of the experts
--   statistic   what sums and normalises: it is small, and stays in fp32
--   master      parameters, their gradients and the states of AdamW
-- Where a weight is read in another type than its master's, it has a working copy, which AdamW
-- writes. Weight gradients are GEMMs of the narrow types with sums and outputs in fp32.

local precision = {}

local function all(dtype)
  return { activation = dtype, attention = dtype, row = dtype, statistic = dtype, master = dtype }
end

-- By name and kind of device. fp32 on a GPU is the published trainer's setting: TF32 in dense GEMMs,
-- bf16 in the grouped ones. Its attention is in bf16: without tensor cores it would take longer than the
-- rest of the update; `--attention plain` computes it so.
local types = {
  fp64 = { cpu = all "fp64" },
  fp32 = { cpu = all "fp32", cuda = { activation = "fp32", attention = "bf16", row = "bf16", statistic = "fp32",
    master = "fp32" } },
  bf16 = { cuda = { activation = "bf16", attention = "bf16", row = "bf16", statistic = "fp32", master = "fp32" } },
}

-- The router's logits come out of a bf16 GEMM in fp32, so that experts do not tie; their gradient
-- goes into two GEMMs.
local buffers = {
  activation = { "embedded", "normed", "sum", "qkv", "o", "y", "z", "h", "logits", "router_dlogits",
    "stream_gradient", "dh", "dout", "dqkv", "ffn_dh", "ffn_dz" },
  attention = { "attention_qkv", "attention_o", "attention_dout", "attention_dqkv" },
  row = { "expert_x", "expert_z", "expert_h", "expert_out", "expert_dout", "expert_dx", "expert_dh", "expert_dz",
    "padded_a", "padded_b", "padded_d" },
  statistic = { "rstd", "lse", "router_logits", "probs", "weights", "dweights", "token_lse", "losses", "loss", "aux",
    "norm_squared" },
}

-- Kinds of parameters (parameters.lua) -> the class that the step reads them in.
precision.of_parameter = { matrix = "activation", experts = "row", embedding = "master", norm = "master" }

local class_of = {}
for class, names in pairs(buffers) do
  for _, name in ipairs(names) do class_of[name] = class end
end

-- The types of a precision on a kind of device ("cpu", "cuda"): class -> dtype; or nil and a message.
function precision.types(name, kind)
  local found = types[name] and types[name][kind]
  if found then return found end
  local known = {}
  for other, kinds in pairs(types) do
    if kinds[kind] and other ~= "fp64" then known[#known + 1] = other end
  end
  table.sort(known)
  return nil, ("%s trains in %s"):format(kind == "cpu" and "the CPU" or "a GPU", table.concat(known, " or "))
end

-- The class of a buffer of the step; raises for one that the table above lacks.
function precision.class(buffer)
  return class_of[buffer] or error(("the step's buffer '%s' has no class in model/precision.lua"):format(buffer), 2)
end

return precision
