-- Tasks: coroutines that panto drives. They are anchored here; Python knows their numbers only and answers requests
-- that they yield under a tag nobody else holds.
local H = ...
local create, resume, yield, status = coroutine.create, coroutine.resume, coroutine.yield, coroutine.status
local close, running, isyieldable = coroutine.close, coroutine.running, coroutine.isyieldable
local traceback, getinfo, getmetatable = debug.traceback, debug.getinfo, debug.getmetatable
local error, tostring, type, setmetatable, select, tonumber, rawget, next = error, tostring, type, setmetatable,
  select, tonumber, rawget, next
local pack, unpack, find, sub, gsub = table.pack, table.unpack, string.find, string.sub, string.gsub
local count = collectgarbage

local REQUEST = {}
local REQUESTED, DONE, FAILED, PARKED = 1, 2, 3, 4
local INTERRUPTED = '\3' -- what the watchdog's hook raises
local NO_MEMORY = 'not enough memory' -- what Lua raises

local tasks, alive, last_id = {}, 0, 0
local records = setmetatable({}, { __mode = 'k' }) -- coroutine -> its task
local current = nil -- the task or callback that runs now
local outbox, posted, taken = {}, 0, 0

-- ---------------------------------------------------------------- what went wrong, and where

--- "file:line" of the nearest frame that is not panto's own, or nil.
local function place(from)
  for level = from or 2, 40 do
    local info = getinfo(level, 'Sl')
    if not info then return nil end
    if info.currentline > 0 and sub(info.short_src, 1, 6) ~= '[panto' then
      local source = info.source
      return (sub(source, 1, 1) == '@' and sub(source, 2) or info.short_src) .. ':' .. info.currentline
    end
  end
end
H.place = place

local ERROR = { __name = 'panto.error' }
ERROR.__tostring = function(e) return (e.where and e.where .. ': ' or '') .. tostring(e.message) end
H.ERROR = ERROR

--- An error as Lua code sees it: { kind, message, where }, with a string form.
local function failure(kind, message, more)
  local e = more or {}
  e.kind, e.message, e.where = kind, message, place(3)
  return setmetatable(e, ERROR)
end
H.failure = failure

--- Raise a plain error that names the caller's file and line.
local function misuse(message)
  local where = place(3)
  error((where and where .. ': ' or '') .. message, 0)
end
H.misuse = misuse

local function interrupted(e)
  return type(e) == 'string' and sub(e, -1) == INTERRUPTED
end
H.interrupted = interrupted

-- Runs in a coroutine of its own: tostring may call what an extension wrote.
local function to_text(e)
  local co = create(function() return tostring(e) end)
  local ok, text = resume(co)
  if ok and type(text) == 'string' then return text end
  return 'an error that cannot be shown (a ' .. type(e) .. ')'
end

-- Lua shortens long paths in messages; the whole ones are put back.
local full = {} -- "...end/of/path.lua" -> path

function H.remember_path(chunk, path)
  local short = getinfo(chunk, 'S').short_src
  if sub(short, 1, 3) == '...' then full[short] = path end
end

local function whole(text)
  for short, path in next, full do
    local from, to = find(text, short, 1, true)
    while from do
      text = sub(text, 1, from - 1) .. path .. sub(text, to + 1)
      from, to = find(text, short, from + #path, true)
    end
  end
  return text
end

local function tidy(trace) -- panto's own frames tell an author nothing
  trace = gsub(trace, '\n\t%[panto[^\n]*', '')
  return (gsub(trace, "\n\t%[C%]: in %?", ''))
end

local function rawget_text(t, name)
  local v = type(t) == 'table' and rawget(t, name)
  return type(v) == 'string' and v or nil
end

--- kind, message, file:line, traceback, status, seconds to wait of a failed coroutine.
local function describe(co, e)
  local trace = whole(tidy(traceback(co)))
  local _, _, at = find(trace, '\n\t([^\n]-:%d+):')
  if interrupted(e) then
    return 'runaway', 'ran too long without yielding' .. (at and ' at ' .. at or ''), at or '', trace
  end
  local kind, message = rawget_text(e, 'kind'), rawget_text(e, 'message')
  if kind and message then
    local where = rawget_text(e, 'where') or at or ''
    local text = getmetatable(e) == ERROR and where ~= '' and where .. ': ' .. message or message
    return kind, text, where, trace, tonumber(rawget(e, 'status')), tonumber(rawget(e, 'retry_after'))
  end
  if e == NO_MEMORY then
    return 'memory', 'needs more memory than one extension may take' .. (at and ', at ' .. at or ''), at or '', trace
  end
  local text = whole(to_text(e))
  local _, _, own = find(text, '^([^\n]-:%d+): ')
  return 'error', text, own or at or '', trace
end

-- ---------------------------------------------------------------- requests

local function answer(ok, ...)
  if ok then return ... end
  error(failure(...), 0)
end

--- Ask Python for something and wait. `name` is for the error where waiting is not possible.
local function await(name, op, ...)
  local t = current
  if not (t and t.task) then
    misuse(name .. ' waits, so it works only in a task: a tool, command or hook, a function given to spawn, or a main'
      .. ' chunk' .. (t and '; this is ' .. t.what or ''))
  end
  if not isyieldable() then
    misuse(name .. ' waits, which is not possible inside a sort or gsub callback, a metamethod called from C, or a'
      .. ' for iterator written in C')
  end
  return answer(yield(REQUEST, op, ...))
end
H.await = await

--- Leave a message for Python; it is read when the present entry into Lua ends.
function H.post(...)
  posted = posted + 1
  outbox[posted] = pack(...)
end

--- The next message, as results; nothing when all are read.
function H.next_message()
  if taken == posted then
    posted, taken = 0, 0
    return nil
  end
  taken = taken + 1
  local m = outbox[taken]
  outbox[taken] = nil
  return unpack(m, 1, m.n)
end

function H.current() return current end

function H.posted() return posted end

-- ---------------------------------------------------------------- driving

--- A new task that will run `fn`. `lane` is the agent's session id, `owner` the extension's name, `scope` what ends it.
local function new_task(fn, lane, owner, scope, what)
  last_id, alive = last_id + 1, alive + 1
  local co = create(fn)
  local t = { id = last_id, co = co, lane = lane, owner = owner, scope = scope, what = what, task = true }
  tasks[last_id], records[co] = t, t
  return t
end
H.new_task = new_task

function H.spawn(entry, lane, owner, scope, what) return new_task(H.entries[entry], lane, owner, scope, what).id end

local function forget(t)
  tasks[t.id], alive, t.over = nil, alive - 1, true
  if t.on_end then t.on_end(t) end
end

-- What belongs to a task that is over but still has <close> variables to run: nothing there can wait.
local function closing(t) return { what = 'a closing task', lane = t.lane, owner = t.owner, scope = t.scope } end

local function failed(t, ...)
  current = closing(t)
  close(t.co) -- an error leaves <close> variables of a coroutine open
  current = nil
  return FAILED, posted, ...
end

local function settle(t, ok, tag, ...)
  current = nil
  local co = t.co
  if status(co) == 'suspended' then
    if tag == REQUEST then return REQUESTED, posted, ... end
    t.parked = true
    if t.woken then
      t.woken = nil
      H.post('wake', t.id)
    end
    return PARKED, posted
  end
  t.ok, t.error = ok, tag
  forget(t)
  if ok then return DONE, posted, tag, ... end
  return failed(t, describe(co, tag))
end

--- Run task `id` until it asks for something, parks or ends: kind, messages posted, and what belongs to the kind.
function H.resume(id, ...)
  local t = tasks[id]
  if not t then return FAILED, posted, 'error', 'no such task', '', '' end
  current = t
  return settle(t, resume(t.co, ...))
end

--- Resume a parked task with what its waker gave.
function H.unpark(id)
  local t = tasks[id]
  if not t or not t.parked then return PARKED, posted end
  local args = t.args or { n = 0 }
  t.parked, t.args = nil, nil
  current = t
  return settle(t, resume(t.co, unpack(args, 1, args.n)))
end

--- Resume a parked task so that its yield raises a cancellation.
function H.unpark_cancelled(id)
  local t = tasks[id]
  if not t or not t.parked then return PARKED, posted end
  t.parked, t.args, t.raise = nil, nil, true
  current = t
  return settle(t, resume(t.co))
end

--- Close a suspended task: its <close> variables run, innermost coroutine first. False if there is no such task.
function H.close(id)
  local t = tasks[id]
  if not t then return false end
  current = closing(t)
  for i = t.nested and #t.nested or 0, 1, -1 do close(t.nested[i]) end
  local ok, e = close(t.co)
  current = nil
  t.ok, t.error = false, failure('cancelled', 'cancelled')
  forget(t)
  if ok then return true end
  return true, to_text(e)
end

--- Run function `ref` to completion as a callback that may not wait: ok, messages posted, then results or a description.
local function run_callback(fn, lane, owner, scope, what, ...)
  local before = current
  local co = create(fn)
  current = { what = what, lane = lane, owner = owner, scope = scope }
  local r = pack(resume(co, ...))
  current = before
  if status(co) == 'suspended' then
    local ok = false
    close(co)
    return ok, 'error', what .. ' must run to its end; it yielded', '', ''
  end
  if r[1] then return unpack(r, 1, r.n) end
  return false, describe(co, r[2])
end
H.run_callback = run_callback

local function called(ok, ...)
  return ok and DONE or FAILED, posted, ...
end

function H.call(entry, lane, owner, scope, what, ...)
  return called(run_callback(H.entries[entry], lane, owner, scope, what, ...))
end

--- How many coroutines are under way for an owner: its tasks, and those that wait inside of them.
function H.coroutines_of(owner)
  local n = 0
  for _, t in next, tasks do
    if t.owner == owner then n = n + 1 + (t.nested and #t.nested or 0) end
  end
  return n
end

--- After an entry that did not come back as it should: task `id` (0: none) is dropped.
function H.recover(id)
  current = nil
  local t = tasks[id]
  if t then
    t.ok, t.error = false, failure('memory', 'it left Lua without memory or stack')
    forget(t)
  end
end

function H.counts() return alive, H.refs_held(), count('count') end

H.entries = {}

-- ---------------------------------------------------------------- coroutines as extensions see them

local function wake(t, ...)
  if t.over then return false, 'cannot resume a task that has ended' end
  if t.parked then
    if not t.args then
      t.args = pack(...)
      H.post('wake', t.id)
    end
  elseif not t.woken then
    t.woken, t.args = true, pack(...)
  end
  return true
end

local outward

local function inward(co, t, ...)
  t.nested[#t.nested] = nil
  return outward(co, resume(co, ...))
end

-- A request of an inner coroutine goes out through every coroutine around it, to the task and to Python.
function outward(co, ok, tag, ...)
  if tag ~= REQUEST or not ok then return ok, tag, ... end
  local t = current
  if not (t and t.task and isyieldable()) then
    return outward(co, resume(co, false, 'error', 'a coroutine that waits was resumed where waiting is not possible'))
  end
  local nested = t.nested or {}
  t.nested = nested
  nested[#nested + 1] = co
  return inward(co, t, yield(REQUEST, ...))
end

local function resume_any(co, ...)
  local t = records[co]
  if t then return wake(t, ...) end
  return outward(co, resume(co, ...))
end

local function unwrapped(co, ok, ...)
  if ok then return ... end
  if status(co) == 'dead' then close(co) end
  error((...), 0)
end

local function unparked(t, ...)
  if t.raise then
    t.raise = nil
    error(failure('cancelled', 'cancelled'), 0)
  end
  return ...
end

coroutine.resume = resume_any

function coroutine.wrap(fn)
  local co = create(fn)
  return function(...) return unwrapped(co, resume_any(co, ...)) end
end

function coroutine.yield(...)
  local t = current
  if t and t.task and t.co == running() then return unparked(t, yield(...)) end
  return yield(...)
end

function coroutine.close(co)
  if records[co] then misuse('coroutine.close: this coroutine is a task; panto ends it') end
  return close(co)
end

-- A handler must not run for the watchdog's own error: hooks are off while it runs, so it could not be stopped.
local stock_xpcall = xpcall
function xpcall(fn, handler, ...)
  if type(handler) ~= 'function' then return stock_xpcall(fn, handler, ...) end
  return stock_xpcall(fn, function(e)
    if interrupted(e) then return e end
    return handler(e)
  end, ...)
end

function H.memory() return count('count') end

--- A task or scope was asked to end: some verbs look at this before they wait.
function H.mark_cancelled(id)
  local t = tasks[id]
  if t then t.cancelled = true end
end

H.scope_cancelled = {}
function H.mark_scope(id, value) H.scope_cancelled[id] = value end
