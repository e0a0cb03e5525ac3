-- Kernel classes of the training step: what a reader wants to tell apart, by operation; and what a
-- class is bound by. Pure functions of operations and phases (lua/tilelab/model/layer.lua).

local classes = {}

-- Class of an operation; m_grouped_gemm has one by layout.
local of_operation = {
  k_grouped_gemm = "grouped_wgrad", gemm = "dense_gemm", attention = "attention", attention_backward = "attention",
  convert = "convert", rmsnorm = "norm", rmsnorm_backward = "norm", rope = "rope", router = "router",
  router_backward = "router", permute_index = "permute", permute = "permute", permute_backward = "permute",
  combine = "combine", combine_backward = "combine", swiglu = "swiglu", swiglu_backward = "swiglu",
  embedding = "embedding", embedding_backward = "embedding", cross_entropy = "cross_entropy",
  cross_entropy_backward = "cross_entropy", pad_index = "padding", pad_rows = "padding", unpad_rows = "padding",
  squared_norm = "gradient_norm", adamw = "adamw",
}

-- In the order in which they are shown. convert: between precisions, around attention; zeroing: memsets of
-- gradients; host_counts: rows of each group, read by the host; inputs: tokens, targets, routing and the loss,
-- copied between launches.
classes.list = { "grouped_fprop", "grouped_dgrad", "grouped_wgrad", "dense_gemm", "attention", "convert", "norm",
  "rope", "router", "permute", "combine", "swiglu", "padding", "zeroing", "host_counts", "embedding", "cross_entropy",
  "adamw", "gradient_norm", "inputs", "other" }

classes.passes = { "forward", "backward", "optimiser", "other" }

-- Classes that a copy of as many bytes is the bound of.
classes.memory_bound = {}
for _, name in ipairs { "convert", "norm", "rope", "permute", "combine", "swiglu", "padding", "embedding",
  "cross_entropy", "adamw", "gradient_norm" } do
  classes.memory_bound[name] = true
end

-- Class of a launch: plan = {op}, nil for the host's reading of counts; args = its arguments.
function classes.of(plan, args)
  if not plan then return "host_counts" end
  if plan.op == "m_grouped_gemm" then return args.layout == "nn" and "grouped_dgrad" or "grouped_fprop" end
  return of_operation[plan.op] or "other"
end

-- Class and pass of what runs outside of every launch of the step.
function classes.outside(record)
  if record.kind == "memset" then return "zeroing" end
  return record.kind == "copy" and "inputs" or "other"
end

-- The pass of each entry {phase} of a micro-batch's list: backward from the first phase that says so.
function classes.passes_of(list)
  local result, backward = {}, false
  for i, entry in ipairs(list) do
    backward = backward or entry.phase:find "bprop$" ~= nil
    result[i] = backward and "backward" or "forward"
  end
  return result
end

-- Name of a grouped GEMM: fwd_w13, dgrad_w2, ...; f = width of an expert.
function classes.product(plan, args, f)
  local shape = args.d.shape
  if plan.op == "k_grouped_gemm" then return shape[2] == 2 * f and "wgrad_w13" or "wgrad_w2" end
  if args.layout == "nn" then return shape[2] == f and "dgrad_w2" or "dgrad_w13" end
  return shape[2] == 2 * f and "fwd_w13" or "fwd_w2"
end

-- --- logical work ---------------------------------------------------------------------------------

-- Operations whose flops() and bytes() count every row of the experts' layout, pads and the rows past the
-- last group included; the others of that layout count slots already.
local BY_ROWS = { m_grouped_gemm = true, k_grouped_gemm = true, swiglu = true, swiglu_backward = true,
  pad_rows = true, unpad_rows = true }

local function is_tensor(value)
  return type(value) == "userdata" or type(value) == "table" and value.shape ~= nil
end

-- FLOPs and bytes that the equation needs: real rows only. layout: {slots = tokens times top_k, rows = set
-- of the row counts of this model's layouts, which are at least that}.
function classes.logical(plan, args, layout)
  local flops, bytes = plan:flops(), plan:bytes()
  if not BY_ROWS[plan.op] then return flops, bytes end
  local share = 1
  for name, tensor in pairs(args) do
    if is_tensor(tensor) and name ~= "row_experts" and name ~= "group_offsets" then
      local rows = tensor.shape[1]
      if layout.rows[rows] and rows > layout.slots then
        share = layout.slots / rows
        bytes = bytes - tensor.bytes * (1 - share)
      end
    end
  end
  return flops * share, bytes
end

return classes
