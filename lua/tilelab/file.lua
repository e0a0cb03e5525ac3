-- Whole files, read and written at once.

local core = require "tilelab_core"

local file = {}

-- The content, or nil and a message that names the file.
function file.read(path)
  local handle, message = io.open(path, "rb")
  if not handle then return nil, message end
  local content, reason = handle:read("a") -- a folder opens, and cannot be read
  handle:close()
  if not content then return nil, ("%s: %s"):format(path, reason) end
  return content
end

-- True, or nil and a message that names the file. A full disk may show at the end only.
function file.write(path, content)
  local handle, message = io.open(path, "wb")
  if not handle then return nil, message end
  local written, reason = handle:write(content)
  local closed, close_reason = handle:close()
  if written and closed then return true end
  return nil, ("%s: %s"):format(path, reason or close_reason)
end

-- The same in one step: whoever reads the file sees the old content or the new one.
function file.replace(path, content)
  local fresh = ("%s.%d.new"):format(path, core.pid()) -- another process may write the same file
  local written, message = file.write(fresh, content)
  if not written then return nil, message end
  return os.rename(fresh, path)
end

return file
