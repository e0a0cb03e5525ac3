-- One transformer layer as two lists of launches: attention and a MoE block with a shared expert
-- (or a dense FFN), pre-normalised, forward and backward.
--
-- Shapes: t tokens of a micro-batch, d d_model, e experts, r rows of the expert layout (t * top_k
-- without padding), f expert FFN width. The residual stream is never updated in place: each
-- RMSNorm adds the incoming branch to it and keeps the sum, which its backward needs. Gradients of
-- the residual stream flow through one tensor, `builder.stream_gradient`.

local Layer = {}

-- Names of this layer's parameters begin with "layer<n>.". Returns what the step reads, and the
-- gradient.
local function named(builder, layer, name)
  local full = ("layer%d.%s"):format(layer, name)
  return builder.parameters.working[full], builder.parameters.gradient[full]
end

-- RMSNorm of residual + branch; returns the saved tensors. The first norm of the model has no
-- residual yet, and its input is the sum.
local function norm_forward(b, phase, weight, branch, residual)
  local saved = { y = b:save("normed", { b.t, b.d }), rstd = b:save("rstd", { b.t }), sum = branch }
  if residual then saved.sum = b:save("sum", { b.t, b.d }) end
  b:forward(phase, "rmsnorm", { x = branch, residual = residual, weight = weight, y = saved.y,
    rstd = saved.rstd, sum = residual and saved.sum or nil, eps = b.config.norm_eps })
  return saved
end

-- From dy, the gradient of the norm's output, adds to the stream gradient in place. The last norm
-- of the model starts the stream gradient: `first`.
local function norm_backward(b, phase, saved, weight, dweight, dy, first)
  b:backward(phase, "rmsnorm_backward", { dy = dy, x = saved.sum, weight = weight,
    rstd = saved.rstd, dsum = not first and b.stream_gradient or nil, dx = b.stream_gradient,
    dweight = dweight })
end

Layer.norm_forward, Layer.norm_backward = norm_forward, norm_backward

-- y = x w^T, and its two gradients. `dx_beta` 1 adds to dx.
local function linear(b, phase, x, w, y)
  b:forward(phase, "gemm", { a = x, b = w, d = y, layout = "nt" })
end

local function linear_backward(b, phase, dy, x, w, dw, dx, dx_beta)
  b:weight_gradient(phase, "gemm", { a = dy, b = x, d = dw, layout = "tn" })
  b:backward(phase, "gemm", { a = dy, b = w, d = dx, layout = "nn", beta = dx_beta or 0 })
end

-- SwiGLU FFN over all tokens: the dense block and the shared expert. Returns y and the saved
-- intermediate tensors.
local function ffn_forward(b, phase, x, w13, w2, width)
  local saved = { z = b:save("z", { b.t, 2 * width }), h = b:save("h", { b.t, width }),
    y = b:save("y", { b.t, b.d }) }
  linear(b, phase, x, w13, saved.z)
  b:forward(phase, "swiglu", { x = saved.z, y = saved.h })
  linear(b, phase, saved.h, w2, saved.y)
  return saved
end

-- Writes dx (the first of the block's gradients to do so).
local function ffn_backward(b, phase, saved, dy, x, weights, width, dx)
  local dh, dz = b:scratch("ffn_dh", { b.t, width }), b:scratch("ffn_dz", { b.t, 2 * width })
  linear_backward(b, phase, dy, saved.h, weights.w2, weights.dw2, dh)
  b:backward(phase, "swiglu_backward", { dy = dh, x = saved.z, dx = dz })
  linear_backward(b, phase, dz, x, weights.w13, weights.dw13, dx)
end

-- What attention reads or writes in the place of `tensor`: itself, or where attention computes in
-- another type, a tensor of that name; `keep`: save or scratch, of the builder.
local function beside(b, keep, name, tensor)
  return b.attention.converts and keep(b, name, tensor.shape) or tensor
end

local function convert(b, phase, from, to)
  if from == to then return end
  b:forward(phase, "convert", { x = from:view(0, { from.numel }), y = to:view(0, { to.numel }) })
end

-- [t, heads * head_dim] as attention has it.
local function by_heads(b, tensor)
  local c = b.config
  return tensor:view(0, { c.micro_batch, c.sequence, tensor.shape[2] // c.head_dim, c.head_dim })
end

local function attention_forward(b, layer, branch, residual)
  local c, phase = b.config, "attention fprop"
  local keep = b.attention.converts and b.scratch or b.save -- backward needs what attention read
  local qkv = keep(b, "qkv", { b.t, (c.heads + 2 * c.kv_heads) * c.head_dim })
  local s = { o = b:save("o", { b.t, c.heads * c.head_dim }), y = b:save("y", { b.t, b.d }),
    lse = b:save("lse", { c.micro_batch, c.heads, c.sequence }) }
  s.qkv, s.attended = beside(b, b.save, "attention_qkv", qkv), beside(b, b.save, "attention_o", s.o)
  s.norm = norm_forward(b, phase, named(b, layer, "attention_norm"), branch, residual)
  linear(b, phase, s.norm.y, named(b, layer, "qkv"), qkv)
  b:forward(phase, "rope", { qkv = by_heads(b, qkv), rotated_heads = c.heads + c.kv_heads, theta = c.rope_theta })
  convert(b, phase, qkv, s.qkv)
  b:forward(phase, "attention", { qkv = by_heads(b, s.qkv), o = by_heads(b, s.attended), lse = s.lse })
  convert(b, phase, s.attended, s.o)
  linear(b, phase, s.o, named(b, layer, "out"), s.y)
  return s
end

local function attention_backward(b, layer, s)
  local c, phase = b.config, "attention bprop"
  local dout = b:scratch("dout", { b.t, c.heads * c.head_dim })
  local dqkv = b:scratch("dqkv", { b.t, (c.heads + 2 * c.kv_heads) * c.head_dim })
  local dattended = beside(b, b.scratch, "attention_dout", dout)
  local dread = beside(b, b.scratch, "attention_dqkv", dqkv)
  local dh = b:scratch("dh", { b.t, b.d })
  local w, dw = named(b, layer, "out")
  linear_backward(b, phase, b.stream_gradient, s.o, w, dw, dout)
  convert(b, phase, dout, dattended)
  b:backward(phase, "attention_backward", { dout = by_heads(b, dattended), qkv = by_heads(b, s.qkv),
    o = by_heads(b, s.attended), lse = s.lse, dqkv = by_heads(b, dread) })
  convert(b, phase, dread, dqkv)
  b:backward(phase, "rope", { qkv = by_heads(b, dqkv), rotated_heads = c.heads + c.kv_heads,
    theta = c.rope_theta, inverse = 1 })
  w, dw = named(b, layer, "qkv")
  linear_backward(b, phase, dqkv, s.norm.y, w, dw, dh)
  w, dw = named(b, layer, "attention_norm")
  norm_backward(b, phase, s.norm, w, dw, dh)
end

local function moe_forward(b, layer, branch, residual)
  local c, phase, f = b.config, "moe fprop", b.config.expert_ffn
  local s = {
    logits = b:save("router_logits", { b.t, c.experts }), probs = b:save("probs", { b.t, c.experts }),
    weights = b:save("weights", { b.t, c.top_k }), experts = b:index { b.t, c.top_k },
    load = b:index { c.experts }, group_offsets = b:index { c.experts + 1 }, row_slots = b:index { b.rows },
    slot_rows = b:index { b.t, c.top_k }, row_experts = b:index { b.rows },
    x = b:save("expert_x", { b.rows, b.d }), z = b:save("expert_z", { b.rows, 2 * f }),
    h = b:save("expert_h", { b.rows, f }), out = b:save("expert_out", { b.rows, b.d }),
    y = b:save("y", { b.t, b.d }),
  }
  b.loads[#b.loads + 1] = s.load
  s.norm = norm_forward(b, phase, named(b, layer, "ffn_norm"), branch, residual)
  linear(b, "router fprop", s.norm.y, named(b, layer, "router"), s.logits)
  b:forward("router fprop", "router", { logits = s.logits, probs = s.probs, experts = s.experts,
    weights = s.weights, load = s.load, aux = b.aux, forced = b:forced_experts(layer),
    coefficient = c.aux_coefficient / c.update_frequency })
  b:forward("permute fprop", "permute_index", { experts = s.experts, group_offsets = s.group_offsets,
    row_slots = s.row_slots, slot_rows = s.slot_rows, row_experts = s.row_experts, align = b.backend.align })
  b:groups_known(s)
  b:forward("permute fprop", "permute", { x = s.norm.y, row_slots = s.row_slots,
    slot_rows = s.slot_rows, group_offsets = s.group_offsets, y = s.x })
  b:grouped(phase, "m_grouped_gemm", s, { a = s.x, b = named(b, layer, "expert13"), d = s.z, layout = "nt" })
  b:forward(phase, "swiglu", { x = s.z, y = s.h, group_offsets = s.group_offsets })
  b:grouped(phase, "m_grouped_gemm", s, { a = s.h, b = named(b, layer, "expert2"), d = s.out, layout = "nt" })
  s.shared = ffn_forward(b, phase, s.norm.y, named(b, layer, "shared13"), named(b, layer, "shared2"),
    c.shared_ffn)
  b:forward("permute fprop", "combine", { x = s.out, slot_rows = s.slot_rows, weights = s.weights,
    shared = s.shared.y, y = s.y })
  return s
end

-- The routed experts' gradients: from the stream gradient to dx [r, d] and dweights [t, top_k].
local function experts_backward(b, layer, s)
  local phase, f = "moe bprop", b.config.expert_ffn
  local dout, dx = b:scratch("expert_dout", { b.rows, b.d }), b:scratch("expert_dx", { b.rows, b.d })
  local dh, dz = b:scratch("expert_dh", { b.rows, f }), b:scratch("expert_dz", { b.rows, 2 * f })
  local dweights = b:scratch("dweights", { b.t, b.config.top_k })
  b:backward("permute bprop", "combine_backward", { dy = b.stream_gradient, x = s.out,
    row_slots = s.row_slots, slot_rows = s.slot_rows, weights = s.weights,
    group_offsets = s.group_offsets, dx = dout, dweights = dweights })
  local w, dw = named(b, layer, "expert2")
  b:grouped_weight_gradient(phase, s, { a = dout, b = s.h, d = dw })
  b:grouped(phase, "m_grouped_gemm", s, { a = dout, b = w, d = dh, layout = "nn" })
  b:backward(phase, "swiglu_backward", { dy = dh, x = s.z, dx = dz, group_offsets = s.group_offsets })
  w, dw = named(b, layer, "expert13")
  b:grouped_weight_gradient(phase, s, { a = dz, b = s.x, d = dw })
  b:grouped(phase, "m_grouped_gemm", s, { a = dz, b = w, d = dx, layout = "nn" })
  return dx, dweights
end

local function moe_backward(b, layer, s)
  local c, phase = b.config, "moe bprop"
  local dh, dlogits = b:scratch("dh", { b.t, b.d }), b:scratch("router_dlogits", { b.t, c.experts })
  local dx, dweights = experts_backward(b, layer, s)
  local shared = {}
  shared.w13, shared.dw13 = named(b, layer, "shared13")
  shared.w2, shared.dw2 = named(b, layer, "shared2")
  ffn_backward(b, phase, s.shared, b.stream_gradient, s.norm.y, shared, c.shared_ffn, dh)
  b:backward("permute bprop", "permute_backward", { dy = dx, slot_rows = s.slot_rows, dx = dh, beta = 1 })
  b:backward("router bprop", "router_backward", { probs = s.probs, experts = s.experts,
    weights = s.weights, dweights = dweights, load = s.load, dlogits = dlogits,
    coefficient = c.aux_coefficient / c.update_frequency })
  local w, dw = named(b, layer, "router")
  linear_backward(b, "router bprop", dlogits, s.norm.y, w, dw, dh, 1)
  w, dw = named(b, layer, "ffn_norm")
  norm_backward(b, phase, s.norm, w, dw, dh)
end

local function dense_forward(b, layer, branch, residual)
  local s = { norm = norm_forward(b, "ffn fprop", named(b, layer, "ffn_norm"), branch, residual) }
  s.ffn = ffn_forward(b, "ffn fprop", s.norm.y, named(b, layer, "dense13"), named(b, layer, "dense2"),
    b.config.ffn)
  s.y = s.ffn.y
  return s
end

local function dense_backward(b, layer, s)
  local dh, dense = b:scratch("dh", { b.t, b.d }), {}
  dense.w13, dense.dw13 = named(b, layer, "dense13")
  dense.w2, dense.dw2 = named(b, layer, "dense2")
  ffn_backward(b, "ffn bprop", s.ffn, b.stream_gradient, s.norm.y, dense, b.config.ffn, dh)
  local w, dw = named(b, layer, "ffn_norm")
  norm_backward(b, "ffn bprop", s.norm, w, dw, dh)
end

-- Appends the layer's forward launches. `branch` and `residual` (nil at the first layer) are what
-- flows in; returns those that flow out, and the layer's saved tensors.
function Layer.forward(b, layer, branch, residual)
  local saved = { attention = attention_forward(b, layer, branch, residual) }
  local ffn_forward_of = layer <= b.config.dense_layers and dense_forward or moe_forward
  saved.ffn = ffn_forward_of(b, layer, saved.attention.y, saved.attention.norm.sum)
  return saved.ffn.y, saved.ffn.norm.sum, saved
end

-- Appends its backward launches; the stream gradient goes in and comes out in place.
function Layer.backward(b, layer, saved)
  local ffn_backward_of = layer <= b.config.dense_layers and dense_backward or moe_backward
  ffn_backward_of(b, layer, saved.ffn)
  attention_backward(b, layer, saved.attention)
end

return Layer
