-- tilelab figures: draws every figure again from the records, without a GPU.
-- Exit code: 0, or 2 where a record cannot be trusted or drawn; the others are drawn all the same.

local file = require "tilelab.file"
local lab = require "tilelab"
local main = require "tilelab.main"

local function draw(item, opt)
  local data = lab.recorded.read(item.path)
  local stale = lab.recorded.stale(data)
  if #stale > 0 then
    print(("stale    %s: %s changed since it was recorded"):format(item.path,
      "kernels/" .. table.concat(stale, ", kernels/")))
  end
  return lab.draw.record(data, { folder = opt.out .. "/" .. item.chip, preset = opt.preset })
end

-- Puts drawn PNGs in the place of those beside the record.
local function update(item, drawn)
  local folder = item.path:match("^(.*)/")
  for _, files in ipairs(drawn) do
    local kept = files.png and folder .. "/" .. files.png:match("[^/]+$")
    if kept and lab.stat(kept) then
      lab.check(file.replace(kept, lab.check(file.read(files.png))))
      print("updated  " .. kept)
    end
  end
end

lab.main(function()
  local opt = lab.options {
    name = "tilelab figures",
    summary = "Draws the figures of all records, by chip.",
    { "recorded", "string", lab.recorded.folder, "folder of the records", value = "FOLDER" },
    { "out", "string", "out/figures", "folder for the figures", value = "FOLDER" },
    { "update", "boolean", false, "replace the PNGs that lie beside the records" },
    { "preset", "string", nil, "width of the figures; default: each one's own",
      choices = { "acm-column", "acm-full", "ieee-column", "neurips" } },
  }
  local list, failed = lab.recorded.list(opt.recorded), 0
  if #list == 0 then lab.usage_error("--recorded %s: no records are there", opt.recorded) end
  for _, item in ipairs(list) do
    local drawn, message = main.attempt(draw, item, opt)
    if drawn then
      lab.draw.print(drawn)
      if opt.update then update(item, drawn) end
    else
      failed = failed + 1
      io.stderr:write("figures: ", message, "\n")
    end
  end
  return failed == 0 and 0 or 2
end)
