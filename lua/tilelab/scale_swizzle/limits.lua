-- What limits the scale-swizzle kernels: sentences computed from scale_swizzle.tsv and scale_swizzle_causes.tsv.
--
--   limits.shown(causes) -> rows of the series `variants` of 8 K groups, 8192 rows: 4096 and 512 columns
--   limits.top_stall(data, row) -> why most warps of a shown row did not issue, of all reasons; nil where none was
--       counted
--   limits.answers(data, causes) -> lines: what each possible limit does, where there are rows to tell
--
-- A quantity counts as no limit where taking it away, or adding to it, changes the time by less than 5 %.

local causes_module = require "tilelab.draw.scale_swizzle_causes"
local rows = require "tilelab.rows"
local swizzle = require "tilelab.draw.scale_swizzle"

local limits = {}

local SMALL = 1.05 -- a factor of time that counts as none
local COMMON = { rows = "8192", groups = "8", grouping = "k_groups" }
local where, number = rows.where, rows.number

local function time(row) return tonumber(row.time_us) end

local function with(conditions)
  local all = {}
  for column, text in pairs(COMMON) do all[column] = text end
  for column, text in pairs(conditions) do all[column] = text end
  return all
end

function limits.shown(causes)
  local list = {}
  for _, cols in ipairs { "4096", "512" } do
    for _, variant in ipairs(swizzle.VARIANTS) do
      for _, row in ipairs(where(causes.rows, with { series = "variants", cols = cols, variant = variant[1] })) do
        list[#list + 1] = row
      end
    end
  end
  return list
end

function limits.top_stall(data, row)
  for _, other in ipairs(where(data.rows, { grouping = row.grouping, rows = row.rows, cols = row.cols,
    groups = row.groups, variant = row.variant, flush = "dirty" })) do
    if other.top_stall ~= "-" then return other.top_stall end
  end
end

-- Rank correlation of two columns over a list of rows; nil for fewer than four.
function limits.rank_correlation(list, a, b)
  local function ranks(column)
    local order, rank = {}, {}
    for i = 1, #list do order[i] = i end
    table.sort(order, function(x, y) return column(list[x]) < column(list[y]) end)
    local first = 1
    while first <= #order do -- equal values share the mean of their ranks
      local last = first
      while order[last + 1] and column(list[order[last + 1]]) == column(list[order[first]]) do last = last + 1 end
      for k = first, last do rank[order[k]] = (first + last) / 2 end
      first = last + 1
    end
    return rank
  end
  if #list < 4 then return nil end
  local x, y, mean = ranks(a), ranks(b), (#list + 1) / 2
  local xy, xx, yy = 0, 0, 0
  for i = 1, #list do
    xy, xx, yy = xy + (x[i] - mean) * (y[i] - mean), xx + (x[i] - mean) ^ 2, yy + (y[i] - mean) ^ 2
  end
  return xx > 0 and yy > 0 and xy / math.sqrt(xx * yy) or nil
end

-- --- occupancy --------------------------------------------------------------------------------

local function correlation(causes)
  local list = {}
  for _, row in ipairs(where(causes.rows, { series = "variants", grouping = "k_groups" })) do
    if number(row.occupancy_achieved_pct) then list[#list + 1] = row end
  end
  local rank = limits.rank_correlation(list, function(row) return tonumber(row.occupancy_achieved_pct) end,
    function(row) return tonumber(row.logical_gbps) end)
  return rank and ("over %d pairs of kernel and shape, throughput and achieved occupancy have a rank correlation of "
    .. "%.2f"):format(#list, rank)
end

-- Of a kernel whose occupancy alone is varied: what the lowest costs, and from where on more brings nothing.
local function held(causes, variant, cols)
  local list = {}
  for _, row in ipairs(causes_module.held(causes, cols, variant)) do
    if number(row.occupancy_achieved_pct) then list[#list + 1] = row end
  end
  if #list < 2 then return nil end
  table.sort(list, function(a, b) return tonumber(a.occupancy_achieved_pct) < tonumber(b.occupancy_achieved_pct) end)
  local low, high, best = list[1], list[#list], math.huge
  for _, row in ipairs(list) do best = math.min(best, time(row)) end
  local enough = high
  for i = #list, 1, -1 do
    if time(list[i]) > SMALL * best then break end
    enough = list[i]
  end
  return { low = tonumber(low.occupancy_achieved_pct), high = tonumber(high.occupancy_achieved_pct),
    factor = time(low) / time(high), enough = tonumber(enough.occupancy_achieved_pct),
    saturated = enough ~= high or time(high) > SMALL * best, less = time(high) > SMALL * best }
end

local function occupancy(causes)
  local parts = {}
  for _, cols in ipairs { "4096", "512" } do
    for _, variant in ipairs(swizzle.VARIANTS) do
      local one = held(causes, variant[1], cols)
      if one then
        parts[#parts + 1] = ("  %s, %s columns: from %.0f to %.0f %% the time grows %.2f-fold; %s"):format(variant[1],
          cols, one.high, one.low, one.factor, one.less and "less than the highest is faster" or one.saturated
            and ("above %.0f %% more occupancy brings less than 5 %%"):format(one.enough)
            or "more occupancy would bring more")
      end
    end
  end
  local whole = correlation(causes)
  if #parts == 0 and not whole then return nil end
  table.insert(parts, 1, "Occupancy: " .. (whole or "not counted")
    .. (#parts > 0 and ". Varied alone, with the least L1:" or "."))
  return table.concat(parts, "\n")
end

-- What the least L1 costs where as many blocks hold shared memory as hold none.
local function l1(causes)
  local parts = {}
  for _, cols in ipairs { "4096", "512" } do
    for _, variant in ipairs(swizzle.VARIANTS) do
      local none = where(causes.rows, with { series = "occupancy", variant = variant[1], cols = cols,
        setting = "held_shared_kib=1" })[1]
      local least = causes_module.held(causes, cols, variant[1])[1]
      if none and least and none.occupancy_theoretical_pct == least.occupancy_theoretical_pct then
        parts[#parts + 1] = ("%s, %s columns, %.2f instead of %.2f us"):format(variant[1], cols, time(least),
          time(none))
      end
    end
  end
  return #parts > 0 and "L1: with the least of it, and as many blocks: " .. table.concat(parts, "; ") .. "." or nil
end

-- --- access -----------------------------------------------------------------------------------

local function of_variants(causes, columns, format)
  local parts = {}
  for _, row in ipairs(where(causes.rows, with { series = "variants", cols = "4096" })) do
    local values = {}
    for i, column in ipairs(columns) do
      local value = number(row[column])
      values[i] = value and ("%.0f"):format(value) or "-"
    end
    parts[#parts + 1] = ("%s %s (copy ratio %.2f)"):format(row.variant, format:format(table.unpack(values)),
      tonumber(row.copy_ratio))
  end
  return #parts > 0 and table.concat(parts, "; ")
end

local function coalescing(causes)
  local text = of_variants(causes, { "load_efficiency_pct", "store_efficiency_pct" }, "%s / %s")
  return text and "Coalescing: bytes used of the sectors moved, loads / stores in percent, 8192 x 4096: " .. text .. "."
end

local function bank_conflicts(causes)
  local worst, fine
  for _, row in ipairs(where(causes.rows, { series = "variants" })) do
    local share = number(row.bank_conflict_pct)
    if share and (not worst or share > tonumber(worst.bank_conflict_pct)) then worst = row end
    fine = fine or share ~= nil
  end
  if not fine then return nil end
  local share = tonumber(worst.bank_conflict_pct)
  return ("Bank conflicts: at most %.1f %% of the wavefronts of shared memory (%s, %s): %s."):format(share,
    worst.variant, swizzle.problem_of(worst), share < 5 and "no limit of any kernel here" or "a cost of that kernel")
end

-- --- bytes in flight --------------------------------------------------------------------------

-- Of the rows of one series: what the fewest bytes cost, and from where on more bring nothing.
local function flight(list, what)
  table.sort(list, function(a, b) return tonumber(a.in_flight_kib) < tonumber(b.in_flight_kib) end)
  local best, enough = math.huge, nil
  for _, row in ipairs(list) do best = math.min(best, time(row)) end
  for _, row in ipairs(list) do
    if not enough and time(row) <= SMALL * best then enough = row end
  end
  local first, last = list[1], list[#list]
  return ("%s: %.0f KiB a multiprocessor take %.2f times as long as %.0f; %.0f are enough"):format(what,
    tonumber(first.in_flight_kib), time(first) / time(last), tonumber(last.in_flight_kib),
    tonumber(enough.in_flight_kib))
end

-- Stages of sm90_tma at one width: the warps are held.
local function stages(causes, cols, parts)
  for _, blocks in ipairs { 2, 4 } do
    local list = {}
    for _, row in ipairs(where(causes.rows, with { series = "in_flight", cols = cols })) do
      if causes_module.tunable(row, "blocks_per_multiprocessor") == blocks and number(row.in_flight_kib) then
        list[#list + 1] = row
      end
    end
    if #list > 1 then
      parts[#parts + 1] = flight(list, ("  sm90_tma, %s columns, %d blocks of 4 warps"):format(cols, blocks))
    end
  end
end

-- Half the bytes a load: occupancy is held.
local function load_widths(causes, cols, parts)
  for _, kib in ipairs { 28, 56, 113 } do
    local by_bytes = {}
    for _, row in ipairs(where(causes.rows, with { series = "load_bytes", cols = cols })) do
      if causes_module.tunable(row, "held_shared_kib") == kib then
        by_bytes[causes_module.tunable(row, "load_bytes")] = row
      end
    end
    if by_bytes[8] and by_bytes[16] then
      local percent = number(by_bytes[16].occupancy_theoretical_pct)
      parts[#parts + 1] = ("  smxx_registers, %s columns, at %s occupancy: 8-byte loads take %.2f times as long as "
        .. "16-byte ones"):format(cols, percent and ("%.0f %%"):format(percent) or "held",
        time(by_bytes[8]) / time(by_bytes[16]))
    end
  end
end

-- More warps for the same bytes.
local function warps(causes, cols, parts)
  local function threads(row) return causes_module.tunable(row, "block_threads") end
  local list = where(causes.rows, with { series = "warps", cols = cols })
  if #list < 2 then return end
  table.sort(list, function(a, b) return threads(a) < threads(b) end)
  local few, many = list[1], list[#list]
  parts[#parts + 1] = ("  sm90_tma, %s columns, with the bytes held: %d threads a block take %.2f times as long as %d")
    :format(cols, threads(few), time(few) / time(many), threads(many))
end

local function bytes_in_flight(causes)
  local parts = { "Bytes in flight:" }
  for _, cols in ipairs { "4096", "512" } do
    stages(causes, cols, parts)
    load_widths(causes, cols, parts)
    warps(causes, cols, parts)
  end
  return #parts > 1 and table.concat(parts, "\n") or nil
end

-- --- groups -----------------------------------------------------------------------------------

-- Of m_groups: what it costs that loads wait for the group ends, and what a kernel takes whose loads need none.
local function ahead(causes)
  local waits, free = {}, {}
  for _, row in ipairs(where(causes.rows, { series = "ahead" })) do
    local before = causes_module.tunable(row, "prefetch_bytes") == 256 or causes_module.tunable(row, "ahead") == 2
    for _, other in ipairs(before and where(causes.rows, { series = "ahead", variant = row.variant, rows = row.rows,
      cols = row.cols }) or {}) do
      if other ~= row then
        waits[#waits + 1] = ("%s at %s x %s %+.2f of %.2f us"):format(row.variant, row.rows, row.cols,
          time(other) - time(row), time(row))
      end
    end
    if row.variant == "smxx_windows" then
      free[#free + 1] = ("%.2f us at %s x %s"):format(time(row), row.rows, row.cols)
    end
  end
  if #waits == 0 then return nil end
  local text = "Group ends: loads that wait for them, instead of asking L2 ahead, take longer by "
    .. table.concat(waits, "; ") .. "."
  return #free == 0 and text or text .. " smxx_windows, whose loads need no ends, takes " .. table.concat(free, "; ")
    .. "."
end

-- Of K groups: what it costs that the stores of a piece of a row serve one group after the other.
local function stores(causes)
  local parts = {}
  for _, cols in ipairs { "4096", "512" } do
    local by_count = {}
    for _, row in ipairs(where(causes.rows, with { series = "stores", cols = cols })) do
      by_count[causes_module.tunable(row, "groups_a_store")] = row
    end
    if by_count[1] and by_count[2] then
      parts[#parts + 1] = ("%s columns %.2f instead of %.2f us"):format(cols, time(by_count[2]), time(by_count[1]))
    end
  end
  return #parts > 0 and "Stores: where two groups meet in a piece of a row, one store for whichever has it takes, "
    .. "against one after the other: " .. table.concat(parts, "; ") .. "." or nil
end

-- --- instructions and launch ------------------------------------------------------------------

local function integer_work(causes)
  local text = of_variants(causes, { "issue_active_pct", "alu_pct" }, "%s / %s")
  return text and "Integer work: cycles in which a scheduler issued / use of the integer pipe in percent, 8192 x 4096: "
    .. text .. "."
end

local function launch(data)
  local floor, parts = tonumber(data.provenance.null_us_1), {}
  if not floor then return nil end
  local best = swizzle.fastest(data.rows, function(row)
    return row.grouping == "k_groups" and row.groups == "8" and swizzle.problem_of(row)
  end)
  local list = {}
  for _, row in pairs(best) do list[#list + 1] = row end
  if #list == 0 then return nil end
  table.sort(list, function(a, b) return time(a) < time(b) end)
  for _, row in ipairs { list[1], list[#list] } do
    parts[#parts + 1] = ("%.0f %% of %.2f us at %s x %s"):format(100 * floor / time(row), time(row), row.rows, row.cols)
  end
  local call = number(list[1].call_us)
  return ("Launch: a kernel that does nothing takes %.2f us, %s%s."):format(floor, table.concat(parts, " and "),
    call and (" of the fastest kernels; a call of the smaller takes %.1f us"):format(call) or "")
end

-- --- verdicts ---------------------------------------------------------------------------------

-- What binds a kernel first, by its counters: {text}. The order is that of what can be taken away.
local function verdict(data, causes, row)
  local floor, ratio = tonumber(data.provenance.null_us_1), tonumber(row.copy_ratio)
  local load, store = number(row.load_efficiency_pct), number(row.store_efficiency_pct)
  local conflicts, issue = number(row.bank_conflict_pct), number(row.issue_active_pct)
  local one = held(causes, row.variant, row.cols)
  if ratio >= 0.85 then return ("memory itself: %.0f %% of a copy's speed"):format(100 * ratio) end
  if load and load < 50 or store and store < 50 then
    return ("access pattern: %s %% of the loaded and %s %% of the stored sectors' bytes are used"):format(
      load and ("%.0f"):format(load) or "-", store and ("%.0f"):format(store) or "-")
  end
  if conflicts and conflicts >= 10 then return ("bank conflicts: %.0f %% of the wavefronts"):format(conflicts) end
  if issue and issue >= 60 then return ("instructions: schedulers issue in %.0f %% of the cycles"):format(issue) end
  if floor and floor / time(row) >= 0.15 then
    return ("launch and latency: a kernel that does nothing takes %.0f %% of it"):format(100 * floor / time(row))
  end
  if one and not one.saturated then return "occupancy: more of it would bring more" end
  local top = limits.top_stall(data, row)
  return top and "latency: warps wait most for " .. top or "not counted"
end

local function verdicts(data, causes)
  local lines = {}
  for _, row in ipairs(limits.shown(causes)) do
    lines[#lines + 1] = ("  %s, %s columns: %s"):format(row.variant, row.cols, verdict(data, causes, row))
  end
  if #lines == 0 then return nil end
  return "What limits first, 8192 rows, 8 groups:\n" .. table.concat(lines, "\n")
end

function limits.answers(data, causes)
  local list = {}
  for _, text in ipairs { occupancy(causes) or false, l1(causes) or false, coalescing(causes) or false,
    bank_conflicts(causes) or false, bytes_in_flight(causes) or false, ahead(causes) or false, stores(causes) or false,
    integer_work(causes) or false, launch(data) or false, verdicts(data, causes) or false } do
    if text then list[#list + 1] = text end
  end
  return list
end

return limits
