-- subagents.run: tasks at once under the gate, a result for each in their order.
local panto = require('panto')
local background = require('panto-subagents.background')
local operations = require('panto-subagents.operation')
local sessions = require('panto-subagents.sessions')
local text = require('panto-subagents.text')

local M = {}

M.SCHEMA = {
  type = 'object', required = { 'tasks' }, additionalProperties = false,
  properties = {
    tasks = {
      type = 'array', minItems = 1, maxItems = 200,
      items = {
        type = 'object', required = { 'prompt' }, additionalProperties = false,
        properties = {
          profile = { type = 'string', description = 'which agent; without one it gets your tools and no instructions' },
          prompt = { type = 'string', description = 'all it needs to know; it does not see this conversation' },
          session_id = { type = 'string', description = 'id from an earlier result: that agent goes on, with its history' },
          model = { type = 'string', description = 'provider:alias, from subagents.models' },
          reasoning = { type = 'string' },
          background = { type = 'boolean', description = 'do not wait; it reports later in a message of its own' },
        },
      },
    },
  },
}

--- now: the tool's description with the profiles there are.
function M.description(summary)
  return 'Runs other agents, all tasks at once, and returns what each of them answers, in order. Use it for work that can be '
    .. 'described in full and is independent of what you do next: searching widely, several reviews, separate changes in '
    .. 'separate files. Each result has status (completed, failed, cancelled, running), text, and an id; give that id as '
    .. 'session_id to go on with the same agent.\nProfiles:\n' .. summary
end

local WORDS = { profile = 'string', prompt = 'string', session_id = 'string', model = 'string', reasoning = 'string',
  background = 'boolean' }

local function checked(task)
  if type(task) ~= 'table' then error({ kind = 'usage', message = 'a task is an object with a prompt' }, 0) end
  local out = {}
  for name, kind in pairs(WORDS) do
    local v = task[name]
    if v ~= nil and v ~= panto.json.null and v ~= '' then
      if type(v) ~= kind then error({ kind = 'usage', message = name .. ': ' .. kind .. ' expected' }, 0) end
      out[name] = v
    end
  end
  return out
end

-- A task that cannot even be planned is a failed result beside the others.
local function planned(op, task, index)
  local ok, child = pcall(function()
    local asked = checked(task)
    if asked.session_id then
      local known = sessions.find(op, asked.session_id)
      asked.session_id, asked.name = known.id, op:name(known.title ~= '' and known.title or 'agent')
    end
    if asked.background and not background.possible(op) then asked.background = nil end
    return op:plan(asked, { index })
  end)
  if ok then return child end
  if text.kind(child) == 'cancelled' then error(child, 0) end
  return nil, { id = panto.json.null, status = 'failed', text = '', resumable = false,
    error = { kind = text.kind(child), message = text.problem(child) } }
end

--- await: the handler of subagents.run.
function M.handler(house)
  return function(args, ctx)
    local op = operations.new(house, ctx)
    local rows, waited, planned_children = panto.json.array {}, {}, {}
    for i, task in ipairs(args.tasks or {}) do
      local child, failed = planned(op, task, i)
      planned_children[i], rows[i] = child or false, failed or false
    end
    for _, child in ipairs(op.children) do
      if child.spec.background then
        background.start(op, child)
      else
        waited[#waited + 1] = function() child:run() end
      end
    end
    if #waited > 0 then
      op:during(function()
        if not op:together(waited) then op:conclude() end
      end)
    end
    for i, child in ipairs(planned_children) do
      if child then rows[i] = child:record() end
    end
    return op:reply { results = rows }
  end
end

return M
