-- luv, where it is installed: its loop is driven from outside, so that handles work as their authors expect; no error in
-- a callback ends the process; signals that panto needs stay panto's.
local H = ...
local type, next, pcall, error, tostring, pairs = type, next, pcall, error, tostring, pairs
local pack, unpack, match, lower = table.pack, table.unpack, string.match, string.lower
local stock_require, misuse, await, current = H.stock_require, H.misuse, H.await, H.current
local run_callback, post = H.run_callback, H.post
local registry = H.debug.getregistry
local in_session = H.options.session
local env = H.options.env

local function guarded(fn)
  local t = current()
  local lane, owner, scope = t and t.lane, t and t.owner, t and t.scope
  return function(...)
    local r = pack(run_callback(fn, lane, owner, scope, 'a luv callback', ...))
    if r[1] then return unpack(r, 2, r.n) end
    post('callback_failed', owner or '', 'a luv callback', r[3] or '', r[4] or '', r[5] or '')
  end
end

-- Functions that go to another thread as byte code: wrapping them would cut off what they need.
local ELSEWHERE = { new_thread = { [1] = true, [2] = true }, new_work = { [1] = true } }

local function wrapped(name, fn)
  local bare = ELSEWHERE[name] or {}
  return function(...)
    local args = pack(...)
    for i = 1, args.n do
      if type(args[i]) == 'function' and not bare[i] then args[i] = guarded(args[i]) end
    end
    return fn(unpack(args, 1, args.n))
  end
end

local KEPT = { sigwinch = true, sigint = true, sigterm = true, sigchld = true, sigtstp = true, sigcont = true,
  sighup = true, sigpipe = true }

local function choosy(uv, start)
  local numbers = {}
  for name in pairs(KEPT) do
    local number = uv.constants and uv.constants[string.upper(name)]
    if number then numbers[number] = name end
  end
  return function(handle, signal, ...)
    local name = type(signal) == 'string' and lower(signal) or numbers[signal]
    if name and KEPT[name] then misuse('luv: ' .. name .. ' belongs to panto and cannot be taken') end
    return start(handle, signal, ...)
  end
end

local function refused(name, why)
  return function() misuse('uv.' .. name .. ': ' .. why) end
end

local function adapt(uv)
  H.uv_run, H.uv_timeout, H.uv_alive = uv.run, uv.backend_timeout, uv.loop_alive
  H.uv_fd, H.uv_update = uv.backend_fd, uv.update_time
  local done = {}
  local function adapt_table(t)
    if done[t] then return end
    done[t] = true
    for name, fn in pairs(t) do
      if type(fn) == 'function' then
        fn = wrapped(name, fn)
        if match(name, '^signal_start') then fn = choosy(uv, fn) end
        t[name] = fn
      end
    end
  end
  for name, mt in pairs(registry()) do
    if type(name) == 'string' and match(name, '^uv_') and type(mt) == 'table' and type(mt.__index) == 'table' then
      if name == 'uv_signal' then
        local methods = mt.__index
        for _, start in pairs { 'start', 'start_oneshot' } do
          if methods[start] then methods[start] = choosy(uv, methods[start]) end
        end
      end
      adapt_table(mt.__index)
    end
  end
  adapt_table(uv)
  uv.loop_close = refused('loop_close', 'the loop belongs to panto')
  uv.os_getenv = function(name) return env[name] end
  uv.os_environ = function()
    local out = {}
    for k, v in next, env do out[k] = v end
    return out
  end
  if in_session then
    uv.run = refused('run', 'panto drives the loop; return from here, or wait with coroutine.yield()')
    uv.stop = function() end
    local new_tty = uv.new_tty
    uv.new_tty = function(fd, ...)
      if fd == 0 or fd == 1 or fd == 2 then misuse('uv.new_tty: the terminal belongs to panto') end
      return new_tty(fd, ...)
    end
  end
end

--- On the main state (a coroutine that ends would take luv's state with it): "" or why it is not there.
function H.load_luv()
  local ok, uv = pcall(stock_require, 'luv')
  if not ok then return tostring(uv) end
  adapt(uv)
  return ''
end

function H.require_luv()
  await("require 'luv'", 'luv')
  local uv = package.loaded.luv
  if uv == nil then misuse("module 'luv' is not installed on this machine (Debian: lua-luv; LuaRocks: luv)") end
  return uv
end

--- One turn of luv's loop: messages posted, milliseconds to the next timer, is anything alive.
function H.uv_pump()
  H.uv_run('nowait')
  return H.posted(), H.uv_timeout(), H.uv_alive()
end
