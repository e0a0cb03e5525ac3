-- tilelab metrics [--chip CHIP] [PATTERN]: everything that a chip can count. Needs CUPTI, no GPU.

local lab = require "tilelab"
local core = require "tilelab_core"

-- A part of the name; "*" stands for any text.
local function matcher(pattern)
  local lua_pattern = pattern:gsub("[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0"):gsub("%*", ".*")
  return function(name) return name:find(lua_pattern) ~= nil end
end

lab.main(function()
  local opt = lab.options { name = "tilelab metrics", arguments = "[PATTERN]",
    summary = "Lists the metrics of a chip, without their roll-ups; * in PATTERN stands for any text.",
    { "chip", "string", "GH100", "the chip: GH100 is Hopper, GB100 Blackwell" },
    { "use", "string", "ranges", "totals of a region, or samples over time", choices = { "ranges", "samples" } },
  }
  if #opt > 1 then lab.usage_error("one pattern at a time, got %d", #opt) end
  local chips = lab.check(core.chips())
  if not table.concat(chips, " "):find("%f[%w]" .. opt.chip .. "%f[^%w]") then
    lab.usage_error("unknown chip '%s'; CUPTI knows %s", opt.chip, table.concat(chips, " "))
  end
  local names, matches = lab.check(core.metric_names(opt.chip, opt.use)), matcher(opt[1] or "")
  local found, width = {}, 0
  for _, name in ipairs(names) do
    if matches(name) then
      found[#found + 1] = name
      width = math.max(width, #name)
    end
  end
  if #found == 0 then
    local nearest = core.nearest(opt[1], names)
    lab.usage_error("no metric of %s matches '%s'%s", opt.chip, opt[1],
      nearest and "; the nearest is " .. nearest or "")
  end
  for _, name in ipairs(found) do
    local metric = lab.check(core.metric_describe(opt.chip, name, opt.use))
    io.write(("%-" .. width .. "s  %s\n"):format(name, metric.description))
  end
end)
