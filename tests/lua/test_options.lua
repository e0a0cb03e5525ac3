-- lab.options: types, defaults, both ways of writing a value, and every kind of mistake.
local t = dofile("tests/lua/tap.lua")
local core = require "tilelab_core"
local options = require "tilelab.options"

local spec = {
  name = "study", summary = "Trains at several depths.",
  { "device", "string", "cpu", "where to run" },
  { "layers", "list", { 2, 4 }, "depths to train", of = "integer", min = 1 },
  { "top", "number", 0.05, "fraction kept", min = 0, max = 1 },
  { "updates", "integer", 30, "updates a run", min = 1 },
  { "backends", "list", { "rapidgemm", "deepgemm" }, "backends", choices = { "rapidgemm", "deepgemm" } },
  { "layout", "string", "nt", "operand layout", choices = { "nt", "nn", "tn" } },
  { "text", "string", nil, "training text", value = "FILE" },
  { "published", "string", nil, "recompute", implied = "published.tsv", value = "FILE" },
  { "fresh", "boolean", false, "drop earlier results" },
  { "figures", "boolean", true, "draw figures" },
  { "top_fractions", "list", nil, "more fractions", of = "number" },
  { "only", "list", {}, "parts; default: all" },
}

local function parse(...) return options.parse(spec, { ... }) end

-- The message of the usage error that these words give.
local function usage(...)
  local ok, err = pcall(parse, ...)
  if ok then return "no error" end
  if core.error_kind(err) ~= "usage" then return "not a usage error: " .. tostring(err) end
  return tostring(err)
end

local opt = parse()
t.is(opt.device, "cpu", "default string")
t.is(opt.layers[2], 4, "default list")
t.is(opt.top, 0.05, "default number")
t.is(opt.fresh, false, "default boolean")
t.is(opt.figures, true, "default true")
t.is(opt.text, nil, "declared without a default")
t.is(opt.published, nil, "implied value only when named")

opt.layers[1] = 99
t.is(parse().layers[1], 2, "a default list is copied")

opt = parse("--device=cuda:1", "--layers", "1,2,3", "--top", "1e-1", "--fresh", "--no-figures",
  "--published", "--updates=0x10")
t.is(opt.device, "cuda:1", "--name=value")
t.is(#opt.layers, 3, "--name value, list")
t.is(math.type(opt.layers[3]), "integer", "items have their type")
t.is(opt.top, 0.1, "number")
t.is(opt.fresh, true, "--flag")
t.is(opt.figures, false, "--no-flag")
t.is(opt.published, "published.tsv", "optional value left out")
t.is(opt.updates, 16, "integer in hexadecimal")
t.is(parse("--published=mine.tsv").published, "mine.tsv", "optional value given")
t.is(parse("--fresh=no").fresh, false, "boolean with a value")
t.is(parse("--text", "-").text, "-", "a dash is a value")
t.is(parse("--text=").text, "", "an empty value")
t.is(parse("--text=a=b").text, "a=b", "a value with =")
t.is(parse("--updates=1", "--updates=2").updates, 2, "the last one wins")
t.is(parse("--top-fractions=0.1,0.2").top_fractions[2], 0.2, "dashes for underscores")
t.is(parse("--top_fractions", "1").top_fractions[1], 1, "underscores too")

t.like(usage("--layes", "3"), "unknown option %-%-layes; did you mean %-%-layers%?", "nearest option")
t.like(usage("--no-figurs"), "did you mean %-%-no%-figures%?", "nearest negation")
t.like(usage("--zzzzzzzz"), "%-%-help lists them all", "nothing near")
t.like(usage("-x"), "unknown option %-x", "short options are none")
t.like(usage("--updates", "many"), "option %-%-updates: expected an integer from 1 on, got 'many'",
  "wrong type names flag, value and type")
t.like(usage("--updates", "2.5"), "expected an integer .* got '2.5'", "no integer")
t.like(usage("--updates", "0"), "from 1 on, got '0'", "below the bound")
t.like(usage("--top=nan"), "expected a number from 0 to 1, got 'nan'", "nan is no number")
t.like(usage("--top=1e999"), "got '1e999'", "infinity is no number")
t.like(usage("--top=1.5"), "from 0 to 1, got '1.5'", "above the bound")
t.like(usage("--layers", "2,x"), "option %-%-layers: expected an integer from 1 on for each item, got 'x'",
  "a bad item")
t.like(usage("--layers", "2,,3"), "an item between commas is empty", "an empty item")
t.like(usage("--layers="), "is empty", "an empty list")
t.like(usage("--backends", "rapidgem"), "one of rapidgemm, deepgemm.*did you mean 'rapidgemm'",
  "nearest choice of a list")
t.like(usage("--layers", "2,4,2.0"), "option %-%-layers: expected each item once, got '2%.0'", "an item twice")
t.like(usage("--top-fractions", "0,-0"), "each item once", "equal numbers")
local shrink = { { "shrink", "integer", 1, choices = { 1, 2, 16 } } }
t.like(tostring(select(2, pcall(options.parse, shrink, { "--shrink=3" }))),
  "option %-%-shrink: expected one of 1, 2, 16, got '3'", "choices that are numbers")
t.like(usage("--layout=nx"), "one of nt, nn, tn", "choices")
t.like(usage("--fresh=perhaps"), "expected true or false, got 'perhaps'", "no boolean")
t.like(usage("--no-fresh=1"), "takes no value", "a negation takes no value")
t.like(usage("--updates"), "option %-%-updates needs a value: an integer", "value missing at the end")
t.like(usage("--updates", "--fresh"), "%-%-updates needs a value", "value missing before a flag")
t.like(usage("stray"), "unexpected argument 'stray'", "no arguments declared")
t.like(usage("--published", "x.tsv"), "did you mean %-%-published=x%.tsv%?", "nor a space before this value")
t.like(usage("--no-updates"), "unknown option", "only booleans are negated")

local ok, help = pcall(parse, "--updates=3", "--help")
t.ok(not ok and core.error_kind(help) == "help", "--help stops parsing")
t.like(help.message, "^usage: study %[options%]\nTrains at several depths%.", "help begins with usage")
t.like(help.message, "%-%-layers INTEGER,%.%.%. +depths to train %(default: 2,4%)", "help shows defaults")
t.like(help.message, "%-%-published%[=FILE%]", "help shows an optional value")
t.like(help.message, "%-%-no%-figures", "help shows what a true flag takes")
t.like(help.message, "nt, nn, tn; default: nt", "help shows choices")
t.like(help.message, "parts; default: all\n", "but no default that is empty")
for line in help.message:gmatch("[^\n]+") do
  if #line > 100 then t.ok(false, "help line too long: " .. line) end
end

t.error(function() return parse().updats end, "no option 'updats'.*did you mean 'updates'",
  "reading an undeclared option")
t.is(tostring(parse("--fresh")), tostring(parse("--fresh=yes")), "one choice, one text")
t.like(tostring(parse("--text=a b")), "%-%-device=cpu %-%-layers=2,4 .*%-%-text='a b' %-%-no%-fresh",
  "the choice as text, in declared order")

local files = options.parse({ arguments = "FILE..." }, { "a", "--", "--b" })
t.is(files[1], "a", "an argument")
t.is(files[2], "--b", "after -- everything is an argument")

t.like(tostring(select(2, pcall(options.parse, { { "out", "string", required = true } }, {}))),
  "%-%-out is required", "required")
t.error(function() options.parse({ { "n", "int", 1 } }, {}) end, "test_options.lua:%d+: .*type 'int'",
  "an unknown type is the script's mistake")
t.error(function() options.parse({ { "n", "integer", "1" } }, {}) end, "default '1'", "a wrong default")
t.error(function() options.parse({ { "n", "string", 1 } }, {}) end, "default '1'", "a number for a text")
t.error(function() options.parse({ { "n", "integer" }, { "n", "integer" } }, {}) end, "declared twice",
  "declared twice")
t.error(function() options.parse({ { "n", "integer", mn = 1 } }, {}) end, "no field 'mn'; did you mean 'min'",
  "unknown field of a declaration")
t.error(function() options.parse({ sumary = "x" }, {}) end, "did you mean 'summary'",
  "unknown field of the spec")
t.done()
