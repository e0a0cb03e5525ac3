-- Which attention the step runs: cuDNN's on a GPU, where the library is found and takes the sizes, else
-- the project's own. cuDNN computes in bf16; activations of another type are converted around it. Of
-- its gradients cudnn_ordered gives the same bits each time, for 2 bytes of workspace for each score;
-- cudnn_sdpa adds with atomics, and is faster.

local lab = require "tilelab"

local attention = {}

attention.libraries = { "cudnn", "plain" }

local function shapes(config)
  local packed = config.heads + 2 * config.kv_heads
  return { config.micro_batch, config.sequence, packed, config.head_dim },
    { config.micro_batch, config.sequence, config.heads, config.head_dim },
    { config.micro_batch, config.heads, config.sequence }
end

-- Tensors of the step's sizes, as arguments of both operations; or nil, a message and its code.
local function operands(device, config)
  local packed, heads, rows = shapes(config)
  local list = {}
  for name, spec in pairs { qkv = { "bf16", packed }, dqkv = { "bf16", packed }, o = { "bf16", heads },
    dout = { "bf16", heads }, lse = { "fp32", rows } } do
    local tensor, message, code = lab.tensor { device = device.name, dtype = spec[1], shape = spec[2] }
    if not tensor then return nil, message, code end
    list[name] = tensor
  end
  return list
end

-- Whether cuDNN has plans for the step; else false and the reason, or nil and a message where the step's own
-- tensors do not fit.
local function cudnn_takes(device, config, backward)
  local t, message, code = operands(device, config)
  if not t and code == "memory" then return nil, message end
  if not t then return false, message end
  local legal, reason = lab.legal { op = "attention", variant = "cudnn_sdpa", qkv = t.qkv, o = t.o, lse = t.lse }
  if legal then
    legal, reason = lab.legal { op = "attention_backward", variant = backward, dout = t.dout, qkv = t.qkv, o = t.o,
      lse = t.lse, dqkv = t.dqkv }
  end
  for _, tensor in pairs(t) do tensor:close() end
  return legal, reason
end

-- spec: device, config, types (precision.types), deterministic (true), library ("cudnn" or "plain";
-- default: cuDNN where it can). Returns {attention = variant, attention_backward = variant, converts =
-- whether activations are of another type, reason = why it is not cuDNN's}; or nil and a message where
-- the library that is asked for cannot, or there is no memory for the step's tensors.
function attention.choose(spec)
  local plain = spec.device.arch == 0 and "cpu_plain" or "smxx_plain"
  local reason = ("%s asked for"):format(plain)
  if spec.library ~= "plain" then
    local backward = spec.deterministic == false and "cudnn_sdpa" or "cudnn_ordered"
    local takes
    if spec.device.arch == 0 then
      takes, reason = false, "cuDNN needs a GPU"
    else
      takes, reason = cudnn_takes(spec.device, spec.config, backward)
    end
    if takes then
      return { attention = "cudnn_sdpa", attention_backward = backward,
        converts = spec.types.activation ~= spec.types.attention }
    end
    if takes == nil or spec.library == "cudnn" then return nil, reason end
  end
  return { attention = plain, attention_backward = plain, reason = reason }
end

-- "cudnn_sdpa, cudnn_ordered" of a choice.
function attention.name(choice)
  if choice.attention == choice.attention_backward then return choice.attention end
  return choice.attention .. ", " .. choice.attention_backward
end

-- Bytes of workspace of an operation, as cuDNN's plans ask for them: gradients of k and v for each
-- head of q, where heads share them, in bf16; delta; then ds, or dq in fp32.
function attention.workspace(choice, operation, config)
  local variant = choice[operation]
  if operation == "attention" or not variant:find "^cudnn" then return 0 end
  local rows = config.micro_batch * config.heads * config.sequence
  local shared = config.kv_heads < config.heads and rows * config.head_dim * 4 or 0
  return shared + rows * 4 + (variant == "cudnn_ordered" and rows * config.sequence * 2 or rows * config.head_dim * 4)
end

return attention
