-- JSON in Lua, strict both ways: duplicate keys, NaN, trailing data and bad UTF-8 are refused; integers of any size keep
-- their digits; a decoded object remembers the order of its keys.
local H = ...
local type, next, error, rawlen, rawequal, tostring, tonumber = type, next, error, rawlen, rawequal, tostring, tonumber
local setmetatable, getmetatable, mathtype = setmetatable, debug.getmetatable, math.type
local byte, char, find, format, gsub, sub, rep, match = string.byte, string.char, string.find, string.format,
  string.gsub, string.sub, string.rep, string.match
local pcall, charpattern, codepoint = pcall, utf8.charpattern, utf8.codepoint
local concat, sort, utf8len, utf8char, codes = table.concat, table.sort, utf8.len, utf8.char, utf8.codes
local huge, floor = math.huge, math.floor
local null, ARRAY, OBJECT, BIG, shape = H.null, H.ARRAY, H.OBJECT, H.BIG, H.shape

local DEEPEST = 200

-- ---------------------------------------------------------------- numbers

--- A float as ECMAScript writes it: the shortest digits that read back the same.
local function float_text(v)
  if v ~= v or v == huge or v == -huge then error(tostring(v) .. ' is not JSON', 0) end
  if v == 0 then return '0' end
  local text
  for precision = (v > -2.3e-308 and v < 2.3e-308) and 1 or 15, 17 do -- subnormals have fewer digits
    text = format('%.' .. precision - 1 .. 'e', v)
    if tonumber(text) == v then break end
  end
  local sign, whole, fraction, exponent = match(text, '^(-?)(%d)%.?(%d*)e([-+]%d+)$')
  local digits = gsub(whole .. fraction, '0+$', '')
  local n, point = #digits, tonumber(exponent) + 1
  local out
  if n <= point and point <= 21 then
    out = digits .. rep('0', point - n)
  elseif 0 < point and point <= 21 then
    out = sub(digits, 1, point) .. '.' .. sub(digits, point + 1)
  elseif -6 < point and point <= 0 then
    out = '0.' .. rep('0', -point) .. digits
  else
    local e = point - 1
    out = sub(digits, 1, 1) .. (n > 1 and '.' .. sub(digits, 2) or '') .. 'e' .. (e > 0 and '+' or '-')
      .. format('%d', e < 0 and -e or e)
  end
  return sign .. out
end

-- ---------------------------------------------------------------- writing

local ESCAPES = { ['"'] = '\\"', ['\\'] = '\\\\', ['\b'] = '\\b', ['\f'] = '\\f', ['\n'] = '\\n', ['\r'] = '\\r',
  ['\t'] = '\\t' }
for i = 0, 31 do
  local c = char(i)
  ESCAPES[c] = ESCAPES[c] or format('\\u%04x', i)
end

local function string_text(s)
  local _, bad = utf8len(s)
  if bad then error('a string is not UTF-8 at byte ' .. bad, 0) end
  if find(s, '[%c"\\]') then s = gsub(s, '[%z\1-\31"\\]', ESCAPES) end
  return '"' .. s .. '"'
end

-- Keys compare by UTF-16 code units: code points from U+E000 to U+FFFF come after those beyond.
local function utf16(s)
  if not find(s, '[\xee-\xf4]') then return s end
  return (gsub(s, charpattern, function(c)
    local point = codepoint(c)
    if point < 0xE000 then return c end
    if point > 0xFFFF then return '\xee' .. c end
    return '\xef' .. c
  end))
end

local function sorted_keys(t)
  local keys, n = {}, 0
  for key in next, t do
    if type(key) == 'number' and mathtype(key) == 'integer' then
      if t[format('%d', key)] ~= nil then error('key ' .. key .. ' is there as a number and as text', 0) end
    elseif type(key) ~= 'string' then
      error('a ' .. type(key) .. ' cannot be a key of a JSON object', 0)
    end
    n = n + 1
    keys[n] = key
  end
  sort(keys, function(a, b)
    local x, y = type(a) == 'string' and a or format('%d', a), type(b) == 'string' and b or format('%d', b)
    return utf16(x) < utf16(y)
  end)
  return keys
end

--- Keys in the order they were read; those that came later, sorted, at the end.
local function kept_keys(t, order)
  local keys, n, seen = {}, 0, {}
  for i = 1, #order do
    local key = order[i]
    if rawequal(t[key], nil) == false and not seen[key] then
      n, seen[key] = n + 1, true
      keys[n] = key
    end
  end
  for _, key in next, sorted_keys(t) do
    if not seen[key] then
      n = n + 1
      keys[n] = key
    end
  end
  return keys
end

local write

local function write_array(t, out, canonical, depth)
  local n = rawlen(t)
  for key in next, t do
    if mathtype(key) ~= 'integer' or key < 1 or key > n then
      error('a table is either a list or has names; this one has both (key ' .. tostring(key) .. ')', 0)
    end
  end
  out[#out + 1] = '['
  for i = 1, n do
    if i > 1 then out[#out + 1] = ',' end
    local v = t[i]
    write(v == nil and null or v, out, canonical, depth)
  end
  out[#out + 1] = ']'
end

local function write_object(t, out, canonical, depth)
  local mt = getmetatable(t)
  local keys = not canonical and mt and mt.order and kept_keys(t, mt.order) or sorted_keys(t)
  out[#out + 1] = '{'
  for i = 1, #keys do
    local key = keys[i]
    if i > 1 then out[#out + 1] = ',' end
    out[#out + 1] = string_text(type(key) == 'string' and key or format('%d', key))
    out[#out + 1] = ':'
    write(t[key], out, canonical, depth)
  end
  out[#out + 1] = '}'
end

function write(v, out, canonical, depth)
  local kind = type(v)
  if kind == 'string' then
    out[#out + 1] = string_text(v)
  elseif kind == 'number' then
    if mathtype(v) == 'integer' then
      out[#out + 1] = format('%d', v)
    else
      local text = float_text(v)
      if not canonical and not find(text, '[.e]') then text = text .. '.0' end
      out[#out + 1] = text
    end
  elseif kind == 'boolean' then
    out[#out + 1] = v and 'true' or 'false'
  elseif rawequal(v, null) then
    out[#out + 1] = 'null'
  elseif kind == 'table' then
    if depth > DEEPEST then error('a table is nested too deeply, or contains itself', 0) end
    if getmetatable(v) == BIG then
      out[#out + 1] = v.digits
    elseif shape(v) then
      write_array(v, out, canonical, depth + 1)
    else
      write_object(v, out, canonical, depth + 1)
    end
  else
    error('a ' .. kind .. ' is not JSON', 0)
  end
end

--- JSON text of `v`; `canonical`: the one form that digests are taken over.
function H.json_encode(v, canonical)
  local out = {}
  write(v, out, canonical, 0)
  return concat(out)
end

-- ---------------------------------------------------------------- reading

local UNESCAPES = { ['"'] = '"', ['\\'] = '\\', ['/'] = '/', b = '\b', f = '\f', n = '\n', r = '\r', t = '\t' }

local function fail(message, at) error(message .. ' at position ' .. at, 0) end

local function read_escape(s, at) -- `at` is the backslash: text, next position
  local c = sub(s, at + 1, at + 1)
  if UNESCAPES[c] then return UNESCAPES[c], at + 2 end
  local hex = c == 'u' and match(s, '^%x%x%x%x', at + 2)
  if not hex then fail('bad escape', at) end
  local point = tonumber(hex, 16)
  if point < 0xD800 or point > 0xDFFF then return utf8char(point), at + 6 end
  local low = point < 0xDC00 and match(s, '^\\u([dD][c-fC-F]%x%x)', at + 6)
  if not low then fail('lone surrogate', at) end
  return utf8char(0x10000 + (point - 0xD800) * 0x400 + tonumber(low, 16) - 0xDC00), at + 12
end

local function read_string(s, at) -- `at` is behind the opening quote
  local stop = find(s, '["\\%c]', at)
  if stop and byte(s, stop) == 34 then return sub(s, at, stop - 1), stop + 1 end
  local out, from = {}, at
  while true do
    stop = find(s, '["\\%z\1-\31]', at)
    if not stop then fail('a string without end', from - 1) end
    out[#out + 1] = sub(s, at, stop - 1)
    local b = byte(s, stop)
    if b == 34 then return concat(out), stop + 1 end
    if b ~= 92 then fail('a control character in a string', stop) end
    out[#out + 1], at = read_escape(s, stop)
  end
end

local function read_number(s, at)
  local _, stop, sign, digits = find(s, '^(-?)(%d+)', at)
  if not stop then fail('a value is missing', at) end
  if #digits > 1 and byte(digits) == 48 then fail('a number with a leading zero', at) end
  local _, fraction_stop = find(s, '^%.%d+', stop + 1)
  local _, exponent_stop = find(s, '^[eE][-+]?%d+', (fraction_stop or stop) + 1)
  if not (fraction_stop or exponent_stop) then
    local text = sign .. digits
    local v = #digits < 20 and tonumber(text) or nil
    if mathtype(v) == 'integer' then return v, stop + 1 end
    return setmetatable({ digits = text }, BIG), stop + 1
  end
  stop = exponent_stop or fraction_stop
  local v = tonumber(sub(s, at, stop)) + 0.0
  if v == huge or v == -huge then fail('a number out of range', at) end
  return v, stop + 1
end

local read
local function skip(s, at) return find(s, '[^ \t\r\n]', at) or #s + 1 end

local function read_array(s, at, depth)
  local out, n = setmetatable({}, ARRAY), 0
  at = skip(s, at)
  if byte(s, at) == 93 then return out, at + 1 end
  while true do
    n = n + 1
    out[n], at = read(s, at, depth)
    at = skip(s, at)
    local b = byte(s, at)
    if b == 93 then return out, at + 1 end
    if b ~= 44 then fail("',' or ']' is missing", at) end
    at = skip(s, at + 1)
  end
end

local function read_object(s, at, depth)
  local out, order, n = {}, {}, 0
  at = skip(s, at)
  if byte(s, at) == 125 then return setmetatable(out, { order = order }), at + 1 end
  while true do
    if byte(s, at) ~= 34 then fail('a key is missing', at) end
    local key, from = nil, at
    key, at = read_string(s, at + 1)
    if out[key] ~= nil then fail('duplicate key "' .. key .. '"', from) end
    at = skip(s, at)
    if byte(s, at) ~= 58 then fail("':' is missing", at) end
    out[key], at = read(s, skip(s, at + 1), depth)
    n = n + 1
    order[n] = key
    at = skip(s, at)
    local b = byte(s, at)
    if b == 125 then return setmetatable(out, { order = order }), at + 1 end
    if b ~= 44 then fail("',' or '}' is missing", at) end
    at = skip(s, at + 1)
  end
end

local WORDS = { [116] = { 'true', true }, [102] = { 'false', false }, [110] = { 'null', null } }

function read(s, at, depth)
  if depth > DEEPEST then fail('nested too deeply', at) end
  local b = byte(s, at)
  if b == 34 then return read_string(s, at + 1) end
  if b == 123 then return read_object(s, at + 1, depth + 1) end
  if b == 91 then return read_array(s, at + 1, depth + 1) end
  local word = WORDS[b]
  if word then
    if sub(s, at, at + #word[1] - 1) ~= word[1] then fail('an unknown word', at) end
    return word[2], at + #word[1]
  end
  if not b then fail('the text ends too early', at) end
  return read_number(s, at)
end

--- The value of JSON text; errors say what and where (position in bytes, from 1).
function H.json_decode(s)
  local _, bad = utf8len(s)
  if bad then fail('not UTF-8', bad) end
  local v, at = read(s, skip(s, 1), 0)
  at = skip(s, at)
  if at <= #s then fail('text after the value', at) end
  return v
end

local misuse = H.misuse
local json = { null = null }

function json.encode(v)
  local ok, text = pcall(H.json_encode, v)
  if not ok then misuse('json.encode: ' .. text) end
  return text
end

function json.decode(text)
  if type(text) ~= 'string' then misuse('json.decode: text expected, got ' .. type(text)) end
  local ok, v = pcall(H.json_decode, text)
  if not ok then misuse('json.decode: ' .. v) end
  return v
end

local function tagged(tag, name)
  return function(t)
    if t == nil then t = {} end
    if type(t) ~= 'table' then misuse('json.' .. name .. ': a table expected, got ' .. type(t)) end
    return setmetatable(t, tag)
  end
end

json.array, json.object = tagged(ARRAY, 'array'), tagged(OBJECT, 'object')
H.json = json
