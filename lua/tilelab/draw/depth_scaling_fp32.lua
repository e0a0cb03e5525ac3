-- depth_scaling_fp32.tsv: as depth_scaling.tsv, in the published trainer's precision
-- (lua/tilelab/depth/sides.lua).
return { schema = require("tilelab.depth.study").schema }
