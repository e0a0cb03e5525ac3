-- Rows and lists of depth-scaling records as numbers.

local rows = {}

local NUMBERS = { "layers", "repetition", "update", "tokens", "time_s", "loss" }

-- Rows of an updates.tsv as numbers; raises file:line for what is none.
function rows.numbered(data)
  local list = {}
  for i, row in ipairs(data.rows) do
    list[i] = { backend = row.backend }
    for _, column in ipairs(NUMBERS) do list[i][column] = data:number(row, column) end
  end
  return list
end

-- "1,2" -> {"1", "2"}, each item through `convert` of its number where it is given.
function rows.list(text, convert)
  local items = {}
  for item in text:gmatch "[^,]+" do items[#items + 1] = convert and convert(tonumber(item)) or item end
  return items
end

return rows
