-- Kernels look at group_offsets on the GPU: bad ones write nothing and become an error at the next
-- wait or launch, with the words of the CPU kernels, and the GPU stays usable.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local on_gpu = dofile("tests/lua/gpu.lua")
local device, gpu, on_host, same = on_gpu.device, on_gpu.tensor, on_gpu.on_host, on_gpu.same

local K, N = 136, 264

local function i32(list) return lab.tensor_from("cpu", "i32", list) end

-- fn() raises an error that holds `words` literally.
local function refused(fn, words, name)
  local ok, message = pcall(fn)
  message = ok and "no error was raised" or tostring(message)
  t.ok(message:find(words, 1, true), name .. (message:find(words, 1, true) and "" or ": " .. message))
end

-- A launch of a variant over `groups` groups and `rows` rows. Outputs start as poison.
local makers = {
  m_grouped_gemm = function(rows, groups, extra)
    return { a = gpu("bf16", rows, K):normal { seed = 1 }, d = gpu("bf16", rows, N),
      b = (extra.layout == "nt" and gpu("bf16", groups, N, K) or gpu("bf16", groups, K, N)):normal { seed = 2 } }
  end,
  k_grouped_gemm = function(rows, groups)
    return { a = gpu("bf16", rows, K):normal { seed = 1 }, b = gpu("bf16", rows, N):normal { seed = 2 },
      d = gpu("fp32", groups, K, N) }
  end,
}

local function problem(op, variant, rows, groups, extra)
  local self = makers[op](rows, groups, extra)
  self.offsets = gpu("i32", groups + 1)
  local arguments = { op = op, variant = variant, group_offsets = self.offsets, a = self.a, b = self.b, d = self.d }
  for key, value in pairs(extra) do arguments[key] = value end
  self.plan = lab.check(lab.plan(arguments))
  self.poison = on_host(self.d)
  function self.set(list) self.offsets:copy(i32(list)) end
  function self.untouched() return same(on_host(self.d), self.poison) end
  return self
end

local function check(op, variant, extra)
  local who = op .. "/" .. variant
  local name = who .. (extra.layout and " " .. extra.layout or "")
  local good = { 0, 100, 100, 230, 300 }
  local p = problem(op, variant, 305, #good - 1, extra)
  p.set(good)
  p.plan:launch()
  device:synchronize()
  local right = on_host(p.d)
  t.ok(not same(right, p.poison), name .. ": good offsets")

  local INT_MAX, INT_MIN = (1 << 31) - 1, -(1 << 31)
  local cases = {
    { "does not start with 0", { 1, 100, 100, 230, 300 }, "group_offsets[0] is 1; the first group starts at 0" },
    { "starts below 0", { -1, 100, 100, 230, 300 }, "group_offsets[0] is -1; the first group starts at 0" },
    { "decreases", { 0, 100, 99, 230, 300 },
      "group_offsets[2] is 99, below group_offsets[1] = 100; offsets must not decrease" },
    { "decreases twice: the first counts", { 0, 100, 230, 200, 100 },
      "group_offsets[3] is 200, below group_offsets[2] = 230; offsets must not decrease" },
    { "one beyond the end", { 0, 100, 100, 230, 306 }, "group_offsets[4] is 306, beyond the 305 rows of the tensor" },
    { "far beyond the end", { 0, INT_MAX, INT_MAX, INT_MAX, INT_MAX },
      "group_offsets[4] is 2147483647, beyond the 305 rows of the tensor" },
    { "a huge group, then back", { 0, INT_MAX, 0, INT_MAX, 300 },
      "group_offsets[2] is 0, below group_offsets[1] = 2147483647; offsets must not decrease" },
    { "the least there is", { 0, INT_MIN, INT_MAX, INT_MIN, INT_MAX },
      "group_offsets[1] is -2147483648, below group_offsets[0] = 0; offsets must not decrease" },
  }
  for _, case in ipairs(cases) do
    local what, list, words = name .. ": " .. case[1], case[2], case[3]
    p.set(list)
    p.d:poison()
    p.plan:launch()
    refused(function() device:synchronize() end, who .. ": " .. words .. "; that launch wrote nothing", what)
    t.ok(p.untouched(), what .. ": nothing is written")
    device:synchronize()
    p.set(good)
    p.plan:launch()
    device:synchronize()
    t.ok(same(on_host(p.d), right), what .. ": the next launch is right")
  end
end

-- Each call that tells of a fault, and that it is told once.
local function check_tellers(op, variant, extra)
  local name = op .. "/" .. variant
  local p = problem(op, variant, 305, 4, extra)
  local words = name .. ": group_offsets[2] is 99, below group_offsets[1] = 100"
  p.set { 0, 100, 99, 230, 300 }
  local stream, start, stop = device:stream(), device:event(), device:event()

  p.plan:launch(stream)
  refused(function() stream:synchronize() end, words, name .. ": told by the wait for another stream")
  p.plan:launch()
  refused(function() p.d:totable() end, words, name .. ": told by a copy to the host")
  local large = gpu("u8", 1 << 20):fill(0)
  p.plan:launch()
  refused(function() large:totable() end, words, name .. ": told by a large copy to the host")
  start:record()
  p.plan:launch()
  stop:record()
  refused(function() start:elapsed_us(stop) end, words, name .. ": told by the wait for events")
  t.ok(start:elapsed_us(stop) > 0, name .. ": once")
  p.plan:launch()
  lab.sleep(0.2)
  refused(function() p.plan:launch() end, words, name .. ": told by the next launch")
  device:synchronize()
  t.ok(p.untouched(), name .. ": which does not happen")

  -- Many groups: faults at the ends of what each thread looks at, in both directions.
  local groups = 1024
  local many = problem(op, variant, 2 * groups, groups, extra)
  for _, at in ipairs { 1, 31, 32, 127, 128, 255, 256, 383, 384, 385, 768, 1023, 1024 } do
    local list = {}
    for g = 0, groups do list[g + 1] = 2 * g end
    list[at + 1] = list[at] - 1
    many.set(list)
    many.plan:launch()
    refused(function() device:synchronize() end, ("group_offsets[%d] is %d, below group_offsets[%d] = %d"):format(at,
      2 * at - 3, at - 1, 2 * at - 2), ("%s: offset %d of 1024"):format(name, at))
  end
  t.ok(many.untouched(), name .. ": nothing is written")
end

local function check_graph(op, variant, extra)
  local name = op .. "/" .. variant .. " in a graph"
  local good = { 0, 100, 100, 230, 300 }
  local first, second = problem(op, variant, 305, 4, extra), problem(op, variant, 305, 4, extra)
  first.set(good)
  second.set(good)
  local graph = lab.check(device:graph(function()
    first.plan:launch()
    second.plan:launch()
  end))
  graph:launch()
  device:synchronize()
  local right = on_host(second.d)
  t.ok(not same(right, second.poison), name .. ": good offsets")
  for round = 1, 3 do
    first.set { 0, 100, 300, 200, 300 }
    second.set { 0, 100, 100, 230, 305 + round }
    first.d:poison()
    second.d:poison()
    graph:launch()
    refused(function() device:synchronize() end, "group_offsets[3] is 200, below group_offsets[2] = 300",
      ("%s, replay %d: the first fault is told"):format(name, round))
    device:synchronize()
    t.ok(first.untouched() and second.untouched(), name .. ": nothing is written")
    first.set(good)
    graph:launch()
    refused(function() device:synchronize() end, ("group_offsets[4] is %d, beyond the 305 rows"):format(305 + round),
      ("%s, replay %d: the second launch alone"):format(name, round))
    t.ok(same(on_host(first.d), right) and second.untouched(), name .. ": the good launch wrote, the bad one did not")
    second.set(good)
    graph:launch()
    device:synchronize()
    t.ok(same(on_host(second.d), right), name .. ": and is right when its offsets are")
  end
  second.set { 3, 100, 100, 230, 300 }
  graph:launch()
  lab.sleep(0.2)
  refused(function() graph:launch() end, "group_offsets[0] is 3", name .. ": told by the next replay")
end

for _, variant in ipairs { "sm90_ragged" } do
  for _, layout in ipairs { "nt", "nn" } do check("m_grouped_gemm", variant, { layout = layout }) end
  check_tellers("m_grouped_gemm", variant, { layout = "nt" })
  check_graph("m_grouped_gemm", variant, { layout = "nt" })
end
for _, test in ipairs { check, check_tellers, check_graph } do test("k_grouped_gemm", "sm90_ragged", {}) end
check("m_grouped_gemm", "smxx_plain", { layout = "nt" })
check("k_grouped_gemm", "smxx_plain", {})

t.done()
