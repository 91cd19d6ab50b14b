-- Where profiles and workflows lie, in the order in which a later one of the same name wins.
local panto = require('panto')
local fs, ext = panto.fs, panto.ext

local M = {}

--- The rock's own folders `name`: beside the sources (as installed) or one above (as checked out).
function M.shipped(here, name)
  return { here .. '/' .. name, here .. '/../' .. name }
end

--- Folders to look in: { path, place } for agents or workflows.
function M.folders(here, name)
  local info, home = ext.session_info(), os.getenv('HOME')
  local out = {}
  for _, path in ipairs(M.shipped(here, name)) do out[#out + 1] = { path = path, place = 'shipped' } end
  if name == 'agents' and home then
    out[#out + 1] = { path = home .. '/.claude/agents', place = 'user' }
    out[#out + 1] = { path = home .. '/.agents/agents', place = 'user' }
  end
  if info.config_dir then out[#out + 1] = { path = info.config_dir .. '/' .. name, place = 'user' } end
  if info.project then
    if name == 'agents' then
      out[#out + 1] = { path = info.project .. '/.claude/agents', place = 'project' }
      out[#out + 1] = { path = info.project .. '/.agents/agents', place = 'project' }
    end
    out[#out + 1] = { path = info.project .. '/.panto/' .. name, place = 'project' }
  end
  return out
end

--- await: the files of a folder that end with `ending`: name without the ending, path, text. A missing folder has none.
function M.read_all(folder, ending)
  local out = {}
  local ok, names = pcall(fs.list, folder)
  for _, name in ipairs(ok and names or {}) do
    local stem = name:match('^([^.].*)' .. ending:gsub('%.', '%%.') .. '$')
    if stem then
      local path = folder .. '/' .. name
      local read, text = pcall(fs.read, path)
      if read and text and #text <= 256 * 1024 then out[#out + 1] = { stem = stem, path = path, text = text } end
    end
  end
  return out
end

return M
