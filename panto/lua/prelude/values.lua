-- Values that cross to Python and back: plain data only, copied here into a shape that Python can read without asking.
--
-- A copy has no metatables. What Lua cannot tell apart travels as a table with the one key 0 (which data may not have):
-- {[0]=true} an empty array, {[0]=false} null, {[0]=7} the function kept as reference 7, {[0]="123…"} an integer beyond 2^63.
local H = ...
local type, next, error, rawlen, rawequal, setmetatable, tostring = type, next, error, rawlen, rawequal, setmetatable, tostring
local getmetatable, mathtype = debug.getmetatable, math.type
local format, huge = string.format, math.huge

local null = setmetatable({}, {
  __name = 'null',
  __tostring = function() return 'null' end,
  __newindex = function() error('null cannot be changed', 2) end,
  __metatable = false,
})
local ARRAY, OBJECT = { __name = 'array' }, { __name = 'object' }
local BIG = { __name = 'integer', __metatable = false }
BIG.__tostring = function(n) return n.digits end
BIG.__eq = function(a, b) return a.digits == b.digits end

H.null, H.ARRAY, H.OBJECT, H.BIG = null, ARRAY, OBJECT, BIG

-- Functions that Python may have called later are kept here under a number.
local refs, last, held = {}, 0, 0

function H.ref(fn)
  last, held = last + 1, held + 1
  refs[last] = fn
  return last
end

function H.deref(id) return refs[id] end

function H.unref(id)
  if refs[id] ~= nil then
    refs[id], held = nil, held - 1
  end
end

function H.refs_held() return held end

-- true for an array, false for an object, nil for an empty table that says neither
local function shape(t)
  local mt = getmetatable(t)
  if mt == ARRAY then return true end
  if mt == OBJECT or (mt and mt.order) then return false end
  if rawlen(t) > 0 then return true end
  if next(t) == nil then return nil end
  return false
end
H.shape = shape

local freeze

local function freeze_array(t, with_functions, depth)
  local n, out, seen = rawlen(t), {}, 0
  if n == 0 and next(t) == nil then return { [0] = true } end
  for key in next, t do
    if mathtype(key) ~= 'integer' or key < 1 or key > n then
      error('a table is either a list or has names; this one has both (key ' .. tostring(key) .. ')', 0)
    end
  end
  for i = 1, n do
    local v = freeze(t[i], with_functions, depth)
    if v == nil then v = { [0] = false } end
    out[i] = v
  end
  return out
end

function freeze(v, with_functions, depth)
  local kind = type(v)
  if kind == 'string' or kind == 'boolean' or kind == 'nil' then return v end
  if kind == 'number' then
    if v ~= v or v == huge or v == -huge then error('not a number that can be passed on: ' .. tostring(v), 0) end
    return v
  end
  if kind == 'function' and with_functions then return { [0] = H.ref(v) } end
  if kind ~= 'table' then error('a ' .. kind .. ' cannot be passed to panto', 0) end
  if rawequal(v, null) then return { [0] = false } end
  if getmetatable(v) == BIG then return { [0] = v.digits } end
  if depth > 60 then error('a table is nested too deeply, or contains itself', 0) end
  if shape(v) then return freeze_array(v, with_functions, depth + 1) end
  local out = {}
  for key, item in next, v do
    local name = key
    if type(key) ~= 'string' then
      if mathtype(key) ~= 'integer' then error('a ' .. type(key) .. ' cannot be a key of plain data', 0) end
      name = format('%d', key)
    end
    out[name] = freeze(item, with_functions, depth + 1)
  end
  return out
end

--- A plain copy of `v` for Python; functions become references where `with_functions`. Errors name what cannot cross.
function H.freeze(v, with_functions) return freeze(v, with_functions, 0) end

--- An integer beyond 64 bits, as its digits.
function H.big(digits) return setmetatable({ digits = digits }, BIG) end
