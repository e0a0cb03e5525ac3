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
local ROWS, SAMPLES = "grouped_gemm_torch", "grouped_gemm_torch_samples"
local LOOK_EVERY_S = 0.005

peer.longest_s = 300 -- that an answer may take

local Torch = {}
Torch.__index = Torch

-- What the shell does with the command in "$@": says under which number it runs, and how it ended,
-- whatever ended it. Then it reads on, so that writing to it does not end us.
local FRAME = [[sh -c 'echo "pid $$"; exec "$@"' sh "$@"; echo "exit $?"; cat >/dev/null]]

local function command_of(settings, answers)
  local words = { "sh", "-c", FRAME, "sh", settings.python, SCRIPT, "--sizes", settings.sizes, "--out", settings.out,
    "--rounds", settings.rounds, "--serve" }
  for i, word in ipairs(words) do words[i] = shell.quote(tostring(word)) end
  return ("%s >%s"):format(table.concat(words, " "), shell.quote(answers))
end

local ANSWERS = { ready = true, done = true, failed = true, exit = true, pid = true }

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
    self.stuck = lab.interrupted() and "interrupted"
      or lab.time_us() - start > peer.longest_s * 1e6 and ("no answer in %g s"):format(peer.longest_s)
    if self.stuck then return nil, self.stuck end
    lab.sleep(LOOK_EVERY_S)
  end
end

-- Its version once it is ready, or nil and why it is not.
function Torch:ready()
  local word, rest = self:answer()
  if word ~= "pid" then return nil, rest end
  self.pid = rest
  word, rest = self:answer()
  return word and rest, rest
end

function peer.start(settings)
  local answers = settings.out .. "/grouped_gemm_torch.answers"
  lab.check(file.write(answers, ""))
  for _, name in ipairs { ROWS, SAMPLES } do os.remove(("%s/%s.tsv"):format(settings.out, name)) end
  local pipe, message = io.popen(command_of(settings, answers), "w")
  if not pipe then
    settings.say("torch is left out: %s", message)
    return nil
  end
  local torch = setmetatable({ pipe = pipe, answers = answers, answered = 0, read = {}, out = settings.out }, Torch)
  local version, reason = torch:ready()
  if not version then
    settings.say("torch is left out: %s", reason)
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
  self.pipe:write(position, "\n")
  self.pipe:flush()
  local word, reason = self:answer()
  if not word then lab.check(nil, "torch: " .. reason) end
  return word == "done", self:new_rows(ROWS), self:new_rows(SAMPLES)
end

-- Its standard input ends, and so does it; where it owes an answer it is ended.
function Torch:close()
  if not self.pipe then return end
  if self.stuck and self.pid then os.execute(("kill -9 %d"):format(self.pid)) end
  self.pipe:close()
  self.pipe = nil
end

Torch.__close = Torch.close

return peer
