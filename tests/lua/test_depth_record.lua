-- The README's table of the study is the one that the record gives.

local t = dofile("tests/lua/tap.lua")
local lab = require "tilelab"
local depth = require "tilelab.draw.depth_scaling"
local study = require "tilelab.depth.study"

local names = {}
for i, column in ipairs(depth.schema) do names[i] = column[1] end
t.is(table.concat(names, " "), table.concat(study.columns, " "), "a record is an updates.tsv")

local data = lab.recorded.read(lab.root .. "/experiments/recorded/cpu/depth_scaling.tsv")
local readme = t.read(lab.root .. "/README.md")
for line in depth.text(data):gmatch("[^\n]+") do
  t.ok(readme:find("\n" .. line .. "\n", 1, true), "README: " .. line)
end

t.done()
