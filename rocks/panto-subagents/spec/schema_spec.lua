-- The supported part of JSON Schema 2020-12, case by case: { keyword, schema, value, does it fit? }.
local t = ...
local host = t.host()
local schemas = host.require('panto-subagents.schema')
local it, json = t.it, t.json

local CASES = {
  { 'type', '{"type":"integer"}', { ['1'] = true, ['1.0'] = true, ['1.5'] = false, ['"1"'] = false, ['null'] = false, ['true'] = false } },
  { 'type', '{"type":"number"}', { ['1'] = true, ['-2.5'] = true, ['"1"'] = false, ['[]'] = false } },
  { 'type', '{"type":"string"}', { ['""'] = true, ['"1"'] = true, ['1'] = false, ['{}'] = false } },
  { 'type', '{"type":"object"}', { ['{}'] = true, ['{"a":1}'] = true, ['[]'] = false, ['null'] = false } },
  { 'type', '{"type":"array"}', { ['[]'] = true, ['[1]'] = true, ['{}'] = false } },
  { 'type', '{"type":"boolean"}', { ['true'] = true, ['false'] = true, ['0'] = false, ['null'] = false } },
  { 'type', '{"type":"null"}', { ['null'] = true, ['0'] = false, ['""'] = false, ['false'] = false } },
  { 'type', '{"type":["string","null"]}', { ['null'] = true, ['"x"'] = true, ['1'] = false } },
  { 'properties', '{"properties":{"a":{"type":"integer"},"b":{"type":"string"}}}',
    { ['{"a":1,"b":"x"}'] = true, ['{"a":1}'] = true, ['{"c":[]}'] = true, ['{"a":"x"}'] = false, ['[]'] = true, ['12'] = true } },
  { 'properties', '{"properties":{"a":true,"b":false}}', { ['{"a":1}'] = true, ['{"b":1}'] = false, ['{}'] = true } },
  { 'required', '{"required":["a"]}', { ['{"a":null}'] = true, ['{"b":1}'] = false, ['{}'] = false, ['[]'] = true, ['"x"'] = true } },
  { 'additionalProperties', '{"properties":{"a":{}},"additionalProperties":false}', { ['{"a":1}'] = true, ['{"b":1}'] = false, ['[1]'] = true } },
  { 'additionalProperties', '{"properties":{"a":{}},"additionalProperties":{"type":"boolean"}}',
    { ['{"a":1,"b":true}'] = true, ['{"b":12}'] = false } },
  { 'enum', '{"enum":[1,"a",null,[1],{"k":true}]}', { ['1'] = true, ['"a"'] = true, ['null'] = true, ['[1]'] = true,
    ['{"k":true}'] = true, ['2'] = false, ['[2]'] = false, ['{"k":false}'] = false, ['1.0'] = true } },
  { 'enum', '{"enum":[false]}', { ['false'] = true, ['0'] = false } },
  { 'const', '{"const":{"a":[1,{"b":null}]}}', { ['{"a":[1,{"b":null}]}'] = true, ['{"a":[1,{}]}'] = false, ['[]'] = false } },
  { 'const', '{"const":null}', { ['null'] = true, ['0'] = false, ['{}'] = false } },
  { 'items', '{"items":{"type":"integer"}}', { ['[1,2]'] = true, ['[1,"x"]'] = false, ['[]'] = true, ['{"a":"x"}'] = true } },
  { 'items', '{"items":false}', { ['[]'] = true, ['[1]'] = false } },
  { 'items', '{"items":{"items":{"type":"string"}}}', { ['[["a"],[]]'] = true, ['[["a",1]]'] = false } },
  { 'minItems', '{"minItems":1}', { ['[1]'] = true, ['[]'] = false, ['""'] = true, ['{}'] = true } },
  { 'maxItems', '{"maxItems":1}', { ['[1]'] = true, ['[1,2]'] = false, ['"xx"'] = true } },
  { 'minLength', '{"minLength":2}', { ['"ab"'] = true, ['"a"'] = false, ['"é"'] = false, ['1'] = true } },
  { 'maxLength', '{"maxLength":2}', { ['"éé"'] = true, ['"abc"'] = false, ['100'] = true } },
  { 'minimum', '{"minimum":1.1}', { ['1.1'] = true, ['2'] = true, ['1'] = false, ['"x"'] = true } },
  { 'maximum', '{"maximum":-2}', { ['-2'] = true, ['-1'] = false, ['-3.5'] = true } },
  { 'allOf', '{"allOf":[{"type":"integer"},{"minimum":3}]}', { ['3'] = true, ['2'] = false, ['3.5'] = false } },
  { 'anyOf', '{"anyOf":[{"type":"integer"},{"minimum":2}]}', { ['1'] = true, ['2.5'] = true, ['1.5'] = false } },
  { 'oneOf', '{"oneOf":[{"type":"integer"},{"minimum":2}]}', { ['1'] = true, ['2.5'] = true, ['3'] = false, ['1.5'] = false } },
  { 'oneOf', '{"oneOf":[true,true]}', { ['1'] = false } },
  { 'allOf', '{"allOf":[true,false]}', { ['1'] = false } },
  { '$ref', '{"$defs":{"a":{"type":"integer"}},"properties":{"x":{"$ref":"#/$defs/a"}}}', { ['{"x":1}'] = true, ['{"x":"y"}'] = false } },
  { '$ref', '{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}},"additionalProperties":false}',
    { ['{"kids":[{"kids":[]}]}'] = true, ['{"kids":[{"bar":[]}]}'] = false } },
  { '$ref', '{"$defs":{"a/b":{"type":"integer"},"c~d":{"type":"string"}},"items":{"anyOf":[{"$ref":"#/$defs/a~1b"},{"$ref":"#/$defs/c~0d"}]}}',
    { ['[1,"x"]'] = true, ['[true]'] = false } },
  { '$ref', '{"allOf":[{"type":"integer"},{"maximum":4}],"items":{"$ref":"#/allOf/1"}}', { ['3'] = true, ['5'] = false } },
  { 'boolean schema', 'true', { ['1'] = true, ['null'] = true } },
  { 'boolean schema', 'false', { ['1'] = false, ['{}'] = false } },
  { 'annotations', '{"title":"x","description":"y","default":1,"examples":[2]}', { ['"any"'] = true } },
}

for number, case in ipairs(CASES) do
  it(number .. ' ' .. case[1] .. ' ' .. case[2], function()
    local compiled = schemas.compile(json.decode(case[2]))
    for value, fits in pairs(case[3]) do
      local problems = schemas.check(compiled, json.decode(value))
      if (#problems == 0) ~= fits then error(value .. (fits and ' should fit: ' .. problems[1] or ' should not fit'), 0) end
    end
  end)
end

it('takes plain Lua tables as schemas and values', function()
  local compiled = schemas.compile { type = 'object', required = { 'list' }, properties = { list = { type = 'array', items = { enum = { 'a', 'b' } } } } }
  t.is(schemas.check(compiled, { list = {} }), {})
  t.is(#schemas.check(compiled, { list = { 'a', 'c' } }), 1)
  t.has(schemas.check(compiled, { list = { 'a', 'c' } })[1], '/list/1: "c" is not one of')
end)

it('names every problem with its place', function()
  local compiled = schemas.compile(json.decode('{"type":"object","required":["a","b"],"properties":{"c":{"type":"integer"}}}'))
  local problems = schemas.check(compiled, json.decode('{"c":"x"}'))
  t.is(#problems, 3)
  t.has(table.concat(problems, '\n'), '/c: integer expected, this is "x"')
end)

it('refuses what it does not support when a schema is defined', function()
  for schema, told in pairs {
    ['{"pattern":"x"}'] = 'pattern is not supported', ['{"properties":{"a":{"format":"date"}}}'] = '#/properties/a: the keyword format',
    ['{"type":"text"}'] = 'unknown type text', ['{"required":"a"}'] = 'a list of names expected', ['{"minItems":-1}'] = 'whole number',
    ['{"anyOf":[]}'] = 'a list of schemas', ['{"$ref":"http://x/y"}'] = 'inside the document', ['{"$ref":"#/$defs/no"}'] = 'leads nowhere',
    ['{"items":[{}]}'] = 'an object or a boolean expected', ['{"not":{}}'] = 'not is not supported', ['[]'] = 'an object or a boolean',
    ['{"$defs":{"a":{"if":{}}}}'] = 'the keyword if', ['{"minimum":"1"}'] = 'a number expected', ['{"enum":{}}'] = 'a list of values',
  } do
    t.fails(function() schemas.compile(json.decode(schema)) end, told)
  end
end)

it('does not go round in circles', function()
  local compiled = schemas.compile(json.decode('{"$defs":{"a":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}'))
  t.has(schemas.check(compiled, 1)[1], 'nested too deeply')
end)
