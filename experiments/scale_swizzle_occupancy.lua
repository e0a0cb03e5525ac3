local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: is occupancy what limits the kernels that bring e8m0 scales into their blocked layout, or is it
-- coalescing, bank conflicts, bytes in flight, integer work, launch latency? Every variant at the published
-- shapes, block size and tiles per block swept, against copies of as many bytes; then one thing at a time.

local ROWS, COLUMNS, GROUPS = { 8192, 7168, 5120, 2048 }, { 4096, 512 }, { 8, 32 }

local OTHERS = { -- grouping, rows, columns, groups
  { "m_groups", 131072, 224, 8 }, { "m_groups", 131072, 64, 8 }, { "m_groups", 16640, 160, 8 },
  { "per_group_3d", 2560, 96, 32 }, { "dense", 32768, 96, 1 },
}

local CONTROLLED = { -- where one thing is varied at a time
  { "k_groups", 8192, 4096, 8 }, { "k_groups", 8192, 512, 8 }, { "m_groups", 131072, 224, 8 },
  { "m_groups", 131072, 64, 8 }, { "m_groups", 16640, 160, 8 },
}

lab.main(function()
  local opt = lab.options {
    summary = "Scales to the blocked layout: what limits the kernels, by timing, counters and controlled series.",
    { "device", "string", "cuda", "GPU" },
    { "only", "string", "", "problems whose name has this in it, such as k_groups or 512); default: all",
      value = "TEXT" },
    { "rounds", "integer", 40, "every setting once a round", min = 6 },
    { "clean_rounds", "integer", 20, "rounds with clean lines in L2", min = 6 },
    { "calls", "integer", 11, "calls timed from the host", min = 3 },
    { "counters", "boolean", true, "do not count, which takes most of the time" },
    { "preset", "string", nil, "width of the figures; default: each one's own",
      choices = { "acm-column", "acm-full", "ieee-column", "neurips" } },
    { "out", "string", "out/scale_swizzle", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the result under experiments/recorded" },
  }
  if opt.record and opt.only ~= "" then lab.usage_error("--only measures a part; --record keeps the whole") end
  local device = lab.check(lab.gpu(opt.device))
  local problem = require "tilelab.scale_swizzle.problem"
  local function chosen(list)
    local kept = {}
    for _, p in ipairs(list) do
      if problem.name(p):find(opt.only, 1, true) then kept[#kept + 1] = p end
    end
    return kept
  end
  local problems, controlled = {}, {}
  local function add(list, grouping, rows, columns, groups)
    list[#list + 1] = problem.new { grouping = grouping, rows = rows, columns = columns, groups = groups }
  end
  for _, columns in ipairs(COLUMNS) do
    for _, rows in ipairs(ROWS) do
      for _, groups in ipairs(GROUPS) do add(problems, "k_groups", rows, columns, groups) end
    end
  end
  for _, p in ipairs(OTHERS) do add(problems, p[1], p[2], p[3], p[4]) end
  for _, p in ipairs(CONTROLLED) do add(controlled, p[1], p[2], p[3], p[4]) end
  return require("tilelab.scale_swizzle.study").run { device = device, problems = chosen(problems),
    series_problems = chosen(controlled), rounds = opt.rounds, clean_rounds = opt.clean_rounds, calls = opt.calls,
    counted = opt.counters, out = opt.out, record = opt.record, preset = opt.preset }
end)
