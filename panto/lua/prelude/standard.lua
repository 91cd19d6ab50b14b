-- The standard library as extensions get it: nothing writes to the terminal, ends the process or blocks the loop, and
-- nothing of panto's own is reachable through it. Hygiene, not a wall.
local H = ...
local await, misuse, post, current = H.await, H.misuse, H.post, H.current
local type, tostring, tonumber, error, select, pcall = type, tostring, tonumber, error, select, pcall
local setmetatable, getmetatable = setmetatable, getmetatable
local concat, pack, unpack, sub, find, format, match, gsub = table.concat, table.pack, table.unpack, string.sub,
  string.find, string.format, string.match, string.gsub
local next, create, resume = next, coroutine.create, coroutine.resume
local stock_load, open, io_type, io_close, io_lines = load, io.open, io.type, io.close, io.lines
local collect = collectgarbage
local in_session = H.options.session

-- ---------------------------------------------------------------- code

--- Text only: byte code could break out of the state.
function load(chunk, name, _, ...)
  return stock_load(chunk, name, 't', ...)
end

local function read_file(path)
  local file, problem = open(path, 'rb')
  if not file then return nil, problem end
  local text, why = file:read('a')
  file:close()
  if not text then return nil, path .. ': ' .. tostring(why) end
  return text
end

--- A file's chunk, named so that errors give its path; a first line that begins with # is skipped.
function H.load_file(path, env)
  local text, problem = read_file(path)
  if not text then return nil, problem end
  text = gsub(text, '^\xef\xbb\xbf', '')
  text = gsub(text, '^#[^\n]*', '--', 1)
  local chunk
  if env ~= nil then
    chunk, problem = stock_load(text, '@' .. path, 't', env)
  else
    chunk, problem = stock_load(text, '@' .. path, 't')
  end
  if chunk then
    H.remember_path(chunk, path)
  else
    problem = path .. (match(problem, ':%d+:.*$') or ': ' .. problem)
  end
  return chunk, problem
end

function loadfile(path, _, ...)
  if path == nil then return nil, 'loadfile: standard input is not readable in panto' end
  if select('#', ...) > 0 then
    return H.load_file(path, (...) == nil and {} or (...))
  end
  return H.load_file(path)
end

function dofile(path)
  local chunk, problem = loadfile(path)
  if not chunk then error(problem, 0) end
  return chunk()
end

local LARGEST = 256 << 20
local repeated = string.rep

--- One call could take all memory before anybody looks.
function string.rep(s, n, separator)
  local each = (type(s) == 'string' and #s or 0) + (type(separator) == 'string' and #separator or 0)
  local count = tonumber(n)
  if each > 0 and count and count > LARGEST // each then
    misuse('string.rep: at most ' .. (LARGEST >> 20) .. ' MB at once')
  end
  return repeated(s, n, separator)
end

-- A finalizer runs wherever the collector happens to work, and without hooks: one that loops could not be stopped. An object
-- whose metatable has none at this moment is never finalized.
if in_session then
  local stock_setmetatable, rawget, rawset = setmetatable, rawget, rawset
  function _G.setmetatable(t, mt)
    local finalizer = type(mt) == 'table' and rawget(mt, '__gc')
    if not finalizer then return stock_setmetatable(t, mt) end
    rawset(mt, '__gc', nil)
    local ok, problem = pcall(stock_setmetatable, t, mt)
    rawset(mt, '__gc', finalizer)
    if not ok then error(problem, 2) end
    return t
  end
end

string.dump = function() misuse('string.dump: byte code is not accepted anywhere in panto') end
package.loadlib = nil

local ALLOWED = { count = true, collect = true, step = true, isrunning = true }
function collectgarbage(what, ...)
  what = what or 'collect'
  if not ALLOWED[what] then misuse('collectgarbage: only count, collect, step and isrunning') end
  return collect(what, ...)
end

local getinfo, traceback = debug.getinfo, debug.traceback
H.debug = { getmetatable = debug.getmetatable, getregistry = debug.getregistry }
local sethook = debug.sethook
function H.set_limit(co, instructions)
  sethook(co, function() error('this file does not come to an end', 0) end, '', instructions)
end
for name in pairs(debug) do debug[name] = nil end
debug.traceback = traceback
function debug.getinfo(level, what)
  if type(level) ~= 'number' then misuse('debug.getinfo: a level expected') end
  local info = getinfo(level + 1, 'Sl')
  if not info then return nil end
  return { source = info.source, short_src = info.short_src, what = info.what, currentline = info.currentline,
    linedefined = info.linedefined, lastlinedefined = info.lastlinedefined }
end

-- ---------------------------------------------------------------- programs

local function shell(command, input, name)
  local done = await(name, 'exec', { argv = { '/bin/sh', '-c', command }, stdin = input })
  if done.stderr ~= '' then post('print', done.stderr, '') end
  return done
end

local function ending(done)
  local how = done.signal ~= 0 and 'signal' or 'exit'
  local code = done.signal ~= 0 and done.signal or done.code
  if how == 'exit' and code == 0 then return true, how, code end
  return nil, how, code
end

function os.execute(command)
  if command == nil then return true end
  local done = shell(command, nil, 'os.execute')
  if done.stdout ~= '' then
    if in_session then post('print', done.stdout, '') else io.stdout:write(done.stdout) end
  end
  return ending(done)
end

--- A readable file over text that is there already.
local function text_file(text, on_close)
  local at, file = 1, {}
  local function read_one(what)
    if type(what) == 'number' then
      if at > #text and what > 0 then return nil end
      local piece = sub(text, at, at + what - 1)
      at = at + #piece
      return piece
    end
    what = match(what, '^%*?(.)')
    if what == 'a' then
      local piece = sub(text, at)
      at = #text + 1
      return piece
    end
    if at > #text then return nil end
    if what == 'n' then
      local _, stop, digits = find(text, '^%s*([-+%w.]+)', at)
      if not stop then return nil end
      at = stop + 1
      return tonumber(digits)
    end
    local stop = find(text, '\n', at, true)
    local piece = sub(text, at, (stop or #text + 1) - (what == 'L' and 0 or 1))
    at = (stop or #text) + 1
    return piece
  end
  function file.read(_, ...)
    local n = select('#', ...)
    if n == 0 then return read_one('l') end
    local out = {}
    for i = 1, n do
      out[i] = read_one((select(i, ...)))
      if out[i] == nil then return unpack(out, 1, i) end
    end
    return unpack(out, 1, n)
  end
  function file.lines(self, what) return function() return read_one(what or 'l') end end
  function file.close() return on_close() end
  function file.write() return nil, 'not open for writing' end
  function file.flush(self) return self end
  function file.setvbuf() return true end
  file.seek = function() return nil, 'not a place one can seek in' end
  return file
end

local PROXY = { __name = 'FILE*', __metatable = false, __tostring = function() return 'file (panto)' end }
local function as_file(file)
  PROXY.__close = PROXY.__close or function(f) f:close() end
  return setmetatable(file, PROXY)
end
local raw_metatable = H.debug.getmetatable
local function is_proxy(f) return type(f) == 'table' and raw_metatable(f) == PROXY end

local function sink(write, close)
  local file = {}
  function file.write(self, ...)
    local parts = { ... }
    for i = 1, select('#', ...) do
      local kind = type(parts[i])
      if kind ~= 'string' and kind ~= 'number' then misuse('write: text or a number expected, got ' .. kind) end
    end
    write(concat(parts))
    return self
  end
  function file.flush(self) return self end
  function file.close() return close() end
  function file.read() return nil, 'not open for reading' end
  function file.lines() return function() end end
  function file.setvbuf() return true end
  file.seek = function() return nil, 'not a place one can seek in' end
  return as_file(file)
end

function io.popen(command, mode)
  if type(command) ~= 'string' then misuse('io.popen: a command expected') end
  if mode == 'w' then
    local parts = {}
    return sink(function(text) parts[#parts + 1] = text end, function()
      local done = shell(command, concat(parts), 'io.popen')
      if done.stdout ~= '' then post('print', done.stdout, '') end
      return ending(done)
    end)
  end
  local done = shell(command, nil, 'io.popen')
  return as_file(text_file(done.stdout, function() return ending(done) end))
end

-- ---------------------------------------------------------------- the process

local env = H.options.env
function os.getenv(name) return env[name] end

--- Another environment from now on (a worker gets one with each call).
function H.set_env(t)
  for name in next, env do env[name] = nil end
  for name, value in next, t do env[name] = value end
end
os.setlocale = nil

if in_session then
  function os.exit()
    misuse('os.exit: an extension cannot end panto; return from the handler instead')
  end
else
  function os.exit(code)
    if code == nil or code == true then code = 0 elseif code == false then code = 1 end
    if type(code) ~= 'number' then misuse('os.exit: a number or a boolean expected') end
    await('os.exit', 'exit', code // 1 | 0)
  end
end

-- ---------------------------------------------------------------- standard streams

if in_session then
  local function printed(text)
    local t = current()
    post('print', text, t and t.owner or '')
  end
  local function stays() return nil, 'a standard stream stays open' end
  io.stdout, io.stderr = sink(printed, stays), sink(printed, stays)
  io.stdin = as_file(text_file('', stays))

  function print(...)
    local out = pack(...)
    for i = 1, out.n do out[i] = tostring(out[i]) end
    printed(concat(out, '\t') .. '\n')
  end

  local input, output = io.stdin, io.stdout
  local function chosen(now, file, mode, name)
    if file == nil then return now end
    if type(file) ~= 'string' then return file end
    local opened, problem = open(file, mode)
    if not opened then misuse(name .. ': ' .. problem) end
    return opened
  end
  function io.input(file) input = chosen(input, file, 'r', 'io.input') return input end
  function io.output(file) output = chosen(output, file, 'w', 'io.output') return output end
  function io.read(...) return input:read(...) end
  function io.write(...) return output:write(...) end
  function io.close(file) return (file or output):close() end
  function io.lines(path, ...)
    if path == nil then return input:lines(...) end
    return io_lines(path, ...)
  end
  function io.type(f)
    if is_proxy(f) then return 'file' end
    return io_type(f)
  end
else
  function io.type(f) return is_proxy(f) and 'file' or io_type(f) end
end

--- A rockspec's globals as plain data: true and a table, or false and what is wrong.
function H.read_rockspec(text, name)
  local env = {}
  local chunk, problem = stock_load(text, name, 't', env)
  if not chunk then return false, problem end
  local co = H.bounded(chunk)
  local ok, e = co()
  if not ok then return false, tostring(e) end
  local good, plain = pcall(H.freeze, env)
  return good, plain
end

--- A call that is stopped after ten million instructions: for files that are data.
function H.bounded(chunk)
  local co = create(chunk)
  H.set_limit(co, 10000000)
  return function() return resume(co) end
end
