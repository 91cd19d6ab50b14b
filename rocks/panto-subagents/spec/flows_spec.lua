local t = ...
local it, is, has = t.it, t.is, t.has

local function made(options)
  local host = t.host(options)
  host.run(function() host.require('panto-subagents.init') end)
  return host
end

local function used(host, tool, args, effect, each_round)
  return host.run(function() return host.ext.registered['subagents.' .. tool].handler(args, t.stub.context(host, effect)) end, each_round)
end

local function answers(value) return { text = '', calls = { { id = '1', name = 'answer', input = value } } } end

local GRAPH = [==[
[[step]]
id = "a"
profile = "p"
prompt = "a {{inputs.x}}"
[[step]]
id = "each"
profile = "p"
for_each = "{{steps.a.text}}"
prompt = "{{item}}"
[[step]]
id = "end"
worker = true
prompt = "{{steps.each.text}}"
schema = { type = "object", required = ["n"], properties = { n = { type = "integer" } } }
[inputs.x]
default = "1"
]==]

local FILES = { ['/config/agents/p.md'] = 'P', ['/config/workflows/w.toml'] = GRAPH }

it('keeps finished steps over a second run of the same call', function()
  local host = made { files = FILES, reply = function(_, p, spec)
    if spec.dispatch_tools == false then return answers('{"n": 2}') end
    return { text = p == 'a 1' and '["x", "y"]' or 'did ' .. p }
  end }
  local first = used(host, 'workflow', { name = 'w' }, 'e')
  is({ first.content.status, first.content.text, #host.turns }, { 'completed', '{"n":2}', 4 })
  local again = used(host, 'workflow', { name = 'w' }, 'e')
  is({ again.content.text, #host.turns }, { '{"n":2}', 4 })
end)

it('skips what needs a failed step, and names both', function()
  local host = made { files = FILES, reply = function() return { status = 'failed', error = { kind = 'x', message = 'no luck' } } end }
  local out = used(host, 'workflow', { name = 'w', inputs = { x = 'z' } })
  is({ out.content.status, out.is_error }, { 'failed', true })
  is({ out.content.steps[1].error, out.content.steps[2].because, out.content.steps[3].because }, { 'no luck', 'it needs a', 'it needs a' })
  t.fails(function() used(host, 'workflow', { name = 'no' }) end, 'there is no workflow no; there are: w')
  t.fails(function() used(host, 'workflow', { name = 'w', inputs = { q = 1 } }) end, 'has no input q; it has: x')
end)

it('goes on with the other items where one fails', function()
  local host = made { files = FILES, reply = function(_, p, spec)
    if spec.dispatch_tools == false then return answers('{"n": 2}') end
    if p == 'y' then return { status = 'failed', error = { kind = 'x', message = 'bad item' } } end
    return { text = p == 'a 1' and 'x\n- y\nz' or p }
  end }
  local out = used(host, 'workflow', { name = 'w' })
  is({ out.content.status, out.content.steps[2].failures }, { 'completed', 1 })
end)

it('is stopped whole', function()
  local host = made { files = FILES, reply = function() return { rounds = 'never' } end }
  local out = used(host, 'workflow', { name = 'w' }, 'e', function(round)
    if round == 40 then
      host.interrupted = true
      host.scheduler.interrupt()
    end
  end)
  is({ out.content.status, out.cancelled, out.content.steps[3].status }, { 'cancelled', true, 'cancelled' })
  is(host.running, 0)
end)

it('asks a worker again, with what was wrong, at most twice', function()
  local replies = { answers('{"n": "x"}'), answers('nothing'), { text = 'words' } }
  local n = 0
  local host = made { reply = function() n = n + 1 return replies[n] end }
  local source = "return wf.worker { prompt = 'p', schema = { type = 'object', properties = { n = { type = 'integer' } } } }"
  local out = used(host, 'lua', { source = source })
  is({ out.content.status, out.content.error.kind, n }, { 'failed', 'invalid_output', 3 })
  has(host.turns[2].prompt, '/n: integer expected')
  has(host.turns[3].prompt, 'not JSON')
end)

it('gives scripts their agents, their steps, and errors with an id', function()
  local host = made { files = FILES, reply = function(_, p)
    if p == 'bad' then return { status = 'failed', error = { kind = 'x', message = 'no luck' } } end
  end }
  local source = [[
    local ok, e = pcall(wf.run, 'p', 'bad')
    local all = wf.all { function() return wf.run('p', 'a') end, function() return 2 end }
    wf.log('x', 1)
    return { ok, e.kind, #e.child, all, wf.step('s', function() return args.k end) }]]
  local out = used(host, 'lua', { source = source, args = { k = 'v' } }, 'e')
  is(out.content.result, { false, 'x', 32, { 'answer to a', 2 }, 'v' })
  is(out.content.log, { 'x 1' })
  used(host, 'lua', { source = source, args = { k = 'other' } }, 'e')
  is(#host.turns, 2)
  t.fails(function() used(host, 'lua', {}) end, 'source or file is needed')
end)

it('takes words of a command as inputs', function()
  local words = made { files = FILES }.require('panto-subagents.by_hand').words
  local graph = { inputs = { question = { required = true }, files = {} } }
  is(words(graph, 'files="a b" what is  it?'), { files = 'a b', question = 'what is it?' })
  is(words(graph, "files='*.py'"), { files = '*.py' })
  is(words(graph, ''), {})
end)

local function typed(host, command, args, effect, each_round)
  return host.run(function() return host.ext.registered[command].handler(args, t.stub.context(host, effect)) end, each_round)
end

it('goes on with a workflow that was stopped: finished steps stay, agents go on where they were', function()
  local slow = true
  local host = made { files = FILES, reply = function(_, p, spec)
    if spec.dispatch_tools == false then return answers('{"n": 2}') end
    if p == 'y' and slow then return { text = 'half', rounds = 'never' } end
    return { text = p == 'a 1' and '["x", "y"]' or 'did ' .. p }
  end }
  local said = typed(host, 'workflow:w', '', 'e', function(round)
    if round == 60 then
      host.interrupted = true
      host.scheduler.interrupt()
    end
  end)
  is(said, 'workflow w stopped: 1 of 3 steps finished; /workflows.resume goes on with it')
  is({ #host.turns, #host.submitted }, { 3, 0 })
  slow, host.interrupted = false, false
  has(typed(host, 'workflows.resume', '', 'again'), 'workflow w completed')
  is(#host.turns, 5)
  has(host.turns[4].prompt, 'Go on where you were')
  is(host.turns[4].agent, host.turns[3].agent)
  has(host.submitted[1].prompt, 'The workflow w has finished.')
  is(typed(host, 'workflows.resume', '', 'more'), 'no workflow waits to be continued')
end)

it('tries again what had failed when a workflow is taken up again', function()
  local down = true
  local host = made { files = FILES, reply = function(_, p, spec)
    if spec.dispatch_tools == false then return answers('{"n": 2}') end
    if down then return { status = 'failed', error = { kind = 'network', message = 'no answer' } } end
    return { text = '["x"]' }
  end }
  has(typed(host, 'workflow:w', '', 'e'), 'workflow w failed: 0 of 3 steps finished')
  down = false
  has(typed(host, 'workflows.resume', 'w', 'again'), 'workflow w completed')
  is(typed(host, 'workflows.resume', 'v', 'more'), 'no workflow v waits to be continued')
end)

it('names a workflow that ended with panto, and leaves calls to their turn', function()
  local host = made { files = FILES }
  local running = function(effect, command)
    table.insert(host.facts, { kind = 'workflow', value = { effect = effect, name = 'w', inputs = {}, state = 'running', command = command } })
  end
  running('call', nil)
  running('typed', true)
  local runs = host.require('panto-subagents.runs')
  local house = { running = {} }
  is({ #runs.unfinished(house), runs.unfinished(house)[1].effect }, { 1, 'typed' })
  house.running.typed = true
  is(#runs.unfinished(house), 0)
end)

it('reads a change without a question, and only that', function()
  local host = made { exec = function(spec)
    local line = table.concat(spec.argv, ' ')
    if line:find('ls-files', 1, true) then return { code = 0, signal = 0, stdout = 'new.py\0', stderr = '' } end
    if line:find('nowhere', 1, true) then return { code = 128, signal = 0, stdout = '', stderr = 'fatal: bad revision' } end
    return { code = 0, signal = 0, stdout = line:find('v1..v2', 1, true) and '' or '+ a line\n', stderr = '' }
  end }
  local change = host.require('panto-subagents.change')
  has(host.run(function() return change.read('/w', 'HEAD') end), 'new.py')
  is(host.run(function() return change.read('/w', 'HEAD~1 -- src') end), '+ a line\n')
  t.fails(function() host.run(function() change.read('/w', 'v1..v2') end) end, 'there is no change')
  t.fails(function() host.run(function() change.read('/w', 'nowhere') end) end, 'git: fatal: bad revision')
  local function refused(words) t.fails(function() change.arguments(words) end, 'expected') end
  refused('--output=x')
  refused('HEAD --no-index')
  refused('-O/tmp/x')
  refused('HEAD -- /etc/passwd')
  refused('HEAD -- ../other')
  refused('HEAD -- a/../../b')
  refused('HEAD -- :(top)x')
  refused('/etc/passwd')
  is((change.arguments('main...HEAD@{1} --staged -- a b/c')), { 'main...HEAD@{1}', '--staged', '--', 'a', 'b/c' })
end)
