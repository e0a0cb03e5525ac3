-- NVTX ranges: names on the timeline of nsys and in ncu's filter.
--
--   local range <close> = lab.nvtx(name)      in modules
--   lab.nvtx_call(name, fn, ...) -> fn(...)   in experiments, which parse under Lua 5.1
--   lab.nvtx_phases([on]) -> whether a model's phases get ranges of their own: off unless the
--       environment has TILELAB_NVTX=1, since each costs two calls around a launch
--
-- Without a tool attached a range costs a fraction of a microsecond.

local core = require "tilelab_core"

local nvtx = { open = core.nvtx }

local phases = os.getenv "TILELAB_NVTX" == "1"

function nvtx.phases(on)
  if on ~= nil then phases = on and true or false end
  return phases
end

function nvtx.call(name, fn, ...)
  local range <close> = core.nvtx(name)
  return fn(...)
end

return nvtx
