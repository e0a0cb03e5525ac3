-- Lists of launches {phase, plan}: run one by one, or captured into a graph each, which costs the host
-- one call.

local lab = require "tilelab"
local main = require "tilelab.main"

local launches = {}

-- Launches of one phase that follow each other share a range.
local function run_in_ranges(list)
  local i = 1
  while i <= #list do
    local phase = list[i].phase
    local _ <close> = lab.nvtx(phase)
    repeat
      list[i].plan:launch()
      i = i + 1
    until i > #list or list[i].phase ~= phase
  end
end

function launches.run(list)
  if lab.nvtx_phases() then return run_in_ranges(list) end
  for i = 1, #list do list[i].plan:launch() end
end

-- Graphs of lists that wait for nothing on the host: name -> list becomes name -> graph. Or nil and a
-- message where a plan cannot be captured. Kernels should have run before: what a first launch loads
-- cannot be captured.
function launches.capture(device, lists)
  local graphs = {}
  for name, list in pairs(lists) do
    local graph, message = main.attempt(function()
      return lab.check(device:graph(function() launches.run(list) end))
    end)
    if not graph then return nil, message end
    graphs[name] = graph
  end
  return graphs
end

return launches
