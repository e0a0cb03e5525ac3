-- Progress of long work, on standard error: one line that rewrites itself on a terminal, and plain
-- lines at most every `every` seconds elsewhere, so that a log stays short.

local core = require "tilelab_core"
local fields = require "tilelab.fields"

local REWRITE_S = 0.1 -- a terminal need not be written to more often

local progress = {}
local Progress = {}
Progress.__index = Progress

local open_line -- the progress whose line the terminal's cursor stands in

local function duration(seconds)
  if seconds ~= seconds or seconds >= 360000 then return "?" end
  local whole = math.floor(seconds + 0.5)
  if whole >= 3600 then
    return ("%d:%02d:%02d"):format(whole // 3600, whole // 60 % 60, whole % 60)
  end
  return ("%d:%02d"):format(whole // 60, whole % 60)
end

local function rate_text(rate)
  local decimals = rate >= 100 and 0 or rate >= 10 and 1 or 2
  return ("%." .. decimals .. "f"):format(rate)
end

-- Ends a line that is being rewritten, so that other output begins on its own line.
function progress.break_line()
  if open_line then
    open_line.stream:write("\n")
    open_line.stream:flush()
    open_line = nil
  end
end

-- lab.progress{total =, label = "", unit = "steps", every = 10, stream = io.stderr,
--   terminal = whether the stream is one, clock = a function giving seconds}
--   -> p; p:step([count = 1[, note]]), p:done(). p closes itself as a <close> variable.
function progress.progress(settings)
  fields.check("lab.progress", settings,
    { "total", "label", "unit", "every", "stream", "terminal", "clock" }, 2)
  fields.check_integer("total of lab.progress", settings.total, 0, 2)
  local stream = settings.stream or io.stderr
  local terminal = settings.terminal
  if terminal == nil then terminal = io.type(stream) == "file" and core.is_tty(stream) end
  local clock = settings.clock or function() return core.time_us() * 1e-6 end
  local start = clock()
  return setmetatable({
    total = settings.total, label = settings.label or "", unit = settings.unit or "steps",
    every = settings.every or 10, stream = stream, terminal = terminal, clock = clock,
    start = start, last = start, count = 0, note = "", shown = 0, finished = false,
  }, Progress)
end

function Progress:text(now)
  local elapsed, parts = now - self.start, {}
  if self.label ~= "" then parts[#parts + 1] = self.label end
  parts[#parts + 1] = ("%d/%d"):format(self.count, self.total)
  if self.count > 0 and elapsed > 0 then
    local rate = self.count / elapsed
    parts[#parts + 1] = ("%s %s/s"):format(rate_text(rate), self.unit)
    parts[#parts + 1] = self.count < self.total
      and "ETA " .. duration((self.total - self.count) / rate) or "in " .. duration(elapsed)
  end
  if self.note ~= "" then parts[#parts + 1] = self.note end
  return table.concat(parts, "  ")
end

function Progress:show(now)
  local text = self:text(now)
  if self.terminal then
    local width = io.type(self.stream) == "file" and core.terminal_width(self.stream) or 80
    if open_line ~= self then progress.break_line() end
    self.stream:write("\r", text:sub(1, width - 1), "\27[K")
    open_line = self
  else
    self.stream:write(text, "\n")
  end
  self.stream:flush()
  self.last, self.shown = now, self.count
end

-- `count` more steps are done; `note` (a loss, say) is shown until the next one.
function Progress:step(count, note)
  self.count = self.count + (count or 1)
  self.note = note or self.note
  local now = self.clock()
  if now - self.last >= (self.terminal and REWRITE_S or self.every) then self:show(now) end
end

-- Shows the last state and ends the line. Further calls do nothing.
function Progress:done()
  if self.finished then return end
  self.finished = true
  if self.shown ~= self.count then self:show(self.clock()) end
  if open_line == self then progress.break_line() end
end

Progress.__close = Progress.done

return progress
