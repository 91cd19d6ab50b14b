-- JSON for plain Lua, as little as the specs need: what inside panto require('panto').json gives.
local M = {}

local ARRAY, OBJECT = {}, {}
M.null = setmetatable({}, { __tostring = function() return 'null' end })
function M.array(t) return setmetatable(t or {}, ARRAY) end
function M.object(t) return setmetatable(t or {}, OBJECT) end

local function encode(v)
  if v == M.null then return 'null' end
  local kind = type(v)
  if kind == 'string' then
    return '"' .. v:gsub('[%c"\\]', function(c)
      return c == '"' and '\\"' or c == '\\' and '\\\\' or c == '\n' and '\\n' or string.format('\\u%04x', c:byte())
    end) .. '"'
  end
  if kind == 'number' then return v % 1 == 0 and string.format('%d', v) or string.format('%.14g', v) end
  if kind == 'boolean' then return tostring(v) end
  if kind ~= 'table' then error('a ' .. kind .. ' is not JSON', 0) end
  local out = {}
  if getmetatable(v) == ARRAY or #v > 0 then
    for i, item in ipairs(v) do out[i] = encode(item) end
    return '[' .. table.concat(out, ',') .. ']'
  end
  local names = {}
  for name in pairs(v) do names[#names + 1] = tostring(name) end
  table.sort(names)
  for i, name in ipairs(names) do out[i] = encode(name) .. ':' .. encode(v[name]) end
  return '{' .. table.concat(out, ',') .. '}'
end
M.encode = encode

local value

local function fail(at) error('not JSON at byte ' .. at, 0) end

local function read_string(s, at)
  local out, i = {}, at + 1
  while true do
    local from, to = s:find('^[^"\\%c]+', i)
    if from then
      out[#out + 1], i = s:sub(from, to), to + 1
    end
    local c = s:sub(i, i)
    if c == '"' then return table.concat(out), i + 1 end
    if c ~= '\\' then fail(i) end
    local e = s:sub(i + 1, i + 1)
    local hex = e == 'u' and s:match('^%x%x%x%x', i + 2)
    local plain = ({ n = '\n', t = '\t', r = '\r', b = '\b', f = '\f', ['"'] = '"', ['\\'] = '\\', ['/'] = '/' })[e]
    if not hex and not plain then fail(i) end
    out[#out + 1] = hex and utf8.char(tonumber(hex, 16)) or plain
    i = i + (hex and 6 or 2)
  end
end

local function read_many(s, at, close, one)
  at = s:find('%S', at + 1)
  if s:sub(at, at) == close then return at + 1 end
  while true do
    at = s:find('%S', one(at)) or fail(at)
    local c = s:sub(at, at)
    at = s:find('%S', at + 1) or #s + 1
    if c == close then return at end
    if c ~= ',' then fail(at) end
  end
end

function value(s, at)
  at = s:find('%S', at) or fail(#s + 1)
  local c = s:sub(at, at)
  if c == '"' then return read_string(s, at) end
  if c == '[' then
    local out = M.array {}
    local stop = read_many(s, at, ']', function(i)
      local after
      out[#out + 1], after = value(s, i)
      return after
    end)
    return out, stop
  end
  if c == '{' then
    local out = M.object {}
    local stop = read_many(s, at, '}', function(i)
      if s:sub(i, i) ~= '"' then fail(i) end
      local name, after = read_string(s, i)
      after = s:match('^%s*:()', after) or fail(after)
      out[name], after = value(s, after)
      return after
    end)
    return out, stop
  end
  for word, v in pairs { ['true'] = true, ['false'] = false, null = M.null } do
    if s:sub(at, at + #word - 1) == word then return v, at + #word end
  end
  local number = s:match('^-?%d+%.?%d*[eE]?[-+]?%d*', at) or fail(at)
  return math.tointeger(tonumber(number)) or tonumber(number), at + #number
end

function M.decode(s)
  local out, at = value(s, 1)
  if s:find('%S', at) then fail(at) end
  return out
end

return M
