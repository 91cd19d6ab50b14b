local t = ...
local it, is, has = t.it, t.is, t.has

local function parse(text)
  return t.host().require('panto-subagents.workflows').parse('/w.toml', text)
end

local function step(id, more) return '[[step]]\nid = "' .. id .. '"\nprofile = "p"\n' .. more .. '\n' end

it('orders steps by what they need, said or referred to', function()
  local graph = parse(step('c', 'prompt = "{{steps.b.text}}"') .. step('b', 'prompt = "x"\nneeds = ["a"]') .. step('a', 'prompt = "y"'))
  local order = {}
  for i, s in ipairs(graph.order) do order[i] = s.id end
  is(order, { 'a', 'b', 'c' })
  is(graph.by_id.c.needs, { 'b' })
end)

it('refuses with file and line what cannot run', function()
  local ok = step('a', 'prompt = "x"')
  for text, told in pairs {
    [ok .. step('a', 'prompt = "x"')] = '/w.toml:6: the step a is there twice',
    [ok .. step('b', 'prompt = "{{steps.x.text}}"')] = '/w.toml:8: {{steps.x.text}}: there is no step x',
    [ok .. step('b', 'prompt = "{{inputs.x}}"')] = '/w.toml:8: there is no input x',
    [ok .. step('b', 'prompt = "{{foo}}"')] = '/w.toml:8: {{foo}}: inputs.NAME, steps.ID.text expected',
    [ok .. step('b', 'prompt = "{{item}}"')] = '/w.toml:8: {{item}}',
    [ok .. step('b', 'prompt = "x"\nneeds = ["b"]')] = '/w.toml:9: step b needs itself',
    [step('a', 'prompt = "x"\nneeds = ["b"]') .. step('b', 'prompt = "x"\nneeds = ["a"]')] = 'in a circle: a > b > a',
    [ok .. step('b', 'promt = "x"')] = '/w.toml:8: step: unknown key promt',
    [ok .. step('b', 'prompt = 1')] = '/w.toml:8: step: prompt: string expected',
    [ok .. step('b', 'prompt = "x"\nschema = { format = "x" }')] = '/w.toml:9: step b: schema #: the keyword format',
    [ok .. step('b', 'prompt = "{{steps.a.words}}"')] = 'a step has text, data, items, status and error',
    [ok .. '[[step]]\nid = "b"\nworker = true\nprompt = "x"'] = '/w.toml:5: step b: a worker needs a schema',
    ['name = "x"'] = '/w.toml:1: a workflow without [[step]]',
    [ok .. 'x = ='] = '/w.toml:5: a value expected',
  } do
    local graph, problem = parse(text)
    is(graph, nil)
    has(problem, told)
  end
end)

it('allows item and index where there is a list', function()
  is(parse(step('a', 'prompt = "{{item.name}} {{index}}"\nfor_each = ["x"]')).steps[1].id, 'a')
end)

it('ships workflows that can be read', function()
  for _, name in ipairs { 'review', 'map' } do
    local graph, problem = parse(t.read('workflows/' .. name .. '.toml'))
    is(problem, nil)
    is(graph.name, name)
  end
end)
