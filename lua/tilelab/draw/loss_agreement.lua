-- loss_agreement.tsv: losses of `tiny` on the GPU against the CPU in fp32, a row an update.
--
--   precision routing backend   what trained on the GPU, 2 layers
--   update       from 1
--   loss_ratio   loss over the CPU's (rapidgemm) at the same update and routing
--   loss cpu_loss

local draw = require "tilelab.draw"

local agreement = {
  schema = {
    { "precision", "text", { "bf16", "fp32" } }, { "routing", "text", { "model", "multinomial" } },
    { "backend", "text" }, { "update", "integer" }, { "loss_ratio", "number" }, { "loss", "number" },
    { "cpu_loss", "number" },
  },
}

-- The largest difference of any backend at each update, a series a precision and routing.
function agreement.draw(data, options)
  local series, by_name = {}, {}
  for _, row in ipairs(data.rows) do
    local name, update = ("%s, routing %s"):format(row.precision, row.routing), data:number(row, "update")
    local one = by_name[name]
    if not one then
      one = { name = name, points = {} }
      by_name[name], series[#series + 1] = one, one
    end
    one.points[update] = one.points[update] or { x = update, y = 0 }
    local apart = 100 * math.abs(data:number(row, "loss_ratio") - 1)
    one.points[update].y = math.max(one.points[update].y, apart)
  end
  return draw.figures(data, options, { {
    name = "loss_agreement", kind = "lines", xlabel = "Update", ylabel = "Difference of the loss (%)", series = series,
    zero = true,
    caption = { what = "Losses of the small model on the GPU against the CPU's in fp32 at the same update, from "
        .. "the same weights and tokens, by precision and routing",
      n = ("%d runs on the GPU"):format(#data.rows / #series[1].points),
      statistic = "largest difference of any backend, of the CPU's loss" },
  } })
end

return agreement
