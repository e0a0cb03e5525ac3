-- depth_scaling.tsv: the updates of a depth-scaling study, a row an update (updates.tsv of its folder).
--
--   gpus experts_per_gpu model precision routing    what was trained, and on how much; gpus is 0 on the CPU
--   backend layers repetition update    which run, and which update of it
--   tokens time_s    of the update; the time from one synchronisation of the device to the next
--   loss             mean cross-entropy over the update's tokens
--   load_max_over_mean experts_empty    of the update's last micro-batch: the fullest expert's rows over the
--                    mean, and experts without rows; means over the layers

local presets = require "tilelab.model.presets"
local published = require "tilelab.depth.published"
local report = require "tilelab.depth.report"
local rows_of = require "tilelab.depth.rows"
local study = require "tilelab.depth.study"

local depth = { schema = study.schema }

-- The study's results with its default settings.
local function analyse(data)
  local from = data.provenance
  return report.analyse(data, { warmup = published.WARMUP, backends = rows_of.list(from.flag_backends),
    layers = rows_of.list(from.flag_layers, math.tointeger), seed = math.tointeger(tonumber(from.flag_seed)),
    full_depth = presets.config(from.flag_model).full_layers })
end

-- The table that the study printed.
function depth.text(data)
  return report.text(data, analyse(data))
end

function depth.draw(data, options)
  local result, info = analyse(data)
  return report.draw(data, result, info, { folder = options.folder, preset = options.preset,
    prefix = "depth_scaling_" })
end

return depth
