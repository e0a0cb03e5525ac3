-- depth_scaling_multinomial.tsv: as depth_scaling.tsv, with experts that a fixed draw loads instead of the
-- router (lua/tilelab/depth/sides.lua).
return { schema = require("tilelab.depth.study").schema }
