-- One call that runs children: who asks, what may be spent in all, the card, and what Escape does to it.
local panto = require('panto')
local budget = require('panto-subagents.budget')
local cards = require('panto-subagents.card')
local children = require('panto-subagents.child')
local profiles = require('panto-subagents.profiles')
local text = require('panto-subagents.text')

local M = {}
local Operation = {}
Operation.__index = Operation

M.DEEPEST = 3

--- now: an operation of the call or command behind `ctx`. `shown` false: there is no card. `again`: how often it has been
--- taken up again after it was stopped or failed.
function M.new(house, ctx, shown)
  local mine = house.live[ctx.agent.id]
  local depth = mine and mine.depth or ctx.agent.id == panto.ext.session_info().id and 0 or 1
  return setmetatable({ house = house, ctx = ctx, agent = ctx.agent, effect = ctx.effect_id, call = ctx.call_id,
    depth = depth, children = {}, limits = house.settings.operation, started = os.time(),
    again = 0, card = cards.new(shown ~= false and ctx or nil) }, Operation)
end

--- now: has the person asked to stop?
function Operation:cancelled() return self.ctx:cancelled() end

--- now: the label of the model that asks.
function Operation:model()
  local mine = self.house.live[self.agent.id]
  return mine and mine.model or panto.ext.session_info().model
end

--- await: the declarations of a child.
function Operation:declarations(profile)
  self.tools = self.tools or self.agent:tools()
  return profiles.declarations(profile or { denied = {} }, self.tools, self.depth + 1, M.DEEPEST)
end

--- now: what all its children have spent.
function Operation:used()
  local tokens, cost = self.card:totals()
  return { tokens = tokens, cost = cost, seconds = os.difftime(os.time(), self.started) }
end

--- await: children are told to finish, or stopped, as the operation's own budget runs out.
function Operation:watch_budget()
  local used = self:used()
  local over = budget.reached(self.limits, used, 1)
  if over then
    for _, child in ipairs(self.children) do
      child:stop('the budget for all agents is used up: ' .. budget.words(self.limits, over))
    end
    return
  end
  local near = not self.hurried and budget.reached(self.limits, used, 0.9)
  if near then
    self.hurried = true
    for _, child in ipairs(self.children) do child:hurry(self.limits, near) end
  end
end

--- now: a child from what the model (or a script) asks for. Raises what is wrong with it.
function Operation:plan(task, key)
  if self.depth >= M.DEEPEST then
    error({ kind = 'depth', message = 'children may be nested ' .. M.DEEPEST .. ' deep, and this is the deepest' }, 0)
  end
  if type(task.prompt) ~= 'string' or not task.prompt:find('%S') then
    error({ kind = 'usage', message = 'prompt is missing' }, 0)
  end
  local profile
  if task.profile then
    profile = self.house.profiles[task.profile]
    if not profile then
      error({ kind = 'usage', message = 'there is no profile ' .. tostring(task.profile) .. '; there are: '
        .. table.concat(text.keys(self.house.profiles), ', ') }, 0)
    end
  end
  local spec = {}
  for name, value in pairs(task) do spec[name] = value end
  spec.profile, spec.name = profile, task.name or self:name(profile and profile.name or 'agent')
  return children.new(self, spec, key)
end

--- now: a name that no other child of the operation has.
function Operation:name(wish)
  self.names = self.names or {}
  local n = (self.names[wish] or 0) + 1
  self.names[wish] = n
  return n == 1 and wish or wish .. ' ' .. n
end

--- await: `fn` runs while the agent that asks has lent its slot to its children.
function Operation:during(fn, ...)
  local gate, id = self.house.gate, self.agent.id
  gate:lend(id)
  local results = table.pack(pcall(fn, ...))
  local ok, problem = pcall(gate.take_back, gate, id)
  if not results[1] then error(results[2], 0) end
  if not ok and text.kind(problem) ~= 'cancelled' then error(problem, 0) end
  return table.unpack(results, 2, results.n)
end

--- await: all of these functions as tasks (put into `tasks`); returns when all have ended, or at once, with false, when the
--- person asks to stop.
function Operation:together(functions, tasks)
  tasks = tasks or {}
  for i, fn in ipairs(functions) do tasks[i] = panto.spawn(fn) end
  local ok, problem = pcall(function()
    for _, task in ipairs(tasks) do task:await() end
  end)
  if ok then return true end
  if text.kind(problem) ~= 'cancelled' then error(problem, 0) end
  return false
end

--- await, also after Escape: every child's result.
function Operation:conclude()
  for _, child in ipairs(self.children) do
    if not child.spec.background or child.result then child:conclude() end
  end
end

--- now: what the call returns: content, and the card as it ended.
function Operation:reply(content)
  local stopped = self.ctx:cancelled()
  return { content = content, details = #self.children > 0 and self.card:fill() or nil, fact = self.card:fact(),
    cancelled = stopped or nil }
end

return M
