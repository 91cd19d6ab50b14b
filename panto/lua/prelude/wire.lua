-- panto.ext.wire: what most wire protocols need, so that one fits on a page.
local H = ...
if not H.options.session then return end
local await, expect = H.await, H.expect
local ext, null, decode, encode, array = H.panto.ext, H.null, H.json.decode, H.json.encode, H.json.array
local type, tostring, next, ipairs, pairs, pcall, error, setmetatable = type, tostring, next, ipairs, pairs, pcall, error,
  setmetatable
local find, sub, gsub, byte, match, gmatch, concat = string.find, string.sub, string.gsub, string.byte, string.match,
  string.gmatch, table.concat

local wire = {}
ext.wire = wire

local function some(v) return type(v) == 'string' and v ~= '' and v or nil end

-- ---------------------------------------------------------------- what is asked

--- now: two functions: a tool's name as a wire with letters, digits, _ and - takes it, and back; no two are the same.
function wire.names()
  local to, from = {}, {}
  return function(name)
    local short = to[name] or gsub(name, '[^%w_-]', '_')
    while from[short] and from[short] ~= name do short = short .. '_' end
    to[name], from[short] = short, name
    return short
  end, function(short) return from[short] or short end
end

local function add(to, part, short, own)
  if part.type == 'text' or part.type == 'json' then
    to.content[#to.content + 1] = { text = part.text }
  elseif part.type == 'image' then
    to.content[#to.content + 1] = { url = 'data:' .. part.media_type .. ';base64,' .. part.data,
      media_type = part.media_type, data = part.data }
  elseif part.type == 'reasoning' and own then
    to.reasoning = (to.reasoning or '') .. part.text
  elseif part.type == 'tool_call' then
    to.calls[#to.calls + 1] = { id = part.call_id, name = short(part.name), arguments = part.arguments.text }
  end
end

local function add_message(out, message, protocol, short)
  local said = { role = message.role, content = array {}, calls = array {} }
  local own = message.origin and message.origin.protocol == protocol
  for _, part in ipairs(message.parts) do
    if part.type == 'tool_result' then
      local result = { role = 'tool', id = part.call_id, name = short(part.name), is_error = part.is_error,
        content = array {}, calls = array {} }
      for _, p in ipairs(part.parts) do
        if p.type == 'image' then said.role = 'user' end
        add(p.type == 'image' and said or result, p, short)
      end
      out[#out + 1] = result
    else
      add(said, part, short, own)
    end
  end
  if #said.content > 0 or #said.calls > 0 then out[#out + 1] = said end
end

--- now: a request in the form that most wires are near to.
function wire.plain(request)
  expect('wire.plain', request, 'table')
  local short, long = wire.names()
  local system, messages, tools = {}, array {}, array {}
  for i, block in ipairs(request.system or {}) do system[i] = block.text end
  for _, message in ipairs(request.messages) do add_message(messages, message, request.protocol, short) end
  for i, tool in ipairs(request.tools or {}) do
    tools[i] = { name = short(tool.name), description = tool.description, parameters = decode(tool.schema) }
  end
  local choice = request.tool_choice or {}
  return { system = some(concat(system, '\n\n')), messages = messages, tools = #tools > 0 and tools or nil,
    choice = #tools > 0 and choice.kind ~= 'named' and choice.kind or nil,
    forced = choice.kind == 'named' and short(choice.name) or nil, reasoning = some(request.reasoning), long = long }
end

--- now: the configured options for a body, as a new table; one that is not among `known` (name -> true) is refused.
function wire.options(request, known)
  local out = {}
  for name, value in pairs(request.options) do
    if not known[name] then
      error { kind = 'invalid_request', message = request.protocol .. ' takes no option ' .. name }
    end
    out[name] = value
  end
  return out
end

-- ---------------------------------------------------------------- what is answered

--- await: server-sent events of a streamed response: an iterator of their `data`, decoded where they are JSON objects.
function wire.events(response)
  local rest, data = '', nil
  return function()
    while true do
      local from, to, line = find(rest, '^([^\r\n]*)\r?\n')
      while not from or (to == #rest and byte(rest, to) == 13) do
        local chunk = response()
        if chunk == nil then return nil end
        rest = rest .. chunk
        from, to, line = find(rest, '^([^\r\n]*)\r?\n')
      end
      rest = sub(rest, to + 1)
      if line == '' then
        local whole = data
        data = nil
        if whole then return byte(whole) == 123 and decode(whole) or whole end
      elseif sub(line, 1, 5) == 'data:' then
        local text = match(line, '^data: ?(.*)$')
        data = data and data .. '\n' .. text or text
      end
    end
  end
end

local function checked(endpoint, event)
  if type(event.error) == 'table' and event.error ~= null or some(event.error) then
    await('wire.post', 'http_refused', H.endpoint_id(endpoint), encode(event))
  end
  return event
end

local function malformed(ok, ...)
  if ok then return ... end
  local e = ...
  if type(e) == 'table' then error(e, 0) end
  error({ kind = 'malformed', message = 'what the server sent is not JSON: ' .. tostring(e) }, 0)
end

--- await: ask an endpoint; an iterator of what it answers: one object for each event, or the one of a whole reply.
--- Refusals, also those inside a stream, become errors of their kind. `[DONE]` ends it.
function wire.post(spec)
  expect('wire.post', spec, 'table')
  expect('wire.post: body', spec.body, 'table')
  local headers = { ['content-type'] = 'application/json' }
  for name, value in pairs(spec.headers or {}) do headers[name] = value end
  local streamed = spec.body.stream ~= false and spec.stream ~= false
  local response = ext.http { endpoint = spec.endpoint, path = spec.path, auth = spec.auth, check = true,
    stream = streamed, body = encode(spec.body), headers = headers }
  if not streamed then
    local whole = malformed(pcall(decode, response.body))
    return function()
      local now = whole
      whole = nil
      return now and checked(spec.endpoint, now)
    end
  end
  local events = wire.events(response)
  return function()
    local event
    repeat event = malformed(pcall(events)) until type(event) ~= 'string' or event == '[DONE]'
    if type(event) ~= 'table' then
      response:close()
      return nil
    end
    return checked(spec.endpoint, event)
  end
end

--- now: the usage part from a wire's own table: `paths` says where each number is ('details.cached'); nil without one.
function wire.usage(from, paths)
  if type(from) ~= 'table' or from == null then return nil end
  local out = { type = 'usage' }
  for name, path in pairs(paths) do
    local at = from
    for word in gmatch(path, '[^.]+') do at = type(at) == 'table' and at[word] or nil end
    if type(at) == 'number' then out[name] = at end
  end
  return out
end

-- ---------------------------------------------------------------- the stream

local Feed = {} -- parts that a task has put and nobody has pulled
Feed.__index = Feed

function Feed:push(part)
  for name, value in next, part do
    if value == null then part[name] = nil end
  end
  self.last = self.last + 1
  self[self.last] = part
  self.handle:wake()
end

--- What says nothing is left out; the finish waits for the end, since usage often comes after it.
function Feed:put(part)
  if part == nil then return end
  expect('put', part, 'table')
  local kind = part.type
  if kind == 'text' or kind == 'reasoning' then
    if some(part.text) then self:push(part) end
  elseif kind == 'tool_call' then
    local index = part.index or 0
    local id, began = some(part.id), self.calls[index]
    if some(part.name) and (not began or id and id ~= began) then -- some servers say the name in every piece
      self.calls[index] = id or '?'
      self:push { type = 'tool_call_start', index = index, name = part.name, id = id }
    end
    if some(part.text) then self:push { type = 'tool_call_delta', index = index, text = part.text } end
  elseif kind == 'response' then
    if not self.told then self:push(part) end
    self.told = true
  elseif kind == 'finish' then
    if some(part.reason) or some(part.raw) then
      self.finish = { type = 'finish', reason = some(part.reason) or 'other', raw = some(part.raw) }
    end
  else
    self:push(part)
  end
end

local function failed(e)
  local known = type(e) == 'table' and type(e.kind) == 'string'
  return { type = 'error', kind = known and e.kind or 'server', message = known and e.message or tostring(e),
    status = known and e.status or nil, retry_after = known and e.retry_after or nil }
end

--- now: a stream fed by a task: `fn(put)` may wait; what it puts is given in order; its error becomes the stream's.
function wire.stream(handle, fn)
  expect('wire.stream: function', fn, 'function')
  local feed = setmetatable({ first = 1, last = 0, handle = handle, calls = {} }, Feed)
  ext.spawn(function()
    local ok, e = pcall(fn, function(part) feed:put(part) end)
    feed.over = true
    feed:push(not ok and failed(e) or feed.finish
      or { type = 'error', kind = 'connection', message = 'the stream ended before the reply was complete' })
  end)
  return {
    next = function()
      local part = feed[feed.first]
      if part then
        feed[feed.first], feed.first = nil, feed.first + 1
        return part
      end
      if not feed.over then return ext.pending() end
    end,
  }
end
