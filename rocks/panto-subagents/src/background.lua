-- Children nobody waits for: they belong to the session, go on after Escape, and report by a notice and a message.
local panto = require('panto')
local operations = require('panto-subagents.operation')
local runs = require('panto-subagents.runs')
local sessions = require('panto-subagents.sessions')
local text = require('panto-subagents.text')
local ext = panto.ext

local M = {}

--- now: may a child of this operation go to the background? Only where a person stays, and only a primary's.
function M.possible(op)
  return op.depth == 0 and ext.session_info().attended == true
end

local WORDS = { completed = 'has finished', failed = 'has failed', cancelled = 'was stopped' }

local function report(op, child)
  local r = child.result
  local words = child.spec.name .. ' ' .. (WORDS[r.status] or r.status)
  ext.ui.notify { text = words .. (r.error and ': ' .. text.line(r.error.message, 200) or ''),
    level = r.status == 'failed' and 'attention' or 'info', key = 'agent:' .. child.id }
  local said = r.text ~= '' and r.text or r.error and r.error.message or '(it said nothing)'
  op.agent:submit { when = 'follow_up', id = child:derive('report'),
    prompt = 'Background agent ' .. words .. ' (session_id ' .. child.id .. '):\n\n' .. said }
end

--- await: begin a background child; returns at once.
function M.start(op, child)
  ext.session.append('background', { id = child.id, name = child.spec.name, state = 'running' })
  panto.spawn(function()
    child:run()
    ext.session.append('background', { id = child.id, state = child.result.status })
    if child.result.status ~= 'cancelled' or not child.parked then report(op, child) end
  end, { detached = true })
end

local function lost_agents(house)
  local names, order, out = {}, {}, {}
  for _, fact in ipairs(ext.session.entries('background')) do
    if fact.state == 'running' then
      if not names[fact.id] then order[#order + 1] = fact.id end
      names[fact.id] = fact.name
    else
      names[fact.id] = nil
    end
  end
  for _, id in ipairs(order) do
    if names[id] and not house.live[id] then out[#out + 1] = names[id] .. ' (' .. id:sub(1, 8) .. ')' end
  end
  return out
end

local function lost_workflows(house)
  local out = {}
  for _, run in ipairs(runs.unfinished(house)) do
    if run.state == 'running' then out[#out + 1] = run.name end
  end
  return out
end

local function tell(names, what, hint)
  if #names == 0 then return end
  ext.ui.notify { text = 'stopped when panto ended: ' .. table.concat(names, ', '), hint = hint, key = what .. ':lost' }
end

--- now: a task names what an earlier process left running, and continues nothing.
function M.name_lost(house)
  panto.spawn(function()
    tell(lost_agents(house), 'agents', '/agents.resume ID TEXT goes on with one')
    local workflows = lost_workflows(house)
    for i, name in ipairs(workflows) do workflows[i] = 'workflow ' .. name end
    tell(workflows, 'workflows', '/workflows.resume goes on with the last one')
  end, { detached = true })
end

--- await: the handler of /agents.resume ID TEXT.
function M.resume(house)
  return function(args, ctx)
    local id, prompt = args:match('^%s*(%x+)%s+(.*%S)%s*$')
    if not id then return 'agents.resume ID TEXT: which agent, and what to tell it' end
    local op = operations.new(house, ctx, false)
    local known = sessions.find(op, id)
    local child = op:plan({ session_id = known.id, prompt = prompt, background = true,
      name = known.title ~= '' and known.title or known.id:sub(1, 8) }, { 'resume', known.id })
    M.start(op, child)
    return child.spec.name .. ' goes on'
  end
end

return M
