-- Memory, copies, streams, events, graphs and errors of a GPU.

local lab = require "tilelab"
local t = dofile("tests/lua/tap.lua")
local device = lab.device "cuda"
local MIB = 1 << 20

local function on_gpu(host)
  return lab.check(lab.tensor { device = device, dtype = host.dtype, shape = host.shape }):copy(host)
end

local function on_host(source)
  return lab.tensor { dtype = source.dtype, shape = source.shape }:copy(source)
end

local function same(a, b) return lab.compare(a, b).mismatched_bits == 0 end

local function bytes(count, seed) return lab.tensor { dtype = "u8", shape = { count } }:bits { seed = seed } end

-- --- the device --------------------------------------------------------------------------------

t.is(device.name, "cuda:0", "name")
t.is(lab.device "cuda:0", device, "one device, however it is called")
t.ok(device.arch >= 50 and device.multiprocessors > 0, "arch and SMs")
t.ok(device.memory_bytes > 1 << 30, "memory")
local found = false
for _, listed in ipairs(lab.devices()) do found = found or listed.name == "cuda:0" and listed.model == device.model end
t.ok(found, "listed by its model: " .. device.model)
local none, reason, code = lab.device "cuda:99"
t.ok(none == nil and code == "unsupported", "no hundredth GPU")
t.like(reason, "cuda:99", "named in the message")
local details = device:details()
t.like(details.cuda_runtime, "^13%.", "CUDA runtime " .. tostring(details.cuda_runtime))
for _, key in ipairs { "driver_version", "gpu_uuid", "ecc", "mig" } do
  t.ok(details[key], ("%s %s"):format(key, tostring(details[key])))
end
local state, why = device:state()
t.ok(state and state.power_w > 10 and state.temperature_c > 10 and state.sm_clock_mhz > 100,
  "state" .. (why and ": " .. why or ""))

-- --- copies, around the limits of small ones and of chunks ------------------------------------

for _, base in ipairs { 1, 256, 256 << 10, 8 * MIB, 16 * MIB, 24 * MIB } do
  for _, more in ipairs { -1, 0, 1 } do
    local count = base + more
    if count > 0 then
      local host = bytes(count, count)
      local copy = on_gpu(host)
      local twin = lab.tensor { device = device, dtype = "u8", shape = { count } }:copy(copy)
      t.ok(same(on_host(twin), host), ("%d bytes in, across and out"):format(count))
    end
  end
end
do
  local host, target = bytes(20 * MIB, 3), lab.tensor { device = device, dtype = "u8", shape = { 20 * MIB + 7 } }
  target:fill(0)
  target:view(3, { 20 * MIB }):copy(host)
  t.ok(same(on_host(target:view(3, { 20 * MIB })), host), "a copy to an odd address")
  local edges = on_host(target)
  t.ok(edges:get(3) == 0 and edges:get(20 * MIB + 4) == 0, "touches nothing beside it")
end

-- --- the same bits as on the CPU --------------------------------------------------------------

for _, dtype in ipairs { "fp32", "bf16", "fp64" } do
  for _, distribution in ipairs { "normal", "uniform", "bits" } do
    local shape = { 1000, 1001 }
    local host, gpu = lab.tensor { dtype = dtype, shape = shape },
      lab.tensor { device = device, dtype = dtype, shape = shape }
    host[distribution](host, { seed = 5, sequence = 9 })
    gpu[distribution](gpu, { seed = 5, sequence = 9 })
    t.ok(same(on_host(gpu), host), ("%s of %s"):format(distribution, dtype))
  end
end
do
  local x = lab.tensor { device = device, shape = { 3, 100 } }
  t.ok(x:totable()[300] ~= x:totable()[300], "fresh tensors are poison")
  t.is(x:fill(1.5):totable()[299], 1.5, "fill")
  t.is(x:fill(0):totable()[300], 0.0, "fill with zeros")
  local values = {}
  for i = 1, 300 do values[i] = i end
  t.is(x:assign(values):totable()[299], 299.0, "assign")
end

-- --- the pool ----------------------------------------------------------------------------------

collectgarbage()
collectgarbage()
device:synchronize()
local before = device:memory()
do
  local big = lab.tensor { device = device, dtype = "u8", shape = { 256 * MIB } }
  device:synchronize()
  t.ok(device:memory().used_bytes >= before.used_bytes + 256 * MIB, "an allocation is counted")
  big:close()
  device:synchronize()
  local after = device:memory()
  t.is(after.used_bytes, before.used_bytes, "a free too")
  local again = lab.tensor { device = device, dtype = "u8", shape = { 256 * MIB } }
  device:synchronize()
  t.is(device:memory().reserved_bytes, after.reserved_bytes, "the next one reuses the pool")
  again:close()
end

-- --- out of memory, and on ----------------------------------------------------------------------

do
  local total = device:memory().total_bytes
  local tensor, message, kind = lab.tensor { device = device, dtype = "u8", shape = { 2 * total } }
  t.ok(tensor == nil and kind == "memory", "twice the memory is refused")
  t.like(message, ("%d bytes"):format(2 * total), "with the bytes asked")
  t.like(message, "%d+ of %d+ bytes are free", "and those free")
  local most = math.floor(0.6 * device:memory().free_bytes)
  local first = lab.check(lab.tensor { device = device, dtype = "u8", shape = { most } })
  local second, _, refused = lab.tensor { device = device, dtype = "u8", shape = { most } }
  t.ok(second == nil and refused == "memory", "two of 60 % do not fit")
  first:close()
  local third = lab.tensor { device = device, dtype = "u8", shape = { most } }
  t.ok(third, "once the first is closed, the second fits")
  if third then third:close() end
  local host = bytes(1000, 1)
  t.ok(same(on_host(on_gpu(host)), host), "the device goes on")
end

-- --- streams and events ------------------------------------------------------------------------

do
  local x, y = lab.tensor { device = device, shape = { 8 * MIB } }, lab.tensor { device = device, shape = { 8 * MIB } }
  local plan = lab.check(lab.plan { op = "probe_copy", variant = "smxx_vec16", src = x, dst = y })
  local stream, right = device:stream(), true
  for i = 1, 50 do
    x:poison()
    x:copy(lab.tensor { shape = { 8 * MIB }, fill = i })
    plan:launch(stream)
    right = right and y:rows(8 * MIB, 8 * MIB):totable()[1] == i
  end
  t.ok(right, "memory functions wait for other streams, and the other way round")
  -- Collected while its stream still uses it: the memory must not be handed out too early.
  for i = 1, 20 do
    local source = lab.tensor { device = device, shape = { 8 * MIB } }:fill(0)
    local copy = lab.check(lab.plan { op = "probe_copy", variant = "smxx_vec16", src = source, dst = y })
    for _ = 1, 10 do copy:launch(stream) end
    copy:close()
    source:close()
    lab.tensor { device = device, shape = { 8 * MIB } }:close() -- poison, perhaps at the same address
    right = right and y:rows(i, i):totable()[1] == 0
  end
  t.ok(right, "freed memory is reused only after its streams have passed")
  stream:close()

  local start, stop = device:event(), device:event()
  local source = lab.tensor { device = device, dtype = "u8", shape = { 1024 * MIB } }
  local target = lab.tensor { device = device, dtype = "u8", shape = { 1024 * MIB } }
  target:copy(source)
  start:record()
  target:copy(source)
  stop:record()
  local us = start:elapsed_us(stop)
  t.ok(us > 2 * 1024 * MIB / 20e6 and us < 1e5, ("a copy of a GiB takes %.0f us, %.2f TB/s"):format(us,
    2 * 1024 * MIB / us / 1e6))
  t.is(start:elapsed_us(start), 0.0, "no time from an event to itself")
end

-- --- flush and clock ---------------------------------------------------------------------------

device:flush_l2()
device:flush_l2_clean()
device:clock_mark(1)
for _ = 1, 5 do device:flush_l2() end
device:clock_mark(2)
local mhz = device:clock_mhz(1, 2)
t.ok(mhz > 200 and mhz < 3000, ("the SM clock is %.0f MHz (NVML: %s)"):format(mhz,
  tostring(state and state.sm_clock_mhz)))
t.error(function() device:clock_mhz(2, 1) end, "in order", "marks the wrong way round")
t.error(function() device:clock_mhz(1, 16) end, "never made", "a mark that was not made")

-- --- graphs ------------------------------------------------------------------------------------

do
  local function gpu(dtype, ...) return lab.tensor { device = device, dtype = dtype, shape = { ... } } end
  local a, b, d, e = gpu("bf16", 256, 512), gpu("bf16", 128, 512), gpu("fp32", 256, 128), gpu("fp32", 256, 128)
  a:normal { seed = 1 }
  b:normal { seed = 2 }
  local plan = lab.check(lab.plan { op = "gemm", variant = "cublaslt_dense", a = a, b = b, d = d })
  plan:launch()
  local first = on_host(d)
  d:poison()
  local graph = lab.check(device:graph(function()
    plan:launch()
    e:copy(d)
    d:fill(0)
  end))
  t.ok(d:totable()[1] ~= d:totable()[1], "capturing runs nothing")
  graph:launch()
  t.ok(same(on_host(e), first), "a replay gives what a launch gives")
  t.is(d:totable()[77], 0.0, "in order")
  a:normal { seed = 3 }
  graph:launch()
  plan:launch()
  t.ok(same(on_host(e), on_host(d)) and not same(on_host(e), first), "also on other inputs")
  local want = on_host(d)
  plan:close()
  a, b, d = a:close(), b:close(), d:close() -- luacheck: ignore 311
  collectgarbage()
  local junk = {} -- luacheck: ignore 241
  for i = 1, 40 do junk[i] = gpu("fp32", 256, 512) end
  graph:launch()
  t.ok(same(on_host(e), want), "a graph holds the memory of its tensors")
  t.is(graph.device, device, "graph.device")
  graph:close()
  t.error(function() graph:launch() end, "closed", "a closed graph")

  t.error(function() device:graph(function() end) end, "nothing was captured", "an empty graph")
  t.error(function() device:graph(function() gpu("fp32", 4) end) end, "allocation cannot be captured",
    "an allocation in a graph")
  t.error(function() device:graph(function() e:totable() end) end, "copy to the host cannot be captured",
    "a copy to the host in a graph")
  t.error(function() device:graph(function() device:synchronize() end) end, "cannot be captured", "a wait in a graph")
  t.error(function() device:graph(function() error "inside" end) end, "inside", "an error comes through")
  t.error(function() device:graph(function() device:graph(function() end) end) end, "already", "a graph in a graph")
  local fill = device:graph(function() e:fill(0) end)
  e:poison()
  fill:launch()
  t.is(e:totable()[1], 0.0, "and the next capture works")
end

-- --- what stays after 2000 rounds of everything -------------------------------------------------

do
  local function round()
    local x = lab.tensor { device = device, shape = { 1000 } }:fill(0)
    local event, stream = device:event(), device:stream()
    event:record(stream)
    local graph = device:graph(function() x:fill(0) end)
    graph:launch(stream)
    graph:close()
    event:close()
    stream:close()
    x:close()
  end
  for _ = 1, 100 do round() end
  collectgarbage()
  device:synchronize()
  local settled = device:memory()
  for _ = 1, 2000 do round() end
  collectgarbage()
  device:synchronize()
  local now = device:memory()
  t.is(now.used_bytes, settled.used_bytes, "no tensor is lost")
  t.ok(now.free_bytes >= settled.free_bytes - 8 * MIB, ("no device memory either (%d bytes fewer)"):format(
    settled.free_bytes - now.free_bytes))
end
t.done()
