-- Plain text tables: aligned columns in ASCII.

local text_table = {}

-- cells: a list of rows, each a list of texts of the same length, the first the header. Columns
-- named in `right` (set of positions) are aligned to the right. Returns lines joined by newlines,
-- without trailing spaces, the header underlined.
function text_table.align(cells, right)
  local widths, lines = {}, {}
  for _, row in ipairs(cells) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i] or 0, #cell) end
  end
  local function put(row)
    local line = {}
    for i, cell in ipairs(row) do
      local padding = string.rep(" ", widths[i] - #cell)
      line[i] = right[i] and padding .. cell or cell .. padding
    end
    lines[#lines + 1] = (table.concat(line, "  "):gsub("%s+$", ""))
  end
  put(cells[1])
  local rule = {}
  for i, width in ipairs(widths) do rule[i] = string.rep("-", width) end
  put(rule)
  for i = 2, #cells do put(cells[i]) end
  return table.concat(lines, "\n")
end

return text_table
