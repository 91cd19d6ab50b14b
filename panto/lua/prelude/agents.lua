-- Agents, streams, jobs, conversations and stores, as Lua sees them. Python holds the real ones under numbers.
local H = ...
local await, misuse, post, current, plain, expect = H.await, H.misuse, H.post, H.current, H.plain, H.expect
local failure, asks, panto, null = H.failure, H.asks, H.panto, H.null
local json_decode, json_encode, shape = H.json_decode, H.json_encode, H.shape
local type, tostring, error, setmetatable, select, next, pairs, ipairs, rawequal = type, tostring, error, setmetatable,
  select, next, pairs, ipairs, rawequal
local byte, sub, match = string.byte, string.sub, string.match
local pcall, isyieldable, mathtype = pcall, coroutine.isyieldable, math.type

local inner = setmetatable({}, { __mode = 'k' }) -- object -> what panto knows of it

local function kind(name)
  local class = { __name = name, __metatable = false }
  class.__index = class
  return class
end

local Agent, Stream, Job, Conversation, Store = kind('agent'), kind('stream'), kind('job'), kind('conversation'), kind('store')

local function self_of(object, class, method)
  local it = inner[object]
  if not it or it.class ~= class then misuse(method .. ': call it with a colon on ' .. class.__name) end
  return it
end

--- A JSON object for metadata; a list is refused.
local function metadata(what, t)
  if t == nil then return nil end
  expect(what, t, 'table')
  if shape(t) then misuse(what .. ': an object is expected, this is a list') end
  local ok, text = pcall(json_encode, t)
  if not ok then misuse(what .. ': ' .. tostring(text)) end
  return text
end

-- ---------------------------------------------------------------- configurations

local configs = setmetatable({}, { __mode = 'k' })

--- An opaque configuration: readable are its labels only.
function H.opaque_config(fields)
  local shown = { model = fields.model, reasoning = fields.reasoning, style = fields.style, wire_model = fields.wire_model }
  local config = setmetatable({}, {
    __name = 'config',
    __index = shown,
    __newindex = function() misuse('a resolved configuration cannot be changed') end,
    __pairs = function() return next, {}, nil end,
    __metatable = false,
  })
  configs[config] = fields
  return config
end

local function config_of(what, config)
  if config == nil then return nil end
  if type(config) == 'string' then return { model = config } end
  expect(what, config, 'table')
  local known = configs[config]
  local out = {}
  for _, name in ipairs { 'model', 'reasoning', 'tool_choice' } do
    local v = (known or config)[name]
    if v ~= nil then out[name] = expect(what .. '.' .. name, v, 'string') end
  end
  if not known then
    for name in next, config do
      if name ~= 'model' and name ~= 'reasoning' and name ~= 'tool_choice' then
        misuse(what .. ': unknown member ' .. tostring(name))
      end
    end
  end
  return out
end
H.config_of = config_of

--- Declarations with their schema as JSON text.
local function declarations(what, list)
  if list == nil then return nil end
  expect(what, list, 'table')
  local out = setmetatable({}, H.ARRAY)
  for i, decl in ipairs(list) do
    expect(what .. '[' .. i .. ']', decl, 'table')
    out[i] = {
      name = expect(what .. '[' .. i .. '].name', decl.name, 'string'),
      description = expect(what .. '[' .. i .. '].description', decl.description or '', 'string'),
      schema = H.schema_text(what .. '[' .. i .. '].schema', decl.schema),
    }
  end
  return plain(what, out)
end

--- A JSON Schema as text, from text or a table.
function H.schema_text(what, schema)
  if schema == nil then return '{"type":"object","properties":{}}' end
  if type(schema) == 'string' then
    local ok, v = pcall(json_decode, schema)
    if not ok then misuse(what .. ': ' .. tostring(v)) end
    return schema
  end
  expect(what, schema, 'table')
  local ok, text = pcall(json_encode, schema)
  if not ok then misuse(what .. ': ' .. tostring(text)) end
  return text
end

-- ---------------------------------------------------------------- events

-- A record comes as name, value, name, value …; a name that begins with a zero byte has JSON text as its value.
local function record(first, ...)
  if first == nil then return nil end
  local out, parts = {}, { first, ... }
  for i = 1, #parts, 2 do
    local name, value = parts[i], parts[i + 1]
    if byte(name) == 0 then name, value = sub(name, 2), json_decode(value) end
    out[name] = value
  end
  return out
end

-- ---------------------------------------------------------------- jobs

local empty_polls = 0

local function open_job(job, method)
  local it = self_of(job, Job, method)
  if it.closed then misuse(method .. ': this job is closed') end
  return it
end

local function job_result(it)
  if it.result == nil then
    local text = asks.job_result(it.id)
    if text then it.result = json_decode(text) end
  end
  return it.result
end

--- now: the next unread event as a table of one's own, or nil. Gives the loop a turn after a few empty polls in a task.
function Job:next_event()
  local it = open_job(self, 'job:next_event')
  local event = record(asks.job_next(it.id))
  if event then
    empty_polls = 0
    return event
  end
  local t = current()
  empty_polls = empty_polls + 1
  if empty_polls > 3 and t and t.task and not t.cancelled and isyieldable() then
    empty_polls = 0
    await('job:next_event', 'turn')
    return record(asks.job_next(it.id))
  end
  return nil
end

--- now: the settled result, or nil while it runs.
function Job:result()
  local it = open_job(self, 'job:result')
  local result = job_result(it)
  local t = current()
  if result == nil and t and t.task and not t.cancelled and isyieldable() then
    empty_polls = empty_polls + 1
    if empty_polls > 3 then
      empty_polls = 0
      await('job:result', 'turn')
      result = job_result(it)
    end
  end
  return result
end

--- await: the settled result.
function Job:await()
  local it = open_job(self, 'job:await')
  if not asks.job_result(it.id) then await('job:await', 'job_wait', it.id) end
  return job_result(it)
end

--- now: ask it to stop.
function Job:request_cancel()
  asks.job_cancel(open_job(self, 'job:request_cancel').id)
end

--- await: it belongs to the session from now on.
function Job:detach()
  await('job:detach', 'job_detach', open_job(self, 'job:detach').id)
end

--- await in a task: returns when its pump has ended. Elsewhere now: it asks for that.
function Job:close()
  local it = self_of(self, Job, 'job:close')
  if it.closed then return end
  it.closed = true
  local t = current()
  if t and t.task and isyieldable() then
    await('job:close', 'job_close', it.id)
  else
    post('job_close', it.id)
  end
end
Job.__close = Job.close

local function job_object(id)
  local job = setmetatable({}, Job)
  local it = { class = Job, id = id }
  inner[job] = it
  H.waitable[job] = function()
    if it.closed then misuse('wait: a closed job') end
    return id, asks.job_ready(id)
  end
  return job
end

-- ---------------------------------------------------------------- streams

local function stream_failure(result)
  local e = result.error
  if type(e) ~= 'table' then e = { kind = 'error', message = tostring(e or 'the turn failed') } end
  error(failure(e.kind, e.message, { status = e.status, resumable = result.resumable }), 0)
end

--- await: the next event; after turn_ended nil; a failed turn raises { kind, message }.
function Stream:next()
  local it = self_of(self, Stream, 'stream:next')
  while not it.ended do
    local event = record(asks.job_next(it.id))
    if event then
      if event.type ~= 'turn_ended' then return event end
      it.ended = true
      await('stream:next', 'job_close', it.id)
      if event.status == 'failed' then stream_failure(event) end
      return event
    end
    await('stream:next', 'job_event', it.id)
  end
  return nil
end
Stream.__call = function(self) return self:next() end

--- now: ask the turn to stop; its last event still comes.
function Stream:cancel()
  local it = self_of(self, Stream, 'stream:cancel')
  if not it.ended then asks.job_cancel(it.id) end
end

--- await in a task: stop the turn and let go of it.
function Stream:close()
  local it = self_of(self, Stream, 'stream:close')
  if it.ended then return end
  it.ended = true
  local t = current()
  if t and t.task and isyieldable() then
    await('stream:close', 'job_close', it.id)
  else
    post('job_close', it.id)
  end
end
Stream.__close = Stream.close

-- ---------------------------------------------------------------- agents

local function prompt_spec(what, spec)
  if type(spec) == 'string' then spec = { prompt = spec } end
  expect(what, spec, 'table')
  if type(spec.prompt) ~= 'string' and type(spec.prompt) ~= 'table' then
    misuse(what .. ': prompt: text or a list of blocks expected, got ' .. type(spec.prompt))
  end
  local out = {}
  for name, v in pairs(spec) do if name ~= 'metadata' then out[name] = v end end
  out.metadata = metadata(what .. ': metadata', spec.metadata)
  return plain(what, out)
end

--- await: a turn as a stream of events, for `for event in agent:run{…} do`.
function Agent:run(spec)
  local it = self_of(self, Agent, 'agent:run')
  local id = await('agent:run', 'run', it.id, prompt_spec('agent:run', spec))
  local stream = setmetatable({}, Stream)
  inner[stream] = { class = Stream, id = id }
  return stream, nil, nil, stream
end

--- await: a turn as a job that runs by itself.
function Agent:run_async(spec)
  local it = self_of(self, Agent, 'agent:run_async')
  return job_object(await('agent:run_async', 'run', it.id, prompt_spec('agent:run_async', spec)))
end

--- await: a durable input for this agent: { prompt, when = 'steer' | 'follow_up', id?, metadata? }.
function Agent:submit(spec)
  local it = self_of(self, Agent, 'agent:submit')
  return await('agent:submit', 'submit', it.id, prompt_spec('agent:submit', spec))
end

--- await: a copy of the declarations, schema as JSON text.
function Agent:tools()
  return await('agent:tools', 'tools', self_of(self, Agent, 'agent:tools').id)
end

--- await: exactly these declarations from the next request on.
function Agent:set_tools(list)
  local it = self_of(self, Agent, 'agent:set_tools')
  expect('agent:set_tools', list, 'table')
  await('agent:set_tools', 'set_tools', it.id, declarations('agent:set_tools', list))
end

--- await: merge { model?, reasoning?, tool_choice? } into what is in force.
function Agent:set_config(config)
  local it = self_of(self, Agent, 'agent:set_config')
  if config == nil then misuse('agent:set_config: a configuration expected') end
  await('agent:set_config', 'set_config', it.id, config_of('agent:set_config', config))
end

--- now: the conversation, to be read and written.
function Agent:conversation()
  local it = self_of(self, Agent, 'agent:conversation')
  local conversation = setmetatable({}, Conversation)
  inner[conversation] = { class = Conversation, id = it.id }
  return conversation
end

--- await in a task: drop this handle; the last one releases the session.
function Agent:close()
  local it = self_of(self, Agent, 'agent:close')
  if it.closed or it.lane then return end
  it.closed = true
  local t = current()
  if t and t.task and isyieldable() then
    await('agent:close', 'agent_close', it.handle)
  else
    post('agent_close', it.handle)
  end
end
Agent.__close = Agent.close

local function agent_object(id, handle)
  local agent = setmetatable({ id = id, session_id = id }, Agent)
  inner[agent] = { class = Agent, id = id, handle = handle, lane = not handle }
  return agent
end

local lane_agents = setmetatable({}, { __mode = 'v' })

--- The agent with this session id, borrowed: closing it does nothing.
function H.lane_agent(id)
  local agent = lane_agents[id]
  if not agent then
    agent = agent_object(id, nil)
    lane_agents[id] = agent
  end
  return agent
end

local function system_messages(list)
  if list == nil then return nil end
  expect('agent: system_messages', list, 'table')
  local out = setmetatable({}, H.ARRAY)
  for i, m in ipairs(list) do
    if type(m) == 'string' then m = { m } end
    expect('agent: system_messages[' .. i .. ']', m, 'table')
    local text = m.text or m[1]
    expect('agent: system_messages[' .. i .. '].text', text, 'string')
    out[i] = { text = text, metadata = metadata('agent: system_messages[' .. i .. '].metadata', m.metadata or m[2]) }
  end
  return out
end

--- await: open or create an agent: { config?, store?, session_id?, system_messages?, tools?, base_prompt?, title? }.
function panto.agent(spec)
  spec = spec or {}
  expect('agent', spec, 'table')
  local out = { session_id = spec.session_id, base_prompt = spec.base_prompt, cwd = spec.cwd,
    title = expect('agent: title', spec.title, 'string', true) }
  out.config = config_of('agent: config', spec.config)
  out.system_messages = system_messages(spec.system_messages)
  if spec.store ~= nil then
    local store = inner[spec.store]
    if not store or store.class ~= Store then misuse('agent: store: a session store expected') end
    out.under = store.under
  end
  local request = plain('agent', out)
  request.tools = declarations('agent: tools', spec.tools)
  local id, handle = await('agent', 'agent_open', request)
  return agent_object(id, handle)
end

-- ---------------------------------------------------------------- conversations and stores

local function conversation_op(name, op)
  Conversation[name] = function(self, ...)
    return await('conversation:' .. name, op, self_of(self, Conversation, 'conversation:' .. name).id, ...)
  end
end

--- await: number of the message added.
function Conversation:add_system_message(text, meta)
  local it = self_of(self, Conversation, 'conversation:add_system_message')
  expect('add_system_message', text, 'string')
  return await('add_system_message', 'add_message', it.id, 'system', text, metadata('add_system_message', meta))
end

function Conversation:add_user_message(text, meta)
  local it = self_of(self, Conversation, 'conversation:add_user_message')
  expect('add_user_message', text, 'string')
  return await('add_user_message', 'add_message', it.id, 'user', text, metadata('add_user_message', meta))
end

local function index(what, i)
  if mathtype(i) ~= 'integer' or i < 1 then misuse(what .. ': a message number from 1 expected') end
  return i
end

function Conversation:message_metadata(i)
  local it = self_of(self, Conversation, 'conversation:message_metadata')
  local text = await('message_metadata', 'message_metadata', it.id, index('message_metadata', i))
  return text and json_decode(text) or nil
end

function Conversation:set_message_metadata(i, meta)
  local it = self_of(self, Conversation, 'conversation:set_message_metadata')
  if meta == nil then misuse('set_message_metadata: an object expected') end
  await('set_message_metadata', 'set_message_metadata', it.id, index('set_message_metadata', i),
    metadata('set_message_metadata', meta))
end

--- await: every message of the full history, system messages included.
function Conversation:messages()
  return await('conversation:messages', 'messages', self_of(self, Conversation, 'conversation:messages').id)
end

Conversation.__len = function(self)
  return await('#conversation', 'message_count', self_of(self, Conversation, '#conversation').id)
end

--- now: sessions under another ({ under = id }, default the primary).
function panto.session_store(spec)
  if spec == nil then spec = {} end
  expect('session_store', spec, 'table')
  for name in next, spec do
    if name ~= 'under' then misuse('session_store: unknown member ' .. tostring(name)) end
  end
  local under = expect('session_store: under', spec.under, 'string', true)
  if under and not match(under, '^%x+$') then misuse('session_store: under: not a session id: ' .. under) end
  local store = setmetatable({}, Store)
  inner[store] = { class = Store, under = under or '' }
  return store
end

--- await: newest first: { id, title, time, model, turns, … }.
function Store:list(spec)
  local it = self_of(self, Store, 'store:list')
  expect('store:list', spec, 'table', true)
  return await('store:list', 'store_list', it.under, spec and spec.limit or 200)
end

--- await: what is known of a session, nil if there is none.
function Store:metadata(id)
  local it = self_of(self, Store, 'store:metadata')
  expect('store:metadata', id, 'string')
  return await('store:metadata', 'store_metadata', it.under, id)
end

H.classes.agent, H.classes.stream, H.classes.job = Agent, Stream, Job
H.classes.conversation, H.classes.store = Conversation, Store
