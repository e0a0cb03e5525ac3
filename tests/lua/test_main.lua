-- lab.main: exit codes, what is printed where, Ctrl-C. Scripts run in a process of their own, by
-- the interpreter of this test.
local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"

local folder <close> = t.folder()
local interpreter = arg[-1]

-- Runs the text as a script; returns {code, out, err}: exit code and both outputs.
local function run(text, words, before)
  local script = t.write(folder / "script.lua", 'local lab = require "tilelab"\n' .. text)
  local _, _, code = os.execute(("%s %s %s %s >'%s' 2>'%s'"):format(before or "", interpreter, script,
    words or "", folder / "out", folder / "err"))
  return { code = code, out = t.read(folder / "out"), err = t.read(folder / "err") }
end

local r = run [[lab.main(function() print "done" end) print "after"]]
t.is(r.code, 0, "success")
t.is(r.out, "done\nafter\n", "the script goes on after lab.main")
t.is(r.err, "", "silently")
t.is(run([[lab.main(function() return 3 end)]]).code, 3, "a number is the exit code")
t.is(run([[lab.main(function() return false end)]]).code, 1, "false is 1")

if lab.stat("/dev/full") then
  r = run([[lab.main(function() print "lost" end)]], (">/dev/full 2>'%s' #"):format(folder / "err"))
  t.is(r.code, 2, "output that cannot be written is a failure")
  t.is(r.err, "script: standard output was not written; is the disk full?\n", "and says so")
else
  t.skip("no /dev/full")
end

r = run [[
  io.write "partial"
  lab.main(function() lab.usage_error("text %s is empty", "a.txt") end)]]
t.is(r.code, 2, "a usage error")
t.is(r.err, "script: text a.txt is empty\n", "is one line")
t.is(r.out, "partial", "output is not lost")

r = run [[lab.main(function() lab.check(lab.record.create("/no/such/x.tsv", "", { "a" })) end)]]
t.is(r.code, 2, "a refusal")
t.like(r.err, "^script: [^\n]*/no/such/x.tsv[^\n]*\n$", "is one line that names the path")
r = run([[
  lab.main(function()
    local record <close> = lab.check(lab.record.create(arg[1], "", { "n" }))
    for n = 1, 1e6 do record:row { n = n } end
  end)]], "'" .. folder / "full.tsv" .. "'", "ulimit -f 1; trap '' XFSZ;")
t.is(r.code, 2, "a row that finds no room")
t.like(r.err, "^script: [^\n]*full.tsv[^\n]*\n$", "is one line that names the path")
r = run [[lab.main(function() lab.record.read("/no/such/x.tsv") end)]]
t.is(r.code, 2, "a file that cannot be read")
t.ok(not r.err:find("traceback"), "without a traceback")

r = run [[lab.main(function() lab.check(lab.gpu "cpu") end)]]
t.is(r.code, 2, "the CPU where only a GPU will do")
t.is(r.err, "script: device 'cpu': this needs an NVIDIA GPU; give cuda or cuda:N\n", "is a refusal in one line")
r = run [[lab.main(function() lab.check(lab.gpu "gpu") end)]]
t.is(r.code, 2, "a device that is none")
t.is(r.err, "script: unknown device 'gpu'; devices are cpu, cuda and cuda:N\n", "also")
r = run [[lab.main(function() lab.device_option "gpu" end)]]
t.is(r.err, "script: --device: unknown device 'gpu'; devices are cpu, cuda and cuda:N\n", "an option names itself")
t.is(r.code, 2, "exit code")
t.is(lab.device_option("cpu").name, "cpu", "a device")
local gpu, absent = lab.gpu "cuda"
t.ok(gpu or absent:find "^device 'cuda': " and not absent:find "--device cpu", "no GPU: the CPU is not offered")

r = run [[lab.main(function() local x = nil; x.y = 1 end)]]
t.is(r.code, 1, "a defect")
t.like(r.err, "script.lua:2: attempt to index a nil value.*stack traceback", "prints a traceback")
r = run [[lab.main(function() error({}) end)]]
t.is(r.code, 1, "an error value that is no text")
t.like(r.err, "script: table: ", "is printed somehow")

-- Ctrl-C is a signal that the script sends itself, from the background: while os.execute waits, a
-- process ignores it.
local press = [[
  local function press() os.execute(("(sleep 0.1; kill -INT %d) &"):format(lab.pid())) end
]]
r = run(press .. [[
  lab.main(function()
    local log <close> = setmetatable({}, { __close = function() print "closed" end })
    press()
    while true do end
  end)]])
t.is(r.code, 130, "Ctrl-C exits with 130")
t.is(r.out, "closed\n", "after the close handlers")
t.is(r.err, "script: interrupted\n", "with one line")
r = run(press .. [[lab.main(function() pcall(function() press() while true do end end) return 7 end)]])
t.is(r.code, 130, "even when pcall caught it")
r = run(press .. [[
  lab.main(function()
    local co = coroutine.wrap(function()
      local a = lab.tensor { shape = { 4, 4 }, fill = 1 }
      local d = lab.tensor { shape = { 4, 4 } }
      local plan = lab.plan { op = "gemm", variant = "cpu_plain", a = a, b = a, d = d }
      press()
      while true do plan:launch() end
    end)
    co()
  end)]])
t.is(r.code, 130, "a launch within a coroutine is interrupted")
r = run(press .. [[
  lab.main(function()
    local path = arg[1]
    local record <close> = lab.check(lab.record.create(path, "", { "n" }))
    for n = 1, 1e9 do
      record:row { n = n }
      if n == 5 then press() end
    end
  end)]], "'" .. folder / "rows.tsv" .. "'")
t.is(r.code, 130, "while rows are written")
local data = lab.record.read(folder / "rows.tsv", { "n" })
t.ok(#data.rows >= 5 and data:number(data.rows[5], "n") == 5, "rows stay whole")
r = run(press .. [[
  lab.main(function()
    pcall(function() press() while true do end end)
    press()
    while true do end
  end)]])
t.ok(r.code == 2 or r.code == 130, "a second Ctrl-C ends the process") -- 130 as a shell says it
t.is(r.err, "", "at once")
r = run [[lab.main(function() end) print(lab.interrupted())]]
t.is(r.out, "false\n", "interrupted")

r = run([[
  local opt = lab.options { { "n", "integer", 1, "count" } }
  lab.main(function() print(opt.n) end)]], "--n 5")
t.is(r.code, 0, "options outside of main")
t.is(r.out, "5\n", "are read")
local declared = [[local opt = lab.options { { "n", "integer", 1, "count" } } ]]
r = run(declared, "--m 5")
t.is(r.code, 2, "a usage error outside of main")
t.like(r.err, "^script: unknown option %-%-m; did you mean %-%-n%?\n$", "is one line")
r = run(declared, "--help")
t.is(r.code, 0, "--help")
t.like(r.out, "^usage: script", "goes to standard output")
t.is(r.err, "", "alone")
r = run("lab.main(function() " .. declared .. "end)", "--n x")
t.is(r.code, 2, "a usage error inside of main")
t.like(r.err, "^script: option %-%-n: expected an integer, got 'x'\n$", "is one line too")
r = run("lab.main(function() " .. declared .. "end) print 'after'", "--help")
t.is(r.code, 0, "--help inside of main")
t.ok(not r.out:find("after"), "ends the script too")
r = run [[lab.options { { "n", "integre", 1 } }]]
t.is(r.code, 1, "a wrong declaration is a defect")
t.like(r.err, "script.lua:2: option 'n': type 'integre'", "with its position")
r = run([[
  lab.main(function()
    local p <close> = lab.progress { total = 10, terminal = true, every = 0 }
    lab.sleep(0.2)
    p:step()
    error "inside"
  end)]])
t.like(r.err, "ETA 0:%d%d\27%[K\nscript: ", "a message begins on its own line")
t.error(function() lab.main(3) end, "takes a function", "lab.main takes a function")
t.done()
