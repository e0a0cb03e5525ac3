-- NVTX ranges around launches: work with and without a tool attached.
local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local core = require "tilelab_core"
local device = lab.device "cuda"

local src = lab.tensor { device = device, dtype = "fp32", shape = { 4096 }, fill = 2 }
local dst = lab.tensor { device = device, dtype = "fp32", shape = { 4096 }, fill = 0 }
local plan = lab.plan { op = "probe_copy", variant = "smxx_vec16", src = src, dst = dst }
do
  local _ <close> = lab.nvtx "phase"
  lab.nvtx_call("op", function() plan:launch() end)
  t.is(core.nvtx_depth(), 1, "one range is open")
end
t.is(core.nvtx_depth(), 0, "and none after it")
t.is(lab.compare(dst, src, { absolute = 0 }).mismatched_bits, 0, "the launch inside ran")

local count = 100000
local start = lab.time_us()
for _ = 1, count do lab.nvtx("x"):close() end
local each_us = (lab.time_us() - start) / count
t.ok(each_us < 5, ("a range costs %.3f us"):format(each_us))

t.done()
