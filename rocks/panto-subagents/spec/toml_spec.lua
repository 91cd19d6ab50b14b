local t = ...
local toml = t.host().require('panto-subagents.toml')
local it, is, has = t.it, t.is, t.has

local function read(text)
  local v, problem, line = toml.parse(text)
  return v or (line .. ': ' .. problem)
end

it('reads values of every kind but dates', function()
  is(read('a = "x\\ty\\u00e9"\nb = \'c:\\d\'\nc = 1_000\nd = -0.5\ne = 0xff\nf = true\ng = 1e3\nh = 0o17\ni = 0b11\nj = +7'),
    { a = 'x\tyé', b = 'c:\\d', c = 1000, d = -0.5, e = 255, f = true, g = 1000.0, h = 15, i = 3, j = 7 })
  is(read('a = """\none\ntwo \\\n   three"""\nb = \'\'\'\nraw \\n\'\'\'\nc = """say ""hi"""""'),
    { a = 'one\ntwo three', b = 'raw \\n', c = 'say ""hi""' })
end)

it('reads tables, lists of tables, dotted names, inline tables and lists over lines', function()
  is(read('x.y = 1\n[a.b]\nc = [\n  1, # one\n  2,\n]\n[[s]]\nid = "1"\n[[s]]\nid = "2"\n[s.deep]\nk = { l = 1, m.n = 2 }\n'),
    { x = { y = 1 }, a = { b = { c = { 1, 2 } } }, s = { { id = '1' }, { id = '2', deep = { k = { l = 1, m = { n = 2 } } } } } })
  is(read('"a b" = 1\r\n\'c\' = 2\r\n'), { ['a b'] = 1, c = 2 })
end)

it('keeps the line of every table and name', function()
  local root, lines = toml.parse('a = 1\n\n[[s]]\nid = "x"\nq = """\n1\n2"""\nr = 3\n[[s]]\nid = "y"')
  is({ lines[root].a, lines[root.s[1]][1], lines[root.s[1]].r, lines[root.s[2]][1], lines[root.s[2]].id }, { 1, 3, 8, 9, 10 })
end)

it('refuses what is no TOML, with the line', function()
  for _, case in ipairs {
    { 'a = 1\na = 2', '2: a is there twice' }, { 'a = 1\n[a]', '2: a is there twice' }, { '[a]\n[a]', '2: a is there twice' },
    { 'a = "x', '1: a text does not end on its line' }, { 'a = "\\q"', '1: unknown escape \\q' }, { 'a =', '1: a value expected' },
    { 'a = 1 b = 2', '1: something follows a value' }, { 'a = [1 2]', "1: ',' or ']' expected" }, { 'a = {b=1,}', "1: no ','" },
    { 'a = 01', '1: not a value: 01' }, { 'a = 1979-05-27', '1: dates and times' }, { 'a = """x', '1: a text in """ does not end' },
    { '= 1', '1: a name expected' }, { 'a = {b=1}\na.c = 2', '2: a has a value already' }, { '[[a]]\n[a]', '2: a is there twice' },
    { 'a = [1]\n[[a]]', '2: a is no list of tables' }, { 'a = "\\ud800"', '1: no such character' }, { '[a', "1: ']' expected" },
  } do
    has(read(case[1]), case[2])
  end
end)

it('comes to an end with any text', function()
  local signs = { '[', ']', '=', ' ', '\n', '"', "'", '{', '}', ',', '.', '#', 'a', '1', '\\', '_', '-' }
  local seed = 11
  for _ = 1, 300 do
    local out = {}
    for i = 1, 24 do
      seed = (seed * 1103515245 + 12345) & 0x7fffffff
      out[i] = signs[seed // 65536 % #signs + 1]
    end
    toml.parse(table.concat(out))
  end
end)
