-- Studies beside the main one, each a record with the columns of depth_scaling.tsv:
--
--   depth_scaling_multinomial   experts loaded by a fixed draw: the router's habits taken out
--   depth_scaling_depth3        one depth more: whether time is linear in depth, as the line to full depth
--                               assumes
--   depth_scaling_fp32          the published trainer's precision
--
-- One table sets them beside the main study.

local core = require "tilelab_core"
local align = require("tilelab.text_table").align
local analysis = require "tilelab.depth.analysis"
local presets = require "tilelab.model.presets"
local published = require "tilelab.depth.published"
local recorded = require "tilelab.recorded"
local rows_of = require "tilelab.depth.rows"
local single = require "tilelab.depth.single"

local sides = { names = { "multinomial", "depth3", "fp32" } }

local function options_of(data, layers, replicates)
  return { warmup = published.WARMUP, backends = rows_of.list(data.provenance.flag_backends), layers = layers,
    replicates = replicates, full_depth = presets.config(data.provenance.flag_model).full_layers }
end

local function depths(data) return rows_of.list(data.provenance.flag_layers, math.tointeger) end

-- How far the time at the greatest depth of `deeper` is from the line through those of `main`, both records of
-- depth scaling: list of {backend, layers, t, line (both us a token), percent}, of the backends that both have, and
-- the context of single.run.
function sides.linearity(main, deeper)
  local list, deepest = {}, math.max(table.unpack(depths(deeper)))
  local result, info = analysis.run(rows_of.numbered(main), options_of(main, depths(main), 0))
  local measured, context = single.run(rows_of.numbered(deeper), options_of(deeper, { deepest }))
  if not result or not measured then return list end
  for _, row in ipairs(measured) do
    local dt = analysis.find(result, "dt", row.backend)
    local full = analysis.find(result, "t_" .. info.full, row.backend)
    if dt and full then
      local line = full.value - (info.full_depth - row.layers) * dt.value
      list[#list + 1] = { backend = row.backend, layers = row.layers, t = row.t, line = line,
        percent = 100 * (row.t / line - 1) }
    end
  end
  return list, context
end

-- For a figure, by backend: the line through the depths of the main study up to those of `list` (of
-- sides.linearity), and what was measured at each.
function sides.lines(main, list)
  local result, info = analysis.run(rows_of.numbered(main), options_of(main, depths(main), 0))
  local made = {}
  for _, row in ipairs(list) do
    local dt = analysis.find(result, "dt", row.backend).value
    local measured = {}
    for i, depth in ipairs(info.layers) do
      measured[i] = { x = depth, y = analysis.find(result, "t_" .. depth, row.backend).value }
    end
    measured[#measured + 1] = { x = row.layers, y = row.t }
    made[row.backend] = { measured = measured, line = { { x = info.layers[1],
      y = row.line - (row.layers - info.layers[1]) * dt }, { x = row.layers, y = row.line } } }
  end
  return made
end

local function cell(row, format) return row and row.value and format:format(row.value) or "-" end

-- Lines of the table for one study of two depths or more.
local function add_study(cells, name, data)
  local result, info = analysis.run(rows_of.numbered(data), options_of(data, depths(data)))
  if not result then return end
  for _, backend in ipairs(info.backends) do
    local gain = backend ~= info.baseline and analysis.find(result, "gain_R", backend .. "/" .. info.baseline)
    cells[#cells + 1] = { name, data.rows[1].precision, data.rows[1].routing, backend,
      tostring(#info.repetitions), cell(analysis.find(result, "t_" .. info.layers[1], backend), "%.4f"),
      cell(analysis.find(result, "t_" .. info.layers[#info.layers], backend), "%.4f"),
      cell(analysis.find(result, "dt", backend), "%.4f"),
      gain and cell(gain, "%+.2f") .. (gain.lo and (" [%+.2f, %+.2f]"):format(gain.lo, gain.hi) or "") or "" }
  end
end

-- The table; studies: {main = data, multinomial = data, ...}, those that there are.
function sides.text(studies)
  local cells, parts = { { "study", "precision", "routing", "backend", "runs", "t of the least depth",
    "of the greatest", "dt, us/token", "gain in R, %" } }, {}
  if studies.main then add_study(cells, "main", studies.main) end
  for _, name in ipairs(sides.names) do
    local data = studies[name]
    if data and #depths(data) > 1 then add_study(cells, name, data) end
  end
  if #cells > 1 then parts[1] = align(cells, {}) end
  if studies.main and studies.depth3 then
    for _, row in ipairs(sides.linearity(studies.main, studies.depth3)) do
      parts[#parts + 1] = ("%s at %d layers: %.4f us/token, %+.2f %% off the line through depths %s (%.4f)"):format(
        row.backend, row.layers, row.t, row.percent, studies.main.provenance.flag_layers:gsub(",", ", "), row.line)
    end
  end
  return table.concat(parts, "\n\n") .. "\n"
end

-- The table of the records of a device; nil where nothing but the main study is recorded.
function sides.recorded(device)
  local studies, count = {}, 0
  for _, name in ipairs { "main", table.unpack(sides.names) } do
    local path = recorded.path(name == "main" and "depth_scaling" or "depth_scaling_" .. name, device)
    if core.stat(path) then
      studies[name] = recorded.read(path)
      count = count + (name == "main" and 0 or 1)
    end
  end
  return count > 0 and sides.text(studies) or nil
end

return sides
