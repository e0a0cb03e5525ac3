-- Where the gain of one backend over another comes from: what one more layer costs each, by kind of work.
--
-- Cost of a layer = the breakdown at the deeper model less that at the shallower one, over the difference of
-- depths and the tokens of an update; idle time is a part of its own, so that the parts add up to the whole.
-- Pure functions of the rows of layer_breakdown.tsv.

local align = require("tilelab.text_table").align

local split = {}

-- Parts in the order in which they are shown; each class of classes.lua belongs to one, the rest to "other".
split.parts = { "grouped GEMM", "padding copies", "rows of experts", "zeroing", "idle", "other" }

local part_of = { grouped_fprop = "grouped GEMM", grouped_dgrad = "grouped GEMM", grouped_wgrad = "grouped GEMM",
  padding = "padding copies", permute = "rows of experts", combine = "rows of experts", swiglu = "rows of experts",
  zeroing = "zeroing" }

split.legend = [[
grouped GEMM     the products of the routed experts, pad rows included
padding copies   padding and unpadding by kernels of their own
rows of experts  permute, combine and SwiGLU, which carry pad rows where the layout has them
zeroing          memsets of gradients that are only added to
idle             nothing runs: the host is waited for, or a launch
other            the rest, which the backends share]]

-- us a token that one more layer costs: part -> value, and `total`. list: rows {layers, pass, kernel_class,
-- time_us, idle_pct} of one backend, numbers; tokens: of an update. nil where the rows hold one depth.
function split.layer(list, tokens)
  local low, high = math.huge, -math.huge
  for _, row in ipairs(list) do low, high = math.min(low, row.layers), math.max(high, row.layers) end
  if not (low < high) then return nil end
  local result, per = { total = 0 }, 1 / ((high - low) * tokens)
  for _, part in ipairs(split.parts) do result[part] = 0 end
  for _, row in ipairs(list) do
    local sign = row.layers == high and 1 or row.layers == low and -1 or 0
    if row.pass ~= "update" then
      local part = part_of[row.kernel_class] or "other"
      result[part] = result[part] + sign * per * row.time_us
    elseif row.kernel_class == "all" then
      result.idle = result.idle + sign * per * row.time_us * row.idle_pct / 100
      result.total = result.total + sign * per * row.time_us
    end
  end
  return result
end

-- {[backend] = split.layer} -> text: us a token and layer by part, and how much of each backend's cost
-- `challenger` saves. backends: names in their order.
function split.text(layers, backends, challenger)
  local header, cells, right = { "us a token and layer" }, {}, {}
  local others = {}
  for _, backend in ipairs(backends) do header[#header + 1] = backend end
  for _, backend in ipairs(backends) do
    if backend ~= challenger and layers[challenger] then
      others[#others + 1] = backend
      header[#header + 1] = ("saved of %s, %%"):format(backend)
    end
  end
  cells[1] = header
  for i = 2, #header do right[i] = true end
  local parts = table.move(split.parts, 1, #split.parts, 1, {})
  parts[#parts + 1] = "total"
  for _, part in ipairs(parts) do
    local line = { part }
    for _, backend in ipairs(backends) do line[#line + 1] = ("%.4f"):format(layers[backend][part]) end
    for _, backend in ipairs(others) do
      local cost = layers[backend]
      line[#line + 1] = ("%+.2f"):format(100 * (cost[part] - layers[challenger][part]) / cost.total)
    end
    cells[#cells + 1] = line
  end
  return align(cells, right) .. "\n\n" .. split.legend
end

return split
