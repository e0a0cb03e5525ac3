-- PyTorch's grouped product beside ours: experiments/peers/grouped_gemm_torch.py in a process of its own,
-- which stays and measures a problem whenever it is asked to, so that both see the chip in one state.
--
--   local torch <close> = peer.start { python = "python3", sizes = sizes.tsv, out = folder, rounds = 20, say = f }
--                                  -> torch | nil, after say(why not)
--   torch.version                  "2.11.0", for the provenance
--   torch:run(position) -> ok, rows, samples: of the problem in that row of `sizes`, as cells of
--       grouped_gemm.tsv and grouped_gemm_samples.tsv; not ok where a result was wrong, which it has told
--
-- It is asked by a line on its standard input and answers by a line in a file, which is looked at until the
-- line is there: Lua's pipes go one way.

local lab = require "tilelab"
local file = require "tilelab.file"
local shell = require "tilelab.shell"

local peer = {}

local SCRIPT = lab.root .. "/experiments/peers/grouped_gemm_torch.py"
local LOOK_EVERY_S, LONGEST_S = 0.005, 300

local Torch = {}
Torch.__index = Torch

local function quoted(...)
  local words = { ... }
  for i, word in ipairs(words) do words[i] = shell.quote(tostring(word)) end
  return table.concat(words, " ")
end

local ANSWERS = { ready = true, done = true, failed = true, exit = true }

-- The next answer, or nil and why there is none. Libraries may print to the same file.
function Torch:answer()
  local start = lab.time_us()
  while true do
    local text, position = file.read(self.answers) or "", 0
    for line in text:gmatch("([^\n]*)\n") do
      position = position + 1
      local word, rest = line:match("^(%l+) ?(.*)$")
      if position > self.answered and ANSWERS[word] then
        self.answered = position
        if word == "exit" then return nil, "it ended with exit code " .. rest end
        return word, rest
      end
    end
    if lab.interrupted() then return nil, "interrupted" end
    if lab.time_us() - start > LONGEST_S * 1e6 then return nil, ("no answer in %d s"):format(LONGEST_S) end
    lab.sleep(LOOK_EVERY_S)
  end
end

-- The shell stays to say how the script ended, whatever ended it.
function peer.start(settings)
  local answers = settings.out .. "/grouped_gemm_torch.answers"
  lab.check(file.write(answers, ""))
  local command = ("(%s; echo \"exit $?\") >%s"):format(quoted(settings.python, SCRIPT, "--sizes", settings.sizes,
    "--out", settings.out, "--rounds", settings.rounds, "--serve"), shell.quote(answers))
  local pipe, message = io.popen(command, "w")
  if not pipe then
    settings.say("torch is left out: %s", message)
    return nil
  end
  local torch = setmetatable({ pipe = pipe, answers = answers, answered = 0, read = {}, out = settings.out }, Torch)
  local ready, version = torch:answer()
  if not ready then
    settings.say("torch is left out: %s", version)
    torch:close()
    return nil
  end
  torch.version = version
  return torch
end

-- Rows of one of its files that were not read before.
function Torch:new_rows(name)
  local data = lab.record.read(("%s/%s.tsv"):format(self.out, name))
  local list = table.move(data.rows, (self.read[name] or 0) + 1, #data.rows, 1, {})
  self.read[name] = #data.rows
  return list
end

function Torch:run(position)
  if self.gone then return false, {}, {} end
  self.pipe:write(position, "\n")
  self.pipe:flush()
  local word, reason = self:answer()
  if not word then
    self.gone = true -- writing to it again would end us
    lab.check(nil, "torch: " .. reason)
  end
  return word == "done", self:new_rows "grouped_gemm_torch", self:new_rows "grouped_gemm_torch_samples"
end

-- Its standard input ends, and so does it.
function Torch:close()
  if self.pipe then self.pipe:close() end
  self.pipe = nil
end

Torch.__close = Torch.close

return peer
