-- How panto enters what extensions wrote: arguments come as plain values, results leave as plain values.
local H = ...
local entries, deref, plain, failure, misuse, post = H.entries, H.deref, H.plain, H.failure, H.misuse, H.post
local json_decode, json_encode, current, freeze = H.json_decode, H.json_encode, H.current, H.freeze
local type, tostring, setmetatable, error, next, pcall = type, tostring, setmetatable, error, next, pcall
local concat = table.concat
local getmetatable = H.debug.getmetatable

--- A script as a task, with its words as arguments and in `arg`.
function entries.script(path, ...)
  arg = { [0] = path, ... }
  return entries.file(path, ...)
end

--- A file as a task: an extension's main chunk, or a script with its arguments.
function entries.file(path, ...)
  local chunk, problem = H.load_file(path)
  if not chunk then error(problem, 0) end
  return plain('the main chunk', nil, chunk(...))
end

--- A module as a task (a rock's main module).
function entries.module(name)
  require(name)
end

--- A piece of code as a task (tests, one-liners).
function entries.code(text, name, ...)
  local chunk, problem = load(text, name)
  if not chunk then error(problem, 0) end
  return plain('the result', (chunk(...)))
end

if not H.options.session then return end

-- ---------------------------------------------------------------- tools

local Context = { __name = 'context', __metatable = false }
Context.__index = Context

--- now: text for the card, or a view.
function Context:progress(what)
  if type(what) ~= 'string' then what = plain('progress', what) end
  post('progress', self.effect_id, what)
end

--- now: has the person asked to stop?
function Context:cancelled()
  return H.scope_cancelled[self.scope] == true
end

--- now: a view on this call's card; returns a handle with invalidate and alive.
function Context:set_component(view) return H.set_component(self.effect_id, view) end


local function result_text(content)
  if content == nil then return 'text', '' end
  if type(content) == 'string' then return 'text', content end
  if type(content) ~= 'table' then return 'text', tostring(content) end
  if content[1] and type(content[1]) == 'table' and content[1].type then return 'parts', plain('content', content) end
  return 'json', json_encode(content)
end

local RESULT = { content = true, details = true, is_error = true, cancelled = true, title = true, fact = true }

local function is_reply(t)
  if t.content == nil and t.is_error == nil and t.cancelled == nil then return false end
  for name in next, t do if not RESULT[name] then return false end end
  return true
end

--- A tool call: kind, content, is_error, cancelled, details, title, fact.
function entries.tool(fn, text, raw, session, run, call, effect, lane, cwd)
  local ctx = setmetatable({ session_id = session, run_id = run, call_id = call, effect_id = effect, cwd = cwd,
    raw_arguments = raw, agent = H.lane_agent(lane), scope = current().scope }, Context)
  local reply = deref(fn)(json_decode(text), ctx)
  if type(reply) ~= 'table' or not is_reply(reply) then
    local kind, content = result_text(reply)
    return kind, content, false, false
  end
  local kind, content = result_text(reply.content)
  local details = reply.details ~= nil and plain('details', reply.details) or nil
  return kind, content, reply.is_error == true, reply.cancelled == true, details,
    reply.title and tostring(reply.title), reply.fact and tostring(reply.fact)
end

--- A slash command.
function entries.command(fn, args, session, effect, lane, cwd)
  local ctx = setmetatable({ session_id = session, effect_id = effect, cwd = cwd, agent = H.lane_agent(lane),
    scope = current().scope }, Context)
  local text = deref(fn)(args, ctx)
  if text ~= nil and type(text) ~= 'string' then misuse('a command returns text or nothing') end
  return text
end

--- Values for a command's argument.
function entries.complete(fn, text)
  return plain('complete', deref(fn)(text) or {})
end

--- A shortcut's function.
function entries.plain(fn) deref(fn)() end

-- ---------------------------------------------------------------- hooks and observers

local Event = { __name = 'event' }
Event.__index = Event
--- now: a view on the card of the call this event is about.
function Event:set_component(view)
  if not self.component_key then misuse('set_component: this event is about no call') end
  return H.set_component(self.component_key, view)
end

--- A hook: its answer as plain data, or nil.
function entries.hook(fn, name, lane, event, key, raw)
  event.name, event.agent, event.component_key = event.name or name, H.lane_agent(lane), key
  if raw then event.arguments = json_decode(raw) end
  local answer = deref(fn)(setmetatable(event, Event))
  if answer == nil then return nil end
  if type(answer) == 'table' and answer.arguments ~= nil then
    local copy = {}
    for k, v in next, answer do copy[k] = v end
    copy.arguments = json_encode(H.shape(answer.arguments) == nil and H.json.object(answer.arguments) or answer.arguments)
    answer = copy
  end
  return plain('the answer of a ' .. name .. ' hook', answer)
end

--- An observer, run to its end.
function entries.observer(fn, name, event)
  event.name = event.name or name
  event.agent = event.agent ~= nil and H.lane_agent(event.agent) or nil
  deref(fn)(event)
end

-- ---------------------------------------------------------------- protocols

local streams = {}
local Handle = { __name = 'handle', __metatable = false }
Handle.__index = Handle
--- now: have something: pull again.
function Handle:wake() post('stream_wake', self.id) end

function entries.protocol_open(fn, id, request, endpoint, endpoint_name)
  request.endpoint = H.endpoint(endpoint, endpoint_name)
  local stream = deref(fn)(request, setmetatable({ id = id }, Handle))
  if type(stream) ~= 'table' or type(stream.next) ~= 'function' then
    error('open must return a table with a next function', 0)
  end
  streams[id] = stream
  return type(stream.cancel_turn) == 'function', type(stream.close) == 'function'
end

local MOST = 64 -- pieces of text that are given as one
local held = {} -- stream's number -> what was pulled behind a text: a part, or { failure }

local function pull(stream)
  local part = stream:next()
  if part ~= nil and type(part) ~= 'table' then
    error('next must return a table, nil or pending(), not a ' .. type(part), 0)
  end
  return part
end

local function text_kind(part)
  local kind = part.type
  return (kind == 'text' or kind == 'reasoning') and type(part.text) == 'string' and kind or nil
end

-- What stands behind a text that is given: true: ask again; false: pending (and ms); nil: the end.
local function after(id, ok, part)
  if ok and part == nil then return nil end
  if ok and getmetatable(part) == H.PENDING then return false, part.ms end
  held[id] = { ok = ok, part = part }
  return true
end

--- A pull: type and text, or a part as a plain table, or nil for nothing; then what stands behind it (see `after`).
--- Pieces of text that are there at once come as one: each entry and each part has its cost.
function entries.protocol_next(id)
  local stream, before = streams[id], held[id]
  held[id] = nil
  if before and not before.ok then error(before.part, 0) end
  local part = before and before.part or pull(stream)
  if part == nil then return nil, nil, nil end
  if getmetatable(part) == H.PENDING then return nil, nil, false, part.ms end
  local kind = text_kind(part)
  if not kind then return freeze(part), nil, true end
  local pieces = { part.text }
  while #pieces < MOST do
    local ok, more = pcall(pull, stream)
    if not ok or more == nil or getmetatable(more) == H.PENDING or text_kind(more) ~= kind then
      return kind, concat(pieces), after(id, ok, more)
    end
    pieces[#pieces + 1] = more.text
  end
  return kind, concat(pieces), true
end

function entries.protocol_method(id, name)
  local stream = streams[id]
  if stream and type(stream[name]) == 'function' then stream[name](stream) end
end

function entries.protocol_plain(fn) deref(fn)() end


function entries.copy_component(id) return H.copy_component(id) end

function entries.protocol_forget(id) streams[id], held[id] = nil, nil end

H.classes.ctx, H.classes.event, H.classes.handle = Context, Event, Handle
