local t = ...
local it, is, has = t.it, t.is, t.has

local function names(tools)
  local out = {}
  for i, tool in ipairs(tools) do out[i] = tool.name end
  return table.concat(out, ' ')
end

local TOOLS = {}
for i, name in ipairs { 'read', 'grep', 'bash', 'edit', 'subagents.run', 'subagents.models' } do TOOLS[i] = { name = name } end

it('reads a profile, its own and those of others', function()
  local profiles = t.host().require('panto-subagents.profiles')
  local p = profiles.parse('file', '/x.md', '---\nname: docs\ndescription: >\n  Writes docs.\nmodel: inherit\nreasoning: low\ntools: Read, Grep, Bash(git log:*)\n'
    .. 'disallowedTools: [Bash]\nmax_steps: 12\nbudget: 0.5\ncolor: blue\n---\nYou write.\n')
  is({ p.name, p.model, p.reasoning, p.max_steps, p.budget, p.prompt }, { 'docs', nil, 'low', 12, { cost = 0.5 }, 'You write.' })
  is({ p.tools, p.denied }, { { 'read', 'grep', 'bash' }, { 'bash' } })
  is(profiles.parse('file', '/x.md', 'Only text').name, 'file')
  is(profiles.budget { tokens = 10, seconds = '60', cost = -1 }, { tokens = 10, seconds = 60 })
end)

it('gives a child what its parent has, without subagents unless it is named and there is room', function()
  local profiles = t.host().require('panto-subagents.profiles')
  local function declared(front, depth)
    return names(profiles.declarations((profiles.parse('x', 'x', '---\n' .. front .. '\n---\n')), TOOLS, depth or 1, 3))
  end
  is(declared 'a: 1', 'read grep bash edit')
  is(declared 'tools: [read, nothing]', 'read')
  is(declared 'tools: "*"', 'read grep bash edit')
  is(declared 'disallowed_tools: [bash, "subagents.*"]', 'read grep edit')
  is(declared 'tools: [read, subagents.run]', 'read subagents.run')
  is(declared 'tools: Read, Task', 'read subagents.run subagents.models')
  is(declared('tools: [read, subagents.run]', 3), 'read')
end)

it('finds them in order: shipped, of the person, of the project; a later one of a name wins', function()
  local host = t.host { files = {
    ['/rock/src/../agents/explore.md'] = '---\nname: explore\ndescription: shipped\n---\nA',
    ['/rock/src/../agents/worker.md'] = '---\nname: worker\n---\nA',
    ['/config/agents/explore.md'] = '---\nname: explore\ndescription: mine\n---\nB',
    ['/project/.claude/agents/other.md'] = '---\nname: other\n---\nC',
    ['/project/.panto/agents/broken.md'] = '---\nname: [\n---\nD',
    ['/project/.panto/agents/notes.txt'] = 'no',
  }, project = '/project' }
  local found, problems = host.require('panto-subagents.profiles').load('/rock/src')
  is(host.require('panto-subagents.text').keys(found), { 'broken', 'explore', 'other', 'worker' })
  is({ found.explore.description, found.explore.place, found.broken.prompt }, { 'mine', 'user', 'D' })
  is(#problems, 1)
  has(problems[1], '/project/.panto/agents/broken.md: line 2')
end)

it('reads nothing of a project that is not trusted', function()
  local host = t.host { files = { ['/project/.panto/agents/x.md'] = 'x' } }
  is(next((host.require('panto-subagents.profiles').load('/rock/src'))), nil)
end)

it('lists them within a limit', function()
  local profiles = t.host().require('panto-subagents.profiles')
  local found = {}
  for i = 1, 50 do found['agent' .. i] = { description = ('word '):rep(100) } end
  local text = profiles.summary(found, 1000)
  is(#text < 1300, true)
  has(text, 'more')
end)

it('ships profiles that can be read', function()
  local profiles = t.host().require('panto-subagents.profiles')
  for _, name in ipairs { 'explore', 'worker', 'reviewer' } do
    local p, problem = profiles.parse('file', 'x', t.read('agents/' .. name .. '.md'))
    is({ p.name, problem }, { name })
    is({ #p.description > 20, #p.prompt > 100 }, { true, true })
  end
end)
