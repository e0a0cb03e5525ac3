-- tilelab bench-check: holds the records against tests/targets.tsv.
-- Exit code: 0, 1 where a figure is below its floor or not recorded, 2 for files that cannot be read.

local lab = require "tilelab"
local file = require "tilelab.file"
local targets = require "tilelab.targets"
local text_table = require "tilelab.text_table"

-- Records by study, read once; false where there is none.
local function reader(folder)
  local known = {}
  return function(study)
    if known[study] == nil then
      local path = ("%s/%s.tsv"):format(folder, study)
      known[study] = lab.stat(path) and lab.recorded.read(path) or false
    end
    return known[study] or nil
  end
end

local function update(path, reached)
  lab.check(file.replace(path, targets.with_reached(lab.check(file.read(path)), reached)))
  print("\nupdated  " .. path)
end

lab.main(function()
  local opt = lab.options {
    name = "tilelab bench-check",
    summary = "Holds recorded figures against their floors and aims.",
    { "targets", "string", lab.root .. "/tests/targets.tsv", "what must be reached", value = "FILE" },
    { "recorded", "string", lab.recorded.folder, "folder of the records", value = "FOLDER" },
    { "chip", "string", "h200", "whose records" },
    { "update", "boolean", false, "write what is reached now into the file of targets" },
  }
  local list, read = targets.read(opt.targets), reader(opt.recorded .. "/" .. opt.chip)
  local cells = { { "status", "value", "floor", "aim", "study", "figure" } }
  local notes, reached, failed, stale_seen = {}, {}, 0, {}
  for i, target in ipairs(list) do
    local data = read(target.study)
    local status, value, message = targets.check(target, data)
    if status == "BELOW" or status == "not recorded" then failed = failed + 1 end
    cells[i + 1] = { status, value and targets.text(value) or "-", target.floor_text, target.aim_text,
      target.study, target.figure }
    if message and data then notes[#notes + 1] = ("%s: %s"):format(target.where, message) end
    if value and target.reached ~= targets.text(value) then
      reached[target.line] = targets.text(value)
      if not opt.update then
        notes[#notes + 1] = ("%s: reached says %s, the record %s: --update writes it"):format(target.where,
          target.reached, targets.text(value))
      end
    end
    local stale = data and lab.recorded.stale(data) or {}
    if #stale > 0 and not stale_seen[target.study] then
      stale_seen[target.study] = true
      notes[#notes + 1] = ("stale: %s: kernels/%s changed since it was recorded"):format(data.path,
        table.concat(stale, ", kernels/"))
    end
  end
  print(text_table.align(cells, { [2] = true, [3] = true, [4] = true }))
  if #notes > 0 then print("\n" .. table.concat(notes, "\n")) end
  print(("\n%d of %d figures hold on %s"):format(#list - failed, #list, opt.chip))
  if opt.update and next(reached) then update(opt.targets, reached) end
  return failed == 0
end)
