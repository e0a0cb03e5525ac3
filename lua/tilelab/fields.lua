-- Tables of named settings, and names in general: what is unknown is an error that names the
-- nearest known one.

local core = require "tilelab_core"

local fields = {}

-- Raises unless every key of `settings` is in the list `names`; with names.positions = n, the
-- positions 1 to n are allowed too. `what` says whose settings they are; the position in the
-- message is `level` calls up, as for error.
function fields.check(what, settings, names, level)
  level = (level or 1) + 1
  if type(settings) ~= "table" then
    error(("%s takes a table of settings, not a %s"):format(what, type(settings)), level)
  end
  local known = {}
  for _, name in ipairs(names) do known[name] = true end
  for i = 1, names.positions or 0 do known[i] = true end
  for key in pairs(settings) do
    if not known[key] then
      local nearest = type(key) == "string" and core.nearest(key, names)
      error(("%s has no field '%s'; %s"):format(what, tostring(key),
        nearest and ("did you mean '%s'?"):format(nearest)
          or "there are: " .. table.concat(names, ", ")), level)
    end
  end
end

-- The keys of a table of texts, sorted.
function fields.names(map)
  local names = {}
  for name in pairs(map) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- How a message about an unknown name ends: "; did you mean 'x'?" where one of `names` is near.
function fields.hint(name, names)
  local nearest = core.nearest(name, names)
  return nearest and ("; did you mean '%s'?"):format(nearest) or ""
end

-- Raises unless `value` is an integer from `low` on.
function fields.check_integer(what, value, low, level)
  if math.type(value) ~= "integer" or value < low then
    error(("%s must be an integer from %d on, not %s"):format(what, low, tostring(value)),
      (level or 1) + 1)
  end
end

return fields
