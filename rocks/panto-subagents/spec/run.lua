-- The rock's specs on plain Lua 5.4: `lua5.4 spec/run.lua` in the rock's folder. Inside panto the same files run through
-- `require`: see `run` below.
local M = {}

M.FILES = { 'yaml', 'toml', 'schema', 'gate', 'profiles', 'graph', 'agents', 'flows' }

local function loaded(path, ...)
  local file = assert(io.open(path, 'rb'))
  local source = file:read('a')
  file:close()
  return assert(load(source, '@' .. path))(...)
end

local function shown(v)
  if type(v) ~= 'table' then return type(v) == 'string' and string.format('%q', v) or tostring(v) end
  local out = {}
  for k, item in pairs(v) do out[#out + 1] = tostring(k) .. '=' .. shown(item) end
  table.sort(out)
  return '{' .. table.concat(out, ', ') .. '}'
end

local function equal(a, b)
  if type(a) ~= 'table' or type(b) ~= 'table' then return a == b end
  for k, v in pairs(a) do if not equal(v, b[k]) then return false end end
  for k in pairs(b) do if a[k] == nil then return false end end
  return true
end

--- Run all specs: `root` is the rock's folder, `json` the JSON to use, `pause` is called between two examples. Gives the
--- number of examples and a list of failures.
function M.run(root, json, pause)
  local stub = loaded(root .. '/spec/stub.lua')
  json = json or loaded(root .. '/spec/json.lua')
  local count, failures = 0, {}
  for _, name in ipairs(M.FILES) do
    local t = { json = json, stub = stub }
    function t.host(options) return stub.new(root .. '/src', json, options) end
    function t.is(got, wanted)
      if not equal(got, wanted) then error('got ' .. shown(got) .. ', expected ' .. shown(wanted), 2) end
    end
    function t.has(text, part)
      if not tostring(text):find(part, 1, true) then error(shown(text) .. ' does not hold ' .. shown(part), 2) end
    end
    function t.fails(fn, part)
      local ok, e = pcall(fn)
      if ok then error('it should fail', 2) end
      t.has(type(e) == 'table' and e.message or e, part)
      return e
    end
    function t.read(path)
      local file = assert(io.open(root .. '/' .. path, 'rb'))
      local source = file:read('a')
      file:close()
      return source
    end
    function t.it(what, fn)
      count = count + 1
      local ok, trace = xpcall(fn, function(e)
        return debug.traceback(type(e) == 'table' and e.message or tostring(e), 2)
      end)
      if not ok then failures[#failures + 1] = name .. ': ' .. what .. '\n' .. trace end
      if pause then pause() end
    end
    loaded(root .. '/spec/' .. name .. '_spec.lua', t)
  end
  return count, failures
end

if arg and arg[0] and arg[0]:find('run%.lua$') then
  local root = arg[0]:match('^(.*)/spec/run%.lua$') or '.'
  local count, failures = M.run(root)
  for _, failure in ipairs(failures) do io.stderr:write(failure, '\n\n') end
  print(string.format('%d examples, %d failed', count, #failures))
  os.exit(#failures == 0)
end

return M
