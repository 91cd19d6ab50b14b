-- subagents.run: tasks at once under the gate, a result for each in their order.
local panto = require('panto')
local background = require('panto-subagents.background')
local operations = require('panto-subagents.operation')
local sessions = require('panto-subagents.sessions')
local text = require('panto-subagents.text')

local M = {}

local text_field = { type = 'string' }

M.SCHEMA = {
  type = 'object', required = { 'tasks' },
  properties = {
    tasks = {
      type = 'array',
      items = {
        type = 'object', required = { 'prompt' },
        properties = {
          profile = text_field,
          prompt = { type = 'string', description = 'all it must know: it sees nothing else' },
          session_id = { type = 'string', description = 'id of an earlier result: goes on with it' },
          model = text_field,
          reasoning = text_field,
          background = { type = 'boolean', description = 'reports later' },
        },
      },
    },
  },
}

M.MOST = 200 -- tasks in one call

--- now: the tool's description with the profiles there are.
function M.description(summary)
  return 'Runs agents at once, returns their answers in order. For work you can describe in full: wide searches, reviews, '
    .. 'separate changes. Profiles (none: your tools):\n' .. summary
end

local WORDS = { profile = 'string', prompt = 'string', session_id = 'string', model = 'string', reasoning = 'string',
  background = 'boolean' }

local function checked(task)
  if type(task) ~= 'table' then error({ kind = 'usage', message = 'a task is an object with a prompt' }, 0) end
  for name in pairs(task) do
    if not WORDS[name] then
      local known = table.concat(text.keys(WORDS), ', ')
      error({ kind = 'usage', message = 'a task has no ' .. tostring(name) .. '; it has: ' .. known }, 0)
    end
  end
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
    local op, tasks = operations.new(house, ctx), args.tasks
    if type(tasks) ~= 'table' or #tasks < 1 or #tasks > M.MOST then
      error({ kind = 'usage', message = 'tasks: a list of 1 to ' .. M.MOST .. ' tasks expected' }, 0)
    end
    local rows, waited, planned_children = panto.json.array {}, {}, {}
    for i, task in ipairs(tasks) do
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
