local lab = dofile((arg[0]:match("^.*/") or "./") .. "../lua/bootstrap.lua")

-- Question: what does it cost the host to submit a launch, and how much of that is Lua? The same
-- short kernel from a loop in C, from a loop in Lua, and as a graph; every round each once.

local LAUNCHES = 400 -- in flight at once: below what the driver queues

local function time_per_launch(device, submit)
  device:synchronize()
  local start = lab.time_us()
  submit()
  local time = (lab.time_us() - start) / LAUNCHES
  device:synchronize()
  return time
end

lab.main(function()
  local opt = lab.options {
    summary = "Host time of a launch from C, from Lua and from a graph.",
    { "device", "string", "cuda", "GPU" },
    { "rounds", "integer", 100, "rounds, each path once a round", min = 10 },
    { "out", "string", "out/launch_overhead", "folder for the results", value = "FOLDER" },
    { "record", "boolean", false, "keep the result under experiments/recorded" },
  }
  local device = lab.check(lab.gpu(opt.device))
  local plan = lab.check(lab.plan { op = "probe_occupancy", variant = "smxx_stay", threads = 32, cycles = 0,
    dst = lab.check(lab.tensor { device = device, dtype = "i32", shape = { 1 } }):fill(0) })
  local graph = lab.check(device:graph(function() plan:launch(nil, LAUNCHES) end))
  local order = lab.random(1, 1)
  local samples = { c_call = {}, lua_call = {}, graph_replay = {}, lua_added = {}, counters = {} }
  local paths = {
    { "c_call", function() plan:launch(nil, LAUNCHES) end },
    { "lua_call", function() for _ = 1, LAUNCHES do plan:launch() end end },
    { "graph_replay", function() graph:launch() end },
  }
  for round = -2, opt.rounds do -- three rounds of warm-up
    for _, path in ipairs(order:shuffle(paths)) do
      local time = time_per_launch(device, path[2])
      if round > 0 then samples[path[1]][round] = time end
    end
    if round > 0 then samples.lua_added[round] = samples.lua_call[round] - samples.c_call[round] end
  end
  local function count() plan:launch() end
  for round = 0, opt.rounds do -- the first call opens the session
    local start = lab.time_us()
    lab.check(lab.profile { device = device, groups = { "PAPER" }, run = count })
    if round > 0 then samples.counters[round] = lab.time_us() - start end
  end
  local out = lab.recorded.open { experiment = "launch_overhead", device = device, out = opt.out,
    kernels = { "probe" }, record = opt.record, seed = 1 }
  for _, path in ipairs { "c_call", "lua_call", "lua_added", "graph_replay", "counters" } do
    local stats = lab.stats(samples[path])
    out:row { path = path, launches = path == "graph_replay" and LAUNCHES or 1, statistic = "median",
      time_us = stats.median, time_us_lo = stats.median_lo, time_us_hi = stats.median_hi, samples = stats.n }
    print(("%-14s %9.3f us [%.3f, %.3f]"):format(path, stats.median, stats.median_lo, stats.median_hi))
  end
  lab.draw.print(lab.draw.record(out:close(), { folder = opt.out }))
end)
