-- attention.tsv: causal grouped-query attention at the shape of 30b-a3b, bf16, forward and backward, a row a
-- kernel and sequence length.
--
--   op variant     attention or attention_backward, and whose: cudnn_sdpa; cudnn_ordered: its gradients with the
--                  same bits each time; smxx_plain
--   batch sequence heads kv_heads head_dim
--   time_us time_us_lo time_us_hi   median with its interval, L2 cold
--   call_us        host clock around one call and the wait for it
--   tflops         of the causal half: 2 products forward, 5 backward
--   rounds         that were kept
--   sm_clock_mhz   during the timed calls; power_w at the end of the rounds
--   workspace_bytes

local draw = require "tilelab.draw"

local attention = {
  schema = {
    { "op", "text", { "attention", "attention_backward" } },
    { "variant", "text", { "cudnn_sdpa", "cudnn_ordered", "smxx_plain" } }, { "batch", "integer" },
    { "sequence", "integer" }, { "heads", "integer" }, { "kv_heads", "integer" }, { "head_dim", "integer" },
    { "time_us", "number" }, { "time_us_lo", "number" }, { "time_us_hi", "number" }, { "call_us", "number" },
    { "tflops", "number" }, { "rounds", "integer" }, { "sm_clock_mhz", "number?" }, { "power_w", "number?" },
    { "workspace_bytes", "integer" },
  },
}

local NAMES = { ["attention cudnn_sdpa"] = "forward, cuDNN", ["attention_backward cudnn_sdpa"] = "backward, cuDNN",
  ["attention_backward cudnn_ordered"] = "backward, cuDNN, deterministic", ["attention smxx_plain"] = "forward, plain",
  ["attention_backward smxx_plain"] = "backward, plain" }

function attention.draw(data, options)
  local series, by_name = {}, {}
  for _, row in ipairs(data.rows) do
    local name = NAMES[row.op .. " " .. row.variant]
    if not by_name[name] then
      by_name[name] = { name = name, style = "both", points = {} }
      series[#series + 1] = by_name[name]
    end
    local points, tflops, time = by_name[name].points, data:number(row, "tflops"), data:number(row, "time_us")
    points[#points + 1] = { x = data:number(row, "sequence"), y = tflops,
      lo = tflops * time / data:number(row, "time_us_hi"), hi = tflops * time / data:number(row, "time_us_lo") }
  end
  for _, one in ipairs(series) do table.sort(one.points, function(a, b) return a.x < b.x end) end
  local first = data.rows[1]
  return draw.figures(data, options, { {
    name = "attention", kind = "lines", xlabel = "Sequence (tokens)", ylabel = "TFLOP/s", logx = 2, zero = true,
    series = series,
    caption = { what = ("Causal attention, bf16, %s query and %s key heads of %s, %d tokens in all; FLOPs of the "
      .. "causal half"):format(first.heads, first.kv_heads, first.head_dim, data:number(first, "batch")
      * data:number(first, "sequence")), n = ("%s rounds"):format(first.rounds), statistic = "median, L2 cold" },
  } })
end

return attention
