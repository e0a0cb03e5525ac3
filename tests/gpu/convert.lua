-- convert on the GPU: the bits of the host's conversion.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local against = dofile("tests/lua/against_cpu.lua")

for _, pair in ipairs { { "fp32", "bf16" }, { "bf16", "fp32" }, { "fp32", "fp32" }, { "bf16", "bf16" } } do
  for _, count in ipairs { 0, 1, 3, 4, 7, 4095, 4096, 4101, 100003 } do
    local x = against.normal(pair[1], count, count)
    local gpu = against.gpu { op = "convert", inputs = { x = x }, outputs = { y = against.host(pair[2], count) } }
    t.ok(against.same(gpu.y, against.host(pair[2], count):convert(x)),
      ("convert: %d elements, %s to %s"):format(count, pair[1], pair[2]))
  end
end

local x = lab.check(lab.tensor { device = against.device, dtype = "fp32", shape = { 9 } })
local y = lab.check(lab.tensor { device = against.device, dtype = "bf16", shape = { 8 } })
local plan = lab.check(lab.plan { op = "convert", variant = "smxx_vec16", x = x:view(1, { 8 }), y = y })
t.error(function() plan:launch() end, "'x' at .* must be aligned to 16 bytes", "a view that begins anywhere")
t.done()
