-- What require('panto') gives: the part that needs no agent. Each name is marked: now (anywhere) or await (in a task).
local H = ...
local await, misuse, post, current, freeze = H.await, H.misuse, H.post, H.current, H.freeze
local new_task, failure, asks = H.new_task, H.failure, H.asks
local type, tostring, error, ipairs, pairs, setmetatable, select = type, tostring, error, ipairs, pairs, setmetatable, select
local pack, unpack, concat, mathtype, pcall = table.pack, table.unpack, table.concat, math.type, pcall

local panto = {}
H.panto = panto
H.waitable = setmetatable({}, { __mode = 'k' }) -- handle of a job or task -> function giving its number and readiness

--- Plain data for Python; a misuse names `what`.
local function plain(what, v, with_functions)
  local ok, out = pcall(freeze, v, with_functions)
  if not ok then misuse(what .. ': ' .. tostring(out)) end
  return out
end
H.plain = plain

local function expect(what, v, kind, optional)
  if optional and v == nil then return v end
  if type(v) ~= kind then misuse(what .. ': ' .. kind .. ' expected, got ' .. type(v)) end
  return v
end
H.expect = expect

-- ---------------------------------------------------------------- tasks

local Task = {}
Task.__index, Task.__name, Task.__metatable = Task, 'task', false
local inner = setmetatable({}, { __mode = 'k' })

local function finished(t)
  if t.ok then return unpack(t.results, 1, t.results.n) end
  error(t.error, 0)
end

--- await: wait for its end; its results, or its error.
function Task:await()
  local t = inner[self]
  if not t.over then await('task:await', 'task_wait', t.id) end
  return finished(t)
end

--- now: nil while it runs; then true and its results, or false and its error.
function Task:result()
  local t = inner[self]
  if not t.over then return nil end
  if t.ok then return true, unpack(t.results, 1, t.results.n) end
  return false, t.error
end

--- now: ask it to end; what it waits for raises a cancellation.
function Task:cancel()
  local t = inner[self]
  if not t.over then post('task_cancel', t.id) end
end

--- now: run `fn` as a task of its own. { detached = true }: it outlives what spawned it.
function panto.spawn(fn, options)
  expect('spawn', fn, 'function')
  expect('spawn: options', options, 'table', true)
  local from, detached = current() or {}, options and options.detached
  local scope = not detached and from.scope or 0 -- what a detached task spawns is not of the old scope either
  local t
  t = new_task(function() t.results = pack(fn()) end, from.lane or '', from.owner or '', scope, 'a spawned task')
  post('spawn', t.id, t.lane, t.owner, t.scope, detached and true or false)
  local handle = setmetatable({}, Task)
  inner[handle] = t
  H.waitable[handle] = function() return -t.id, t.over end
  return handle
end

--- await: index of the first job or task that has an unread event or has settled; nil after `ms`.
function panto.wait(list, ms)
  expect('wait', list, 'table')
  expect('wait: milliseconds', ms, 'number', true)
  local ids = {}
  for i, item in ipairs(list) do
    local number = H.waitable[item]
    if not number then misuse('wait: item ' .. i .. ' is neither a job nor a task') end
    local id, ready = number()
    if ready then
      local t = current()
      if not (t and t.cancelled) then return i end
    end
    ids[i] = id
  end
  if #ids == 0 and not ms then misuse('wait: nothing to wait for') end
  return await('wait', 'wait', ids, ms)
end

--- await: only the calling task waits.
function panto.sleep(ms)
  expect('sleep', ms, 'number')
  return await('sleep', 'sleep', ms)
end

panto.json = H.json
panto.derive_id = H.derive_id

--- now: a line for the log.
function panto.log(...)
  local out = pack(...)
  for i = 1, out.n do out[i] = tostring(out[i]) end
  local t = current()
  post('log', concat(out, ' '), t and t.owner or '')
end

-- ---------------------------------------------------------------- programs, files, network

--- await: run a program: { code, signal, stdout, stderr }. `timeout` in milliseconds.
function panto.exec(spec)
  expect('exec', spec, 'table')
  expect('exec: argv', spec.argv, 'table')
  return await('exec', 'exec', plain('exec', spec))
end

local Response = { __name = 'response', __metatable = false }
Response.__index = Response
local bodies = setmetatable({}, { __mode = 'k' })

--- await: the next chunk of the body, nil at its end.
function Response:__call()
  local id = bodies[self]
  if not id then return nil end
  local chunk = await('http chunk', 'http_chunk', id)
  if chunk == nil then bodies[self] = nil end
  return chunk
end

--- now: give the connection back.
function Response:close()
  local id = bodies[self]
  bodies[self] = nil
  if id then post('http_close', id) end
end
Response.__close = Response.close

--- await: one request: { status, headers, body }; with stream = true the result is called for chunks.
function panto.http(spec)
  expect('http', spec, 'table')
  local endpoint = spec.endpoint
  local copy = {}
  for k, v in pairs(spec) do if k ~= 'endpoint' then copy[k] = v end end
  if endpoint ~= nil then
    copy.endpoint = H.endpoint_id(endpoint) or misuse('http: endpoint is not one that panto gave')
  end
  local got = await('http', 'http', plain('http', copy))
  if not spec.stream then return got end
  local id = got.id
  got.id = nil
  local response = setmetatable(got, Response)
  bodies[response] = id
  return response
end

local fs = {}
panto.fs = fs
for _, name in ipairs { 'read', 'write', 'append', 'list', 'stat', 'mkdir', 'remove', 'rename' } do
  fs[name] = function(path, more)
    expect('fs.' .. name, path, 'string')
    return await('fs.' .. name, 'fs_' .. name, path, type(more) == 'table' and plain('fs.' .. name, more) or more)
  end
end

H.classes = { task = Task, response = Response } -- for the reference, which is checked against them

package.preload.panto = function()
  local out = {}
  for name, value in pairs(panto) do out[name] = value end
  return out
end
