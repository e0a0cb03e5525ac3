-- tilelab devices: what this machine has, and whether counters can be read; else why not.

local lab = require "tilelab"

local function gib(bytes) return ("%.1f GiB"):format(bytes / 2 ^ 30) end

lab.main(function()
  lab.options { name = "tilelab devices", summary = "Lists devices, and whether their counters can be read." }
  for _, item in ipairs(lab.devices()) do
    local device, reason = lab.device(item.name)
    if not device then
      print(("%s: %s"):format(item.name, reason))
    elseif device.arch == 0 then
      print(("%s: %s, %s, %d threads"):format(device.name, device.model, gib(device.memory_bytes),
        device.multiprocessors))
    else
      print(("%s: %s, sm_%d, %s, %d multiprocessors"):format(device.name, device.model, device.arch,
        gib(device.memory_bytes), device.multiprocessors))
      local chip, why = lab.counters(device)
      print(chip and ("  counters: yes, chip %s"):format(chip) or "  " .. why)
    end
  end
  local cuda, why = lab.device "cuda"
  if not cuda then print(why) end
end)
