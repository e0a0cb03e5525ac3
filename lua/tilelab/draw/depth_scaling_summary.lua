-- depth_scaling_summary.tsv: the figures of the main depth-scaling study, a row a figure and backend
-- (summary.tsv of its folder).
--
--   figure    lua/tilelab/depth/analysis.lua explains them: T_1, t_1, dt, R, T_20, gain_R, ...; mfu_1, mfu_2 and
--             mfu_layer are of lua/tilelab/depth/utilisation.lua; study_minutes: host time of all runs, each from
--             the building of its model to its last update; absent where a run went on from a checkpoint
--   backend   or a pair a/b where a is compared with b; "-" of study_minutes
--   value     "-" where it is not defined
--   lo hi     95 % interval; "-" where there is none, inf where it is open
--   unit

local analysis = require "tilelab.depth.analysis"

local summary = { schema = {} }

local KINDS = { figure = "text", backend = "text?", value = "number?", lo = "text?", hi = "text?", unit = "text" }

for i, column in ipairs(analysis.columns) do summary.schema[i] = { column, KINDS[column] } end

return summary
