-- A subset of JSON Schema (2020-12), checked in two steps: `compile` refuses a schema that uses anything else, `check`
-- gives what is wrong with a value. The one validator there is, so that no output passes here and fails elsewhere.
local json = require('panto').json

local M = {}

local KNOWN = { type = true, properties = true, required = true, additionalProperties = true, enum = true, const = true,
  items = true, minItems = true, maxItems = true, minLength = true, maxLength = true, minimum = true, maximum = true,
  oneOf = true, anyOf = true, allOf = true, ['$ref'] = true, ['$defs'] = true, definitions = true }
local SAID = { title = true, description = true, default = true, examples = true, ['$schema'] = true, ['$id'] = true,
  ['$comment'] = true, deprecated = true, readOnly = true, writeOnly = true }
local TYPES = { null = true, boolean = true, object = true, array = true, number = true, string = true, integer = true }

local function is_null(v) return v == json.null end

-- 'array', 'object', or 'empty' for a table that says neither. Marked ones are asked by encoding them.
local function shape(t)
  if #t > 0 then return 'array' end
  if next(t) ~= nil then return 'object' end
  return getmetatable(t) ~= nil and (json.encode(t) == '[]' and 'array' or 'object') or 'empty'
end

local function kind(v)
  if is_null(v) then return 'null' end
  local t = type(v)
  if t == 'table' then return shape(v) end
  return t
end

local function wrong(where, message) error({ kind = 'schema', message = 'schema ' .. where .. ': ' .. message }, 0) end

local function whole(v) return math.type(v) == 'integer' or type(v) == 'number' and v % 1 == 0 end

local function list(where, v, what)
  if type(v) ~= 'table' or shape(v) == 'object' then wrong(where, 'a list of ' .. what .. ' expected') end
  return v
end

local compile

local function each(root, where, v, done)
  if type(v) ~= 'table' or shape(v) == 'array' then wrong(where, 'an object of schemas expected') end
  for name, inner in pairs(v) do compile(root, where .. '/' .. name, inner, done) end
end

local CHECKS = {
  type = function(_, where, v)
    local given = type(v) == 'table' and v or { v }
    if #given == 0 then wrong(where, 'a name or a list of names expected') end
    for _, name in ipairs(given) do
      if not TYPES[name] then wrong(where, 'unknown type ' .. tostring(name)) end
    end
  end,
  properties = each,
  ['$defs'] = each,
  definitions = each,
  required = function(_, where, v)
    for _, name in ipairs(list(where, v, 'names')) do
      if type(name) ~= 'string' then wrong(where, 'names expected') end
    end
  end,
  additionalProperties = function(root, where, v, done) compile(root, where, v, done) end,
  items = function(root, where, v, done) compile(root, where, v, done) end,
  enum = function(_, where, v) list(where, v, 'values') end,
  ['$ref'] = function(root, where, v, done)
    if type(v) ~= 'string' or not v:find('^#') then wrong(where, 'only references inside the document (#/…) are read') end
    local target = M.resolve(root, v)
    if target == nil then wrong(where, v .. ' leads nowhere') end
    if not done[target] then compile(root, v, target, done) end
  end,
}
for _, name in ipairs { 'oneOf', 'anyOf', 'allOf' } do
  CHECKS[name] = function(root, where, v, done)
    if #list(where, v, 'schemas') == 0 then wrong(where, 'a list of schemas expected') end
    for i, inner in ipairs(v) do compile(root, where .. '/' .. i - 1, inner, done) end
  end
end
for _, name in ipairs { 'minItems', 'maxItems', 'minLength', 'maxLength' } do
  CHECKS[name] = function(_, where, v)
    if not whole(v) or v < 0 then wrong(where, 'a whole number from 0 expected') end
  end
end
for _, name in ipairs { 'minimum', 'maximum' } do
  CHECKS[name] = function(_, where, v)
    if type(v) ~= 'number' then wrong(where, 'a number expected') end
  end
end

function compile(root, where, schema, done)
  if type(schema) == 'boolean' then return end
  if type(schema) ~= 'table' or shape(schema) == 'array' then wrong(where, 'an object or a boolean expected') end
  if done[schema] then return end
  done[schema] = true
  for name, v in pairs(schema) do
    if CHECKS[name] then
      CHECKS[name](root, where .. '/' .. name, v, done)
    elseif not KNOWN[name] and not SAID[name] then
      wrong(where, 'the keyword ' .. tostring(name) .. ' is not supported' .. (name == 'pattern'
        and ': use enum, or say it in the description' or ''))
    end
  end
end

--- The part of the document that `#/a/b` names, nil if there is none.
function M.resolve(root, ref)
  local at = root
  for step in ref:gsub('^#', ''):gmatch('/([^/]*)') do
    step = step:gsub('%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end):gsub('~1', '/'):gsub('~0', '~')
    if type(at) ~= 'table' then return nil end
    local number = math.tointeger(tonumber(step))
    if at[step] ~= nil then at = at[step] elseif number then at = at[number + 1] else return nil end
  end
  return at
end

--- Refuse a schema that is wrong or uses what is not supported: raises { kind = 'schema', message }.
function M.compile(schema)
  compile(schema, '#', schema, {})
  return { root = schema }
end

-- ---------------------------------------------------------------- values

local function equal(a, b)
  if is_null(a) or is_null(b) then return is_null(a) and is_null(b) end
  if type(a) ~= 'table' or type(b) ~= 'table' then return a == b and type(a) == type(b) end
  local ka, kb = shape(a), shape(b)
  if ka ~= kb and ka ~= 'empty' and kb ~= 'empty' then return false end
  for k, v in pairs(a) do if b[k] == nil or not equal(v, b[k]) then return false end end
  for k in pairs(b) do if a[k] == nil then return false end end
  return true
end

local function is_type(v, name)
  local k = kind(v)
  if k == 'empty' then return name == 'array' or name == 'object' end
  if k == 'number' then return name == 'number' or name == 'integer' and whole(v) end
  return k == name
end

-- An empty table that says neither: a list where the schema speaks of one.
local function means_list(schema)
  return schema.type == 'array' or schema.type == nil and (schema.items ~= nil or schema.minItems ~= nil)
end

local check

local function say(problems, where, message)
  problems[#problems + 1] = (where == '' and 'the value' or where) .. ': ' .. message
end

local function shown(v)
  local ok, text = pcall(json.encode, v)
  text = ok and text or tostring(v)
  return #text > 60 and text:sub(1, 57) .. '…' or text
end

local function check_type(schema, v, where, problems)
  local names = type(schema.type) == 'table' and schema.type or { schema.type }
  for _, name in ipairs(names) do if is_type(v, name) then return end end
  say(problems, where, table.concat(names, ' or ') .. ' expected, this is ' .. shown(v))
end

local function check_object(root, schema, v, where, problems, depth)
  for _, name in ipairs(schema.required or {}) do
    if v[name] == nil then say(problems, where, name .. ' is missing') end
  end
  local extra = schema.additionalProperties
  for name, item in pairs(v) do
    local inner = schema.properties and schema.properties[name]
    if inner == nil then inner = extra end
    if inner == false and (not schema.properties or schema.properties[name] == nil) then
      say(problems, where, name .. ' is not among its properties')
    elseif inner ~= nil then
      check(root, inner, item, where .. '/' .. name, problems, depth)
    end
  end
end

local function check_size(least, most, size, what, where, problems)
  if least and size < least then say(problems, where, 'at least ' .. least .. what .. ' expected') end
  if most and size > most then say(problems, where, 'at most ' .. most .. what .. ' expected') end
end

local function check_array(root, schema, v, where, problems, depth)
  check_size(schema.minItems, schema.maxItems, #v, ' items', where, problems)
  if schema.items ~= nil then
    for i, item in ipairs(v) do check(root, schema.items, item, where .. '/' .. i - 1, problems, depth) end
  end
end

local function check_scalar(schema, v, where, problems)
  if type(v) == 'string' then
    local length = utf8.len(v) or #v
    check_size(schema.minLength, schema.maxLength, length, ' characters', where, problems)
  elseif type(v) == 'number' then
    check_size(schema.minimum, schema.maximum, v, '', where, problems)
  end
end

local function passing(root, schemas, v, depth)
  local count = 0
  for _, schema in ipairs(schemas) do
    local inner = {}
    check(root, schema, v, '', inner, depth)
    if #inner == 0 then count = count + 1 end
  end
  return count
end

local function check_combined(root, schema, v, where, problems, depth)
  for _, inner in ipairs(schema.allOf or {}) do check(root, inner, v, where, problems, depth) end
  if schema.anyOf and passing(root, schema.anyOf, v, depth) == 0 then say(problems, where, 'it fits none of anyOf') end
  if schema.oneOf then
    local count = passing(root, schema.oneOf, v, depth)
    if count ~= 1 then say(problems, where, 'it must fit exactly one of oneOf, it fits ' .. count) end
  end
end

function check(root, schema, v, where, problems, depth)
  if schema == true then return end
  if schema == false then return say(problems, where, 'nothing is allowed here') end
  if depth > 100 then return say(problems, where, 'it is nested too deeply') end
  depth = depth + 1
  if schema['$ref'] then check(root, M.resolve(root, schema['$ref']), v, where, problems, depth) end
  if schema.type ~= nil then check_type(schema, v, where, problems) end
  if schema.const ~= nil and not equal(schema.const, v) then say(problems, where, shown(schema.const) .. ' expected') end
  if schema.enum then
    local found = false
    for _, one in ipairs(schema.enum) do found = found or equal(one, v) end
    if not found then say(problems, where, shown(v) .. ' is not one of ' .. shown(schema.enum)) end
  end
  local k = kind(v)
  if k == 'object' or k == 'empty' and not means_list(schema) then
    check_object(root, schema, v, where, problems, depth)
  end
  if k == 'array' or k == 'empty' and means_list(schema) then
    check_array(root, schema, v, where, problems, depth)
  end
  if k == 'string' or k == 'number' then check_scalar(schema, v, where, problems) end
  check_combined(root, schema, v, where, problems, depth)
end

--- What is wrong with a value: a list of texts, empty where it is right.
function M.check(compiled, value)
  local problems = {}
  check(compiled.root, compiled.root, value, '', problems, 0)
  return problems
end

return M
