local t = ...
local yaml = t.host().require('panto-subagents.yaml')
local it, is, has = t.it, t.is, t.has

local function read(text)
  local v, problem, line = yaml.parse(text)
  return v or (line .. ': ' .. problem)
end

it('reads scalars of every style', function()
  is(read("a: plain text\nb: 'it''s'\nc: \"tab\\tA\\x41\\u00e9\"\nd: 12\ne: -0.5\nf: true\ng: No\nh: ~\ni: 1e3"),
    { a = 'plain text', b = "it's", c = 'tab\tAAé', d = 12, e = -0.5, f = true, g = false, i = 1000.0 })
end)

it('reads lists and mappings inside each other', function()
  is(read('tools:\n  - read\n  - grep # why\nflow: [a, "b, c", 3]\nbudget: { cost: 0.5, tokens: 10 }\ndeep:\n  er:\n    est: x'),
    { tools = { 'read', 'grep' }, flow = { 'a', 'b, c', 3 }, budget = { cost = 0.5, tokens = 10 }, deep = { er = { est = 'x' } } })
  is(read('list:\n- a\n- b: 1\n  c: 2\n'), { list = { 'a', { b = 1, c = 2 } } })
end)

it('reads text in blocks, and text that goes on in deeper lines', function()
  is(read('a: |\n  one\n   two\n\n  three\nb: >-\n  one\n  two\nc: one\n  two\n'),
    { a = 'one\n two\n\nthree\n', b = 'one two', c = 'one two' })
end)

it('keeps colons and hashes inside words', function()
  is(read('a: http://x.y/z#w\nb: Bash(git log:*), Read\nc: a:b'), { a = 'http://x.y/z#w', b = 'Bash(git log:*), Read', c = 'a:b' })
end)

it('names what it cannot read and the line', function()
  is(read('a: 1\nb: [1, 2'), "2: ',' or ']' expected")
  is(read('a: 1\n   b: 2'), '2: this line is indented more than what it follows')
  is(read('a: 1\na: 2'), '2: a is there twice')
  is(read('a: *x'), '1: anchors, aliases and tags are not read here')
  is(read('no colon here'), '1: a name and a colon expected')
  is(read('\ta: 1'), '1: a tab cannot indent')
end)

it('takes front matter and gives the body whatever is wrong with it', function()
  local fields, body, problem = yaml.front_matter('---\r\nname: x\r\n---\r\nBody\r\n')
  is({ fields, body, problem }, { { name = 'x' }, 'Body\n' })
  fields, body, problem = yaml.front_matter('---\na: 1\nname: [x\n---\nBody')
  is({ fields, body }, { {}, 'Body' })
  has(problem, 'line 3')
  is({ yaml.front_matter('no front matter') }, { {}, 'no front matter' })
  has(select(3, yaml.front_matter('---\nname: x\nBody')), 'not closed')
end)

it('comes to an end with any text', function()
  local signs = { '-', ':', ' ', '\n', '[', ']', '{', '}', '"', "'", '#', 'a', '1', '|', '>', ',', '---\n' }
  local seed = 7
  for _ = 1, 300 do
    local out = {}
    for i = 1, 24 do
      seed = (seed * 1103515245 + 12345) & 0x7fffffff
      out[i] = signs[seed // 65536 % #signs + 1]
    end
    yaml.front_matter(table.concat(out))
    yaml.parse(table.concat(out))
  end
end)
