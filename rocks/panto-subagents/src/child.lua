-- One child from its start to its end: a slot, a session, a turn, its result. What it does is on its line of the card.
local panto = require('panto')
local budget = require('panto-subagents.budget')
local models = require('panto-subagents.models')
local text = require('panto-subagents.text')

local M = {}
local Child = {}
Child.__index = Child

local LONGEST = 60000 -- bytes of a child's answer that its caller gets

--- now: a child of operation `op`. `spec`: { name, profile?, prompt, session_id?, model?, reasoning?, background?, budget?,
--- tools?, tool_choice?, system?, base_prompt?, dispatch_tools?, on_event? }; `key` names it within the effect.
function M.new(op, spec, key)
  local child = setmetatable({ op = op, house = op.house, spec = spec, key = key }, Child)
  child.id = spec.session_id or child:derive()
  child.row = op.card:add(spec.name, spec.model)
  child.spent = { steps = 0, tokens = 0, cost = 0, seconds = 0 }
  child.open = {} -- its questions that wait for an answer: call -> what it asks
  op.children[#op.children + 1] = child
  return child
end

--- now: an id that only this child can have, from what it is about.
function Child:derive(...)
  local parts = { table.unpack(self.key) }
  for _, part in ipairs { ... } do parts[#parts + 1] = part end
  return panto.derive_id(self.op.effect, table.unpack(parts))
end

-- ---------------------------------------------------------------- its result

local STATES = { completed = 'done', failed = 'failed', cancelled = 'stopped', running = 'running' }

local function settle(child, result)
  if child.result then return end
  child.result = result
  local said = result.status == 'completed' and result.text ~= '' and '“' .. text.line(result.text, 100) .. '”'
    or result.error and text.line(result.error.message, 100) or result.status == 'cancelled' and 'stopped' or ''
  child.op.card:finish(child.row, STATES[result.status], said)
end

--- now: it failed before it could run, or broke.
function Child:fail(e)
  local kind = text.kind(e)
  if kind == 'cancelled' then
    settle(self, { status = 'cancelled', text = '', resumable = self.opened or false })
  else
    settle(self, { status = 'failed', text = '', resumable = self.opened or false,
      error = { kind = kind, message = text.problem(e) } })
  end
end

local function taken(child, r)
  local status, e, usage = r.status, r.error, r.usage or {}
  if child.row.tokens == 0 then -- it had ended before: nothing was heard of its steps
    child.row.tokens, child.row.cost = (usage.input or 0) + (usage.output or 0), usage.cost or 0
  end
  if child.limited and status == 'cancelled' then
    status, e = 'failed', { kind = 'limited', message = child.limited }
  elseif r.limited then
    status, e = 'failed', { kind = 'limited', message = e and e.message or 'its budget is used up' }
  end
  local answer = r.text or ''
  if #answer > LONGEST then
    answer = text.cut(answer, LONGEST, '\n… (cut; the whole answer is in session ' .. child.id .. ')')
  end
  settle(child, { status = status, text = answer, error = e and { kind = e.kind, message = e.message } or nil,
    resumable = r.resumable ~= false, usage = r.usage, calls = r.tool_calls })
end

--- await, also in a task that was asked to end: its result.
function Child:conclude()
  if not self.result and self.job then
    self.job:request_cancel()
    local r = self.job:await()
    if not self.result then
      if r then taken(self, r) else self:fail('its result is lost') end
    end
  end
  if not self.result then self:fail { kind = 'cancelled' } end
  return self.result
end

--- now: what the model is told of it.
function Child:record()
  local r = self.result or { status = 'running', text = '', resumable = true }
  return { id = self.id, name = self.spec.name, status = r.status, text = r.text, error = r.error,
    resumable = r.resumable, usage = r.usage }
end

-- ---------------------------------------------------------------- opening

local function last_choice(conversation)
  local messages = conversation:messages()
  for i = #messages, 1, -1 do
    local m = messages[i]
    if m.role == 'user' and m.metadata and m.metadata.model then return m.metadata end
  end
  return {}
end

local function manifest(child, tools)
  local names = panto.json.array {}
  for i, tool in ipairs(tools) do names[i] = tool.name end
  local profile = child.spec.profile
  return { profile = profile and profile.name, version = profile and profile.version, tools = names,
    call = child.op.call, effect = child.op.effect, rock = 'panto-subagents' }
end

local function open_new(child)
  local spec, profile = child.spec, child.spec.profile
  local choice = models.choose(spec, profile, child.op:model())
  local tools = spec.tools or child.op:declarations(profile)
  local system = spec.system or profile and profile.prompt
  child.agent = panto.agent {
    session_id = child.id, title = spec.name, base_prompt = spec.base_prompt, tools = tools,
    config = { model = choice.model, reasoning = choice.reasoning, tool_choice = spec.tool_choice },
    system_messages = { { system and system ~= '' and system or 'You are a child agent.', manifest(child, tools) } },
  }
  return choice
end

local function open_again(child)
  local spec, profile = child.spec, child.spec.profile or {}
  child.agent = panto.agent { session_id = child.id }
  local last = last_choice(child.agent:conversation())
  local choice = models.choose({ model = spec.model, reasoning = spec.reasoning },
    { model = last.model or profile.model, reasoning = last.reasoning or profile.reasoning }, child.op:model())
  child.agent:set_config { model = choice.model, reasoning = choice.reasoning }
  return choice
end

local function limits_of(child)
  local spec, profile, settings = child.spec, child.spec.profile or {}, child.house.settings
  return budget.least(spec.budget or {}, profile.budget or {}, { steps = profile.max_steps }, settings.child,
    budget.left(child.op.limits, child.op:used()))
end

-- ---------------------------------------------------------------- running

local function first_text(arguments)
  if type(arguments) ~= 'table' then return '' end
  local best
  for _, name in ipairs { 'command', 'path', 'pattern', 'query', 'url', 'prompt' } do
    if type(arguments[name]) == 'string' then return arguments[name] end
  end
  for _, key in ipairs(text.keys(arguments)) do
    best = best or type(arguments[key]) == 'string' and arguments[key]
  end
  return best or ''
end

local function finish_now(child, limits, name, whose)
  child.warned = true
  local prompt = 'You have used nine tenths of ' .. whose .. ' (' .. budget.words(limits, name)
    .. '). Finish now: no new work; say in your next message what you found or did and what is left open.'
  pcall(child.agent.submit, child.agent, { prompt = prompt, when = 'steer', id = child:derive('budget') })
end

--- What has been spent, against the child's limits and the operation's.
local function watch_budget(child, limits)
  child.spent.seconds = os.difftime(os.time(), child.row.started)
  local near = not child.warned and budget.reached(limits, child.spent, 0.9)
  if near then finish_now(child, limits, near, 'your budget') end
  child.op:watch_budget()
end

--- await: it is told to finish because the whole operation has little left.
function Child:hurry(limits, name)
  if not self.warned and self.job and not self.result then finish_now(self, limits, name, 'the budget for all agents') end
end

--- now: the operation has nothing left.
function Child:stop(why)
  if self.result then return end
  self.limited = self.limited or why
  if self.job then self.job:request_cancel() end
end

local function seen(child, event, limits)
  local row, kind = child.row, event.type
  if child.spec.on_event then child.spec.on_event(event) end
  if kind == 'tool_call' then
    row.state, row.action = 'running', event.name .. ' ' .. text.line(first_text(event.arguments), 80)
  elseif kind == 'question' then
    local asked = (event.tool or '') .. ' ' .. text.line(first_text(event.arguments), 60)
    child.open[event.id] = asked
    row.state, row.action = 'waiting', 'asks: ' .. asked
  elseif kind == 'approved' or kind == 'tool_result' then
    local asked = child.open[event.id]
    child.open[event.id] = nil
    local _, other = next(child.open)
    row.state = other and 'waiting' or 'running'
    if other then row.action = 'asks: ' .. other elseif asked then row.action = asked end
  elseif kind == 'retry' then
    row.action = 'tries again in ' .. text.duration(event.wait_s or 0)
  elseif kind == 'message' and event.role == 'assistant' then
    row.action = '“' .. text.line(event.text, 80) .. '”'
  elseif kind == 'step_ended' then
    local usage = event.usage or {}
    local spent = child.spent
    spent.steps = spent.steps + 1
    spent.tokens = spent.tokens + (usage.input or 0) + (usage.output or 0)
    spent.cost = spent.cost + (event.cost or 0)
    row.tokens, row.cost = spent.tokens, spent.cost
    watch_budget(child, limits)
  else
    return
  end
  child.op.card:touch()
end

-- How often its events are read: what streams letter by letter is nobody's here, and a crowd is looked at less often.
local LOOK_MS, CROWD_MS = 100, 10

-- Follow the turn to its end. Waiting for the end alone costs nothing for each delta.
local function follow(child, limits)
  local job = child.job
  local settled = panto.spawn(function() job:await() end)
  while true do
    local over = panto.wait({ settled }, math.max(LOOK_MS, CROWD_MS * child.house.gate.running))
    local event = job:next_event()
    while event do
      child.heard = true
      seen(child, event, limits)
      event = job:next_event()
    end
    if over then return job:result() end
    if limits.seconds then watch_budget(child, limits) end
  end
end

local GO_ON = 'You were stopped before you had finished. Go on where you were; what is done need not be done again.'

-- Its turn; where the whole has been taken up again and this turn was over before, without success, the one after it.
local function turns(child, choice, limits)
  local spec, again = child.spec, child.op.again
  for n = 0, again do
    child.heard = false
    child.job = child.agent:run_async {
      prompt = n == 0 and spec.prompt or GO_ON, id = n == 0 and child:derive('turn') or child:derive('turn', n),
      metadata = { model = choice.model, reasoning = choice.reasoning },
      limits = limits, dispatch_tools = spec.dispatch_tools, detached = spec.background or nil,
    }
    local result = follow(child, limits)
    if result.status == 'completed' or child.heard or n == again then return result end
    child.job:close()
  end
end

local function work(child)
  local spec, op = child.spec, child.op
  child.house.gate:enter(child.id)
  child.entered = true
  if child.limited then error({ kind = 'limited', message = child.limited }, 0) end
  local choice = (spec.session_id and open_again or open_new)(child)
  child.opened = true
  child.house.live[child.id] = { depth = op.depth + 1, model = choice.model, name = spec.name }
  child.row.model = choice.model
  local limits = limits_of(child)
  op.card:begin(child.row, text.line(spec.prompt or '', 80))
  local ok, result = pcall(turns, child, choice, limits)
  if ok then return taken(child, result) end
  if text.kind(result) ~= 'cancelled' then
    if child.job then child.job:request_cancel() end
    error(result, 0)
  end
  child:conclude()
end

-- Letting go is a task that nobody ends: its slot and its session are free when its turn has really ended, whatever became
-- of who waited for it.
local function release(child)
  if child.releasing then return child.releasing end
  if not child.entered then return nil end
  child.house.gate:close(child.id)
  child.releasing = panto.spawn(function()
    if child.job then child.job:close() end
    if child.agent then child.agent:close() end
    child.house.live[child.id] = nil
    child.house.gate:leave(child.id)
  end, { detached = true })
  return child.releasing
end

local LETTING_GO = { __close = function(guard) release(guard.child) end }

local function traced(e)
  return { error = e, trace = debug.traceback(type(e) == 'table' and e.message or tostring(e), 2) }
end

--- await: run it to its end. Never raises; its slot is free again only when its turn has really ended.
function Child:run()
  local guard <close> = setmetatable({ child = self }, LETTING_GO)
  local ok, broken = xpcall(work, traced, self)
  if not ok then
    if text.kind(broken.error) == 'error' then panto.log('child ' .. self.id:sub(1, 8) .. ': ' .. broken.trace) end
    if not self.result then self:fail(broken.error) end
  end
  local letting_go = release(self)
  if letting_go then pcall(letting_go.await, letting_go) end
  return self.result
end

return M
