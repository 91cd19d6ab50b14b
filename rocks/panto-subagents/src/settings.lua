-- [extension.panto-subagents]: max_running, child and operation budgets. A wrong value is told and left out.
local profiles = require('panto-subagents.profiles')

local M = {}

--- now: settings from the configuration's table, and what is wrong with it.
function M.read(config)
  local problems, out = {}, { max_running = 8, child = {}, operation = {} }
  local limit = config.max_running
  if limit ~= nil then
    if math.tointeger(limit) and limit >= 1 and limit <= 1000 then
      out.max_running = math.tointeger(limit)
    else
      problems[#problems + 1] = 'max_running: a whole number from 1 expected'
    end
  end
  for _, name in ipairs { 'child', 'operation' } do
    local given = config[name]
    if type(given) == 'table' or type(given) == 'number' then
      out[name] = profiles.budget(given)
    elseif given ~= nil then
      problems[#problems + 1] = name .. ': { steps, tokens, cost, seconds } expected'
    end
  end
  for name in pairs(config) do
    if name ~= 'max_running' and name ~= 'child' and name ~= 'operation' then
      problems[#problems + 1] = 'unknown key ' .. tostring(name) .. ' (known: max_running, child, operation)'
    end
  end
  return out, problems
end

return M
