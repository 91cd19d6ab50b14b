-- Which workflows have begun and how each ended, as facts of the session: one that was stopped, failed or killed can go on.
local panto = require('panto')
local ext = panto.ext

local M = {}

--- await: workflow `name` begins (again) for operation `op`.
function M.begin(op, name, inputs)
  op.house.running[op.effect] = true
  ext.session.append('workflow', { effect = op.effect, name = name, inputs = inputs, state = 'running',
    command = op.call == nil or nil })
end

--- await, also after Escape: it has ended.
function M.finish(op, state)
  op.house.running[op.effect] = nil
  ext.session.append('workflow', { effect = op.effect, state = state })
end

--- await: those that have not come to a good end and do not run here, oldest first: { effect, name, inputs, state, command,
--- again (how often it has begun) }. Calls that were killed are not among them: their turn goes on with them.
function M.unfinished(house)
  local by, order = {}, {}
  for _, fact in ipairs(ext.session.entries('workflow')) do
    local run = by[fact.effect]
    if not run then
      run = { effect = fact.effect, again = 0 }
      by[fact.effect], order[#order + 1] = run, run
    end
    run.state = fact.state
    if fact.state == 'running' then
      run.name, run.inputs, run.command, run.again = fact.name, fact.inputs, fact.command, run.again + 1
    end
  end
  local out = {}
  for _, run in ipairs(order) do
    local killed = run.state == 'running'
    if run.state ~= 'completed' and not house.running[run.effect] and (run.command or not killed) then
      out[#out + 1] = run
    end
  end
  return out
end

return M
