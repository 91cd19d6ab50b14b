-- Sessions of children: found by id or the beginning of one.
local panto = require('panto')

local M = {}

--- await: what is known of the child session that `id` names. Raises where there is none, or several.
function M.find(op, id)
  if op and op.house.live[id] then return { id = id, title = op.house.live[id].name } end
  local store = panto.session_store()
  if #id == 32 then
    local known = store:metadata(id)
    if known then return known end
  elseif #id >= 4 then
    local found
    for _, row in ipairs(store:list { limit = 10000 }) do
      if row.id:sub(1, #id) == id then
        if found then error({ kind = 'usage', message = 'several agents have ids that begin with ' .. id }, 0) end
        found = row
      end
    end
    if found then return found end
  end
  error({ kind = 'missing', message = 'there is no agent with the id ' .. id .. ' in this session' }, 0)
end

return M
