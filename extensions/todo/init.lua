-- A list of steps that the model keeps while it works. A lesson in durable facts: each list is a fact of this extension in
-- the session's ledger, so that it is there again after a restart or a fork, and is never sent to the model by itself.
local panto = require('panto')
local ext = panto.ext

local MARKS = { pending = '[ ]', doing = '[>]', done = '[x]' }
local set_status = ext.register_status { key = 'todo', priority = 1 }

local function latest()
  local lists = ext.session.entries('list')
  return lists[#lists] or {}
end

local function lines(items)
  local out = panto.json.array {}
  for i, item in ipairs(items) do out[i] = MARKS[item.state] .. ' ' .. item.text end
  return out
end

local function show(items)
  local done = 0
  for _, item in ipairs(items) do if item.state == 'done' then done = done + 1 end end
  set_status(#items > 0 and done < #items and done .. '/' .. #items or '')
  return done
end

ext.register_tool {
  name = 'todo',
  description = 'Keeps the list of steps of a larger task. Give the whole list each time; one item at most is doing.',
  mutates = false,
  replay = true, -- saying the same list twice changes nothing
  schema = {
    type = 'object', required = { 'items' },
    properties = { items = { type = 'array', items = {
      type = 'object', required = { 'text', 'state' },
      properties = { text = { type = 'string' }, state = { enum = { 'pending', 'doing', 'done' } } },
    } } },
  },
  handler = function(args, ctx)
    local items = panto.json.array {}
    for i, item in ipairs(args.items) do
      if not MARKS[item.state] then error('item ' .. i .. ': state is pending, doing or done') end
      items[i] = { text = tostring(item.text), state = item.state }
    end
    ext.session.append('list', items)
    local done = show(items)
    return { content = #items .. ' items, ' .. done .. ' done', fact = done .. '/' .. #items,
      details = { type = 'list', items = lines(items) } }
  end,
}

ext.register_command {
  name = 'todo',
  description = 'the steps the model keeps',
  handler = function()
    local items = latest() -- what a command returns is shown
    return #items > 0 and '- ' .. table.concat(lines(items), '\n- ') or 'no steps yet'
  end,
}

ext.on('session_start', function() -- an observer may not wait: the reading is a task of its own
  ext.spawn(function() show(latest()) end, { detached = true })
end)
