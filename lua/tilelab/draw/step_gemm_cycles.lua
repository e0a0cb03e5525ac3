-- step_gemm_cycles.tsv: each grouped GEMM inside the training step beside itself alone, a row a product.
--
--   backend layers precision   what trained, and how deep
--   op         fwd_w13, fwd_w2, dgrad_w2, dgrad_w13, wgrad_w13, wgrad_w2
--   layer      of it
--   variant    of the kernel
--   step_us step_mhz    median time and SM clock where the step launches it, after the kernels before it
--   alone_us alone_mhz  of a launch among launches of it alone, at once afterwards, on the same data
--   step_kcycles alone_kcycles   medians of time times clock, in thousands
--   cycles_ratio cycles_ratio_lo cycles_ratio_hi   in the step over alone, pair by pair: median and its interval
--   rounds     pairs

local draw = require "tilelab.draw"

local cycles = {
  schema = {
    { "backend", "text" }, { "layers", "integer" }, { "precision", "text" },
    { "op", "text", { "fwd_w13", "fwd_w2", "dgrad_w2", "dgrad_w13", "wgrad_w13", "wgrad_w2" } }, { "layer", "integer" },
    { "variant", "text" }, { "step_us", "number" }, { "step_mhz", "number" }, { "alone_us", "number" },
    { "alone_mhz", "number" }, { "step_kcycles", "number" }, { "alone_kcycles", "number" },
    { "cycles_ratio", "number" }, { "cycles_ratio_lo", "number" }, { "cycles_ratio_hi", "number" },
    { "rounds", "integer" },
  },
}

function cycles.draw(data, options)
  local series, by_name, deepest, rounds = {}, {}, 0, 0
  for _, row in ipairs(data.rows) do
    deepest = math.max(deepest, data:number(row, "layers"))
    rounds = math.max(rounds, data:number(row, "rounds"))
  end
  for _, row in ipairs(data.rows) do
    if data:number(row, "layers") == deepest and data:number(row, "layer") == 1 then
      local one = by_name[row.backend]
      if not one then
        one = { name = row.backend, points = {} }
        by_name[row.backend], series[#series + 1] = one, one
      end
      one.points[#one.points + 1] = { x = row.op, y = data:number(row, "cycles_ratio"),
        lo = data:number(row, "cycles_ratio_lo"), hi = data:number(row, "cycles_ratio_hi") }
    end
  end
  return draw.figures(data, options, { {
    name = "step_gemm_cycles", kind = "dots", xlabel = "Grouped GEMM", ylabel = "SM cycles in the step / alone",
    series = series, references = { { y = 1, label = "as alone" } },
    caption = { what = ("SM cycles of the grouped GEMMs inside the training step, over those of the same launch alone "
      .. "on the same data, layer 1 of %d"):format(deepest), n = ("%d pairs"):format(rounds), statistic = "median" },
  } })
end

return cycles
