local t = ...
local it, is, has = t.it, t.is, t.has

local PROFILE = '---\nname: explore\ndescription: d\ntools: [read]\n---\nLook.'

local function crew(options)
  options = options or {}
  options.files = options.files or { ['/config/agents/explore.md'] = PROFILE }
  options.tools = { { name = 'read', schema = '{}' }, { name = 'bash', schema = '{}' }, { name = 'subagents.run', schema = '{}' } }
  local host = t.host(options)
  host.run(function() host.require('panto-subagents.init') end)
  return host
end

local function call(host, tasks, effect, each_round)
  local reply = host.run(function()
    return host.ext.registered['subagents.run'].handler({ tasks = tasks }, t.stub.context(host, effect))
  end, each_round)
  return reply.content.results, reply
end

local function statuses(rows)
  local out = {}
  for i, row in ipairs(rows) do out[i] = row.status end
  return out
end

local function all_closed(host)
  for id, count in pairs(host.open) do if count ~= 0 then error(id .. ' is still open', 2) end end
  is(host.running, 0)
end

it('registers its tools, commands and what a task may hold', function()
  local host = crew()
  is(host.require('panto-subagents.text').keys(host.ext.registered),
    { 'agents.resume', 'subagents.lua', 'subagents.models', 'subagents.run', 'subagents.workflow', 'workflows.resume' })
  has(host.ext.registered['subagents.run'].description, '- explore: d')
  is({ host.ext.registered['subagents.run'].replay, host.ext.registered['subagents.lua'].approval }, { true, 'command' })
end)

it('runs tasks at once and answers in their order', function()
  local host = crew { reply = function(_, p) return { text = 'got ' .. p, rounds = p == 'a' and 9 or 1 } end }
  local rows, reply = call(host, { { prompt = 'a', profile = 'explore' }, { prompt = 'b' } })
  is({ rows[1].text, rows[2].text }, { 'got a', 'got b' })
  is({ host.sessions[rows[1].id].title, #host.sessions[rows[1].id].tools, #host.sessions[rows[2].id].tools }, { 'explore', 1, 2 })
  is(host.most, 2)
  is({ reply.details.title, reply.details.state }, { '2 children', 'done' })
  all_closed(host)
end)

it('holds the bound whatever the number, and leaves nothing open', function()
  local host = crew { config = { max_running = 3 } }
  local tasks = {}
  for i = 1, 30 do tasks[i] = { prompt = 'p' .. i } end
  local rows = call(host, tasks)
  is({ #rows, rows[30].text, host.most }, { 30, 'answer to p30', 3 })
  all_closed(host)
end)

it('settles every child when the person asks to stop', function()
  local host = crew { reply = function(_, p) return { text = p, rounds = p == 'quick' and 1 or 'never' } end, config = { max_running = 2 } }
  local rows, reply = call(host, { { prompt = 'quick' }, { prompt = 'slow' }, { prompt = 'slow' }, { prompt = 'slow' } }, nil, function(round)
    if round == 25 then
      host.interrupted = true
      host.scheduler.interrupt()
    end
  end)
  is(statuses(rows), { 'completed', 'cancelled', 'cancelled', 'cancelled' })
  is({ rows[1].text, reply.cancelled, reply.details.state }, { 'quick', true, 'stopped' })
  all_closed(host)
end)

it('lets nobody suffer for one that fails', function()
  local host = crew { reply = function(_, p)
    if p == 'bad' then return { status = 'failed', error = { kind = 'network', message = 'down' } } end
    if p == 'odd' then error('a fault of the host') end
  end }
  local rows = call(host, { { prompt = 'bad' }, { prompt = 'odd' }, { prompt = 'good' }, { profile = 'no', prompt = 'x' }, {} })
  is(statuses(rows), { 'failed', 'failed', 'completed', 'failed', 'failed' })
  is(rows[1].error, { kind = 'network', message = 'down' })
  has(rows[2].error.message, 'a fault of the host')
  is(rows[2].error.message:find('traceback'), nil)
  has(table.concat(host.logged), 'stack traceback')
  has(rows[4].error.message, 'there is no profile no')
end)

it('goes on with a session: its model, its reasoning, no second prompt', function()
  local host = crew()
  local first = call(host, { { prompt = 'one', profile = 'explore', model = 'fake:m', reasoning = 'high' } }, 'e1')
  local rows = call(host, { { prompt = 'two', session_id = first[1].id } }, 'e2')
  is({ rows[1].id, rows[1].text }, { first[1].id, 'answer to two' })
  local roles = {}
  for i, m in ipairs(host.sessions[first[1].id].messages) do roles[i] = m.role end
  is(roles, { 'system', 'user', 'assistant', 'user', 'assistant' })
  is(host.turns[2].metadata, { model = 'fake:m', reasoning = 'high' })
  rows = call(host, { { prompt = 'three', session_id = first[1].id:sub(1, 6), model = 'fake:other' } }, 'e3')
  is(host.turns[3].metadata, { model = 'fake:other' })
  is(host.sessions[first[1].id].messages[1].metadata.profile, 'explore')
end)

it('runs the same call again without asking finished children again', function()
  local host = crew()
  local one = call(host, { { prompt = 'a' }, { prompt = 'b' } }, 'same')
  local again = call(host, { { prompt = 'a' }, { prompt = 'b' } }, 'same')
  is({ again[1].id, again[2].text, #host.turns }, { one[1].id, 'answer to b', 2 })
end)

it('wishes of a profile for a model give way, those of a call do not', function()
  local host = crew { files = { ['/config/agents/s.md'] = '---\nname: s\nmodel: sonnet\n---\n', ['/config/agents/x.md'] = '---\nname: x\nmodel: nobody\nreasoning: huge\n---\n' } }
  local rows = call(host, { { prompt = '1', profile = 's' }, { prompt = '2', profile = 'x' }, { prompt = '3', model = 'nobody' } })
  is(statuses(rows), { 'completed', 'completed', 'failed' })
  is({ host.turns[1].metadata.model, host.turns[2].metadata.model }, { 'far:sonnet', 'fake:m' })
end)

it('warns at nine tenths of a budget, once', function()
  local host = crew { reply = function() return { text = 'x', steps = 19, usage = { input = 4, output = 1 }, rounds = 30 } end,
    config = { child = { tokens = 100 } } }
  call(host, { { prompt = 'a' } })
  is(#host.submitted, 1)
  has(host.submitted[1].prompt, 'nine tenths of your budget (100 tokens)')
  is(host.submitted[1].when, 'steer')
end)

it('stops all children when the budget of an operation is gone', function()
  local host = crew { reply = function(_, p) return { text = p, steps = 10, usage = { input = 10, output = 0 }, rounds = p == 'quick' and 1 or 'never' } end,
    config = { operation = { tokens = 150 } } }
  local rows = call(host, { { prompt = 'quick' }, { prompt = 'slow' } })
  is({ rows[2].status, rows[2].error.kind }, { 'failed', 'limited' })
  has(rows[2].error.message, '150 tokens')
end)

it('reports a background child by a notice and a message', function()
  local host = crew { reply = function() return { text = 'found', rounds = 20 } end }
  local rows = call(host, { { prompt = 'a', background = true } })
  is({ rows[1].status, rows[1].resumable }, { 'running', true })
  has(table.concat(host.notices), 'agent has finished')
  has(host.submitted[1].prompt, 'found')
  is(host.submitted[1].when, 'follow_up')
  is({ host.facts[1].value.state, host.facts[2].value.state }, { 'running', 'completed' })
end)

it('runs what should be in the background in the foreground where nobody is there', function()
  local host = crew { attended = false }
  is(call(host, { { prompt = 'a', background = true } })[1].status, 'completed')
end)

it('tells what is wrong with its settings', function()
  local host = crew { config = { max_running = 0, colour = 'red' } }
  has(table.concat(host.notices, '\n'), 'max_running')
  has(table.concat(host.notices, '\n'), 'unknown key colour')
end)
