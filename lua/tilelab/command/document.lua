-- tilelab document [FILE...]: holds the numbers of a text against the records that it names, as
-- lua/tilelab/document.lua has it; README.md where no file is given.
-- Exit code: 0, 1 where a number is another than the record's, 2 for files that cannot be read.

local document = require "tilelab.document"
local lab = require "tilelab"

lab.main(function()
  local opt = lab.options {
    name = "tilelab document",
    summary = "Holds the numbers of README.md, or of other texts, against the records.",
    arguments = "[FILE...]",
    { "recorded", "string", lab.recorded.folder, "folder of the records", value = "FOLDER" },
    { "update", "boolean", false, "write the records' numbers into the text" },
  }
  local failed = 0
  for _, path in ipairs(#opt > 0 and opt or { lab.root .. "/README.md" }) do
    local changed = opt.update and document.update(path, opt.recorded) or 0
    local problems, count = document.check(path, opt.recorded)
    failed = failed + #problems
    for _, problem in ipairs(problems) do print(problem) end
    print(("%s: %d of %d numbers and tables agree%s"):format(path, count - #problems, count,
      changed > 0 and (", %d of them written now"):format(changed) or ""))
  end
  return failed == 0
end)
