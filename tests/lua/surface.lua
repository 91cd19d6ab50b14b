-- The agent surface, whole, without `ext`: this file runs inside panto and under `panto lua`, and says "surface ok".
-- The model `fake:m` answers every prompt with "one two three", in pieces.
local panto = require('panto')
local json = panto.json

local function equal(got, wanted, what)
  if json.encode { got } ~= json.encode { wanted } then
    error(('%s: expected %s, got %s'):format(what, json.encode { wanted }, json.encode { got }), 2)
  end
end

local function fails(fn, part)
  local ok, e = pcall(fn)
  if ok or not tostring(e):find(part, 1, true) then error('expected an error with ' .. part .. ', got ' .. tostring(e), 2) end
  return e
end

-- streams
local agent = panto.agent { config = 'fake:m', system_messages = { { 'Be brief.', { n = 1 } } } }
local text, last = '', nil
for event in agent:run { prompt = 'hello', metadata = { tag = 'x' } } do
  if event.type == 'text_delta' then text = text .. event.text end
  last = event
end
equal(text, 'one two three', 'streamed text')
equal({ last.type, last.status }, { 'turn_ended', 'completed' }, 'the last event')

-- the conversation
local conversation = agent:conversation()
equal(#conversation, 3, 'messages')
equal(conversation:message_metadata(1).n, 1, 'metadata of the system message')
equal(conversation:message_metadata(2).tag, 'x', 'metadata of the prompt')
conversation:set_message_metadata(3, { seen = true })
equal(conversation:messages()[3].metadata.seen, true, 'metadata set later')
equal(conversation:add_user_message('and this'), 4, 'number of an added message')
fails(function() conversation:message_metadata(9) end, 'there is no message 9')
fails(function() agent:run_async { prompt = 'x', metadata = { 1 } } end, 'this is a list')

-- jobs
local id = panto.derive_id('surface', 1)
local job = agent:run_async { prompt = 'again', id = id }
local ok, other_turn = pcall(agent.run, agent, 'meanwhile')
if ok then -- the first is over already
  other_turn:close()
  if not job:result() then error('two turns of one agent at once') end
elseif not tostring(other_turn):find('agent is in a turn', 1, true) then
  error(other_turn)
end
local seen = 0
while not job:result() do
  if panto.wait({ job }, 30000) == nil then error('nothing happened') end
  while job:next_event() do seen = seen + 1 end
end
while job:next_event() do seen = seen + 1 end
local result = job:await()
equal({ result.status, result.text, result.id == id, result.resumable }, { 'completed', 'one two three', true, true }, 'result')
if seen < 4 then error('few events: ' .. seen) end
job:close()
job:close()
fails(function() job:result() end, 'this job is closed')
local known = agent:run_async { prompt = 'once more', id = id }
equal(known:await().text, 'one two three', 'a known id')
known:close()

-- polling without a wait gets there too
local polled = agent:run_async 'poll me'
local count = 0
repeat
  while polled:next_event() do count = count + 1 end
until polled:result()
polled:close()

-- cancelling
local other = panto.agent { config = 'fake:m' }
local stopped = other:run_async 'stop me'
stopped:request_cancel()
local how = stopped:await().status
if how ~= 'cancelled' and how ~= 'completed' then error('a cancelled job is ' .. how) end
stopped:close()

-- declarations and configuration
local tools = agent:tools()
if #tools < 5 then error('few tools') end
agent:set_tools { tools[1], { name = 'mine', description = 'x', schema = { type = 'object' } } }
equal({ agent:tools()[2].name, #agent:tools() }, { 'mine', 2 }, 'declarations')
agent:set_config { reasoning = '' }
fails(function() agent:set_config { model = 'nobody:none' } end, 'nobody:none')
fails(function() panto.agent { config = { colour = 1 } } end, 'unknown member colour')

-- stores, and a session opened again
local name = agent.id
agent:close()
local reopened = panto.agent { session_id = name, store = panto.session_store() }
equal(reopened.id, name, 'the same session')
if #reopened:conversation() < 4 then error('its history is gone') end
reopened:close()
other:close()
equal(panto.session_store():metadata(('0'):rep(32)), nil, 'a session that is not there')
fails(function() panto.session_store { under = 'x y' } end, 'not a session id')

-- tasks, programs, files
local task = panto.spawn(function() panto.sleep(1) return 'spawned' end)
equal(task:await(), 'spawned', 'a task')
equal(panto.exec { argv = { 'echo', 'out' } }.stdout, 'out\n', 'a program')
equal(panto.fs.stat('/').kind, 'directory', 'a file')
equal(select(2, pcall(panto.http, { url = 'nonsense' })).kind, 'usage', 'a bad url')

print('surface ok')
return 'surface ok'
