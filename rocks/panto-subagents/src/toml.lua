-- TOML 1.0 but for dates, which are refused. Every table and key keeps the line it was written on: see `lines`.
local M = {}

local function fail(state, message)
  local _, line = state.text:sub(1, state.at - 1):gsub('\n', '')
  error({ line = line + 1, message = message }, 0)
end

local function line_of(state)
  -- counted on from the last place asked for, so that a whole file costs one pass
  local from, line = state.counted, state.line
  for _ in state.text:sub(from, state.at - 1):gmatch('\n') do line = line + 1 end
  state.counted, state.line = state.at, line
  return line
end

local function skip(state, newlines)
  while true do
    local at = state.text:find(newlines and '[^ \t\r\n]' or '[^ \t]', state.at) or #state.text + 1
    state.at = at
    if state.text:sub(at, at) ~= '#' then return end
    state.at = state.text:find('\n', at, true) or #state.text + 1
    if not newlines then return end
  end
end

local function peek(state) return state.text:sub(state.at, state.at) end

local function end_of_line(state)
  skip(state)
  local c = peek(state)
  if c == '\r' then
    state.at = state.at + 1
    c = peek(state)
  end
  if c ~= '\n' and c ~= '' then fail(state, 'something follows a value that has ended') end
end

local ESCAPES = { b = '\b', t = '\t', n = '\n', f = '\f', r = '\r', ['"'] = '"', ['\\'] = '\\' }

local function escape(state, out)
  local e = state.text:sub(state.at + 1, state.at + 1)
  local digits = e == 'u' and state.text:match('^%x%x%x%x', state.at + 2)
    or e == 'U' and state.text:match('^%x%x%x%x%x%x%x%x', state.at + 2)
  if digits then
    local code = tonumber(digits, 16)
    if code > 0x10ffff or code >= 0xd800 and code < 0xe000 then fail(state, 'no such character: \\' .. e .. digits) end
    out[#out + 1] = utf8.char(code)
    state.at = state.at + 2 + #digits
  elseif ESCAPES[e] then
    out[#out + 1] = ESCAPES[e]
    state.at = state.at + 2
  else
    fail(state, 'unknown escape \\' .. e)
  end
end

local function basic(state)
  local out = {}
  state.at = state.at + 1
  while true do
    local from, to = state.text:find('^[^"\\\n]+', state.at)
    if from then
      out[#out + 1] = state.text:sub(from, to)
      state.at = to + 1
    end
    local c = peek(state)
    if c == '"' then
      state.at = state.at + 1
      return table.concat(out)
    end
    if c ~= '\\' then fail(state, 'a text does not end on its line') end
    escape(state, out)
  end
end

local function long_basic(state)
  local out = {}
  state.at = state.at + 3
  if peek(state) == '\r' then state.at = state.at + 1 end
  if peek(state) == '\n' then state.at = state.at + 1 end
  while true do
    local from, to = state.text:find('^[^"\\]+', state.at)
    if from then
      out[#out + 1] = state.text:sub(from, to)
      state.at = to + 1
    end
    local c = peek(state)
    if c == '' then fail(state, 'a text in """ does not end') end
    if c == '"' then
      local quotes = state.text:match('^"+', state.at)
      if #quotes >= 3 then
        if #quotes > 5 then fail(state, 'too many quotes') end
        out[#out + 1] = quotes:sub(4)
        state.at = state.at + #quotes
        return table.concat(out)
      end
      out[#out + 1] = quotes
      state.at = state.at + #quotes
    elseif state.text:find('^\\[ \t\r]*\n', state.at) then
      state.at = state.text:find('[^ \t\r\n]', state.at + 1) or #state.text + 1
    else
      escape(state, out)
    end
  end
end

local function literal(state)
  local text, after = state.text:match("^'([^'\n]*)'()", state.at)
  if not text then fail(state, 'a text does not end on its line') end
  state.at = after
  return text
end

local function long_literal(state)
  local from = state.at + 3
  local stop = state.text:find("'''", from, true)
  if not stop then fail(state, "a text in ''' does not end") end
  while state.text:sub(stop + 3, stop + 3) == "'" do stop = stop + 1 end
  state.at = stop + 3
  return (state.text:sub(from, stop - 1):gsub('^\r?\n', ''))
end

local function string_value(state)
  local three = state.text:sub(state.at, state.at + 2)
  if three == '"""' then return long_basic(state) end
  if three == "'''" then return long_literal(state) end
  return peek(state) == '"' and basic(state) or literal(state)
end

local SPECIAL = { ['true'] = true, ['false'] = false, inf = math.huge, ['+inf'] = math.huge, ['-inf'] = -math.huge }

local function bare_value(state)
  local word = state.text:match('^[%w_.:+-]+', state.at) or ''
  if word == '' then fail(state, 'a value expected') end
  local value = SPECIAL[word]
  if value == nil then
    local digits = word:gsub('(%x)_(%x)', '%1%2'):gsub('(%x)_(%x)', '%1%2')
    if digits:find('^[-+]?%d+$') and not digits:find('^[-+]?0%d') then
      value = math.tointeger(tonumber((digits:gsub('^%+', ''))))
    elseif digits:find('^0x%x+$') then
      value = tonumber(digits)
    elseif digits:find('^0o[0-7]+$') then
      value = tonumber(digits:sub(3), 8)
    elseif digits:find('^0b[01]+$') then
      value = tonumber(digits:sub(3), 2)
    elseif digits:find('^[-+]?%d+%.%d+$') or digits:find('^[-+]?%d+%.?%d*[eE][-+]?%d+$') then
      value = tonumber((digits:gsub('^%+', '')))
    elseif digits:find('^%d%d%d%d%-%d%d') or digits:find('^%d%d:%d%d') then
      fail(state, 'dates and times are not read here; write them as text')
    end
  end
  if value == nil then fail(state, 'not a value: ' .. word) end
  state.at = state.at + #word
  return value
end

local value, key_path

local function array(state)
  local out, n = {}, 0
  state.at = state.at + 1
  while true do
    skip(state, true)
    if peek(state) == ']' then break end
    n = n + 1
    out[n] = value(state)
    skip(state, true)
    if peek(state) == ',' then
      state.at = state.at + 1
    elseif peek(state) ~= ']' then
      fail(state, "',' or ']' expected")
    end
  end
  state.at = state.at + 1
  return setmetatable(out, M.ARRAY)
end

local function put(state, into, path, what)
  for i = 1, #path - 1 do
    local deeper = into[path[i]]
    if deeper == nil then
      deeper = {}
      into[path[i]] = deeper
    elseif type(deeper) ~= 'table' or state.closed[deeper] then
      fail(state, path[i] .. ' has a value already')
    end
    into = deeper
  end
  local name = path[#path]
  if into[name] ~= nil then fail(state, name .. ' is there twice') end
  into[name] = what
  state.lines[into] = state.lines[into] or {}
  state.lines[into][name] = state.key_line
end

local function inline_table(state)
  local out = {}
  state.at = state.at + 1
  skip(state)
  while peek(state) ~= '}' do
    local line = line_of(state)
    local path = key_path(state)
    if peek(state) ~= '=' then fail(state, "'=' expected") end
    state.at = state.at + 1
    skip(state)
    local got = value(state)
    state.key_line = line
    put(state, out, path, got)
    skip(state)
    if peek(state) == ',' then
      state.at = state.at + 1
      skip(state)
      if peek(state) == '}' then fail(state, "no ',' before '}'") end
    elseif peek(state) ~= '}' then
      fail(state, "',' or '}' expected")
    end
  end
  state.at = state.at + 1
  state.closed[out] = true
  return out
end

function value(state)
  local c = peek(state)
  if c == '"' or c == "'" then return string_value(state) end
  if c == '[' then
    local out = array(state)
    state.closed[out] = true
    return out
  end
  if c == '{' then return inline_table(state) end
  return bare_value(state)
end

function key_path(state)
  local path = {}
  while true do
    skip(state)
    local c = peek(state)
    if c == '"' or c == "'" then
      path[#path + 1] = c == '"' and basic(state) or literal(state)
    else
      local word = state.text:match('^[%w_-]+', state.at)
      if not word then fail(state, 'a name expected') end
      path[#path + 1] = word
      state.at = state.at + #word
    end
    skip(state)
    if peek(state) ~= '.' then return path end
    state.at = state.at + 1
  end
end

-- [a.b] and [[a.b]]: the table that the following keys belong to.
local function header(state, root)
  local line, many = line_of(state), state.text:sub(state.at, state.at + 1) == '[['
  state.at = state.at + (many and 2 or 1)
  local path, into = key_path(state), root
  local close = many and ']]' or ']'
  if state.text:sub(state.at, state.at + #close - 1) ~= close then fail(state, "'" .. close .. "' expected") end
  for i = 1, #path - 1 do
    local deeper = into[path[i]]
    if deeper == nil then
      deeper = {}
      into[path[i]] = deeper
    elseif type(deeper) ~= 'table' or state.closed[deeper] then
      fail(state, path[i] .. ' has a value already')
    end
    into = state.many[deeper] and deeper[#deeper] or deeper
  end
  local name, found = path[#path], into[path[#path]]
  local out = {}
  if many then
    if found == nil then
      found = setmetatable({}, M.ARRAY)
      into[name], state.many[found] = found, true
    elseif type(found) ~= 'table' or not state.many[found] then
      fail(state, name .. ' is no list of tables')
    end
    found[#found + 1] = out
  elseif found == nil then
    into[name] = out
  elseif type(found) ~= 'table' or state.defined[found] or state.closed[found] or state.many[found] then
    fail(state, name .. ' is there twice')
  else
    out = found
  end
  state.defined[out] = true
  state.at = state.at + #close
  end_of_line(state)
  state.lines[out] = state.lines[out] or {}
  state.lines[out][1] = line
  return out
end

M.ARRAY = { __name = 'array' }

--- A document. Gives the table and `lines` (table -> { [1] = line of its header, key = line of that key });
--- on failure nil, what is wrong, and the line from 1.
function M.parse(text)
  local state = { text = text:gsub('^\xef\xbb\xbf', ''), at = 1, counted = 1, line = 1, lines = {}, closed = {},
    many = {}, defined = {} }
  local root = {}
  local ok, problem = pcall(function()
    local into = root
    while true do
      skip(state, true)
      local c = peek(state)
      if c == '' then return end
      if c == '[' then
        into = header(state, root)
      else
        local line = line_of(state)
        local path = key_path(state)
        if peek(state) ~= '=' then fail(state, "'=' expected") end
        state.at = state.at + 1
        skip(state)
        local got = value(state)
        state.key_line = line
        put(state, into, path, got)
        end_of_line(state)
      end
    end
  end)
  if ok then return root, state.lines end
  if type(problem) == 'table' then return nil, problem.message, problem.line end
  error(problem, 0)
end

return M
