-- panto-subagents: other agents and workflows for the agent you talk to. Policy only: what runs them is require('panto').
local panto = require('panto')
local ext = panto.ext
local _, path = ...
local here = path and path:match('^(.*)/[^/]*$') or '.'

local background = require('panto-subagents.background')
local gate = require('panto-subagents.gate')
local profiles = require('panto-subagents.profiles')
local run = require('panto-subagents.run')
local settings = require('panto-subagents.settings')
local workflows = require('panto-subagents.workflows')

local function warn(text) ext.ui.notify { text = 'panto-subagents: ' .. text, level = 'attention' } end

-- What most sessions never use is loaded when it is used.
local function later(module, fn, house, name)
  return function(...) return require(module)[fn](house, name)(...) end
end

local house = { here = here, live = {}, running = {} }
local problems
house.settings, problems = settings.read(ext.config())
house.gate = gate.new(house.settings.max_running)
for _, problem in ipairs(problems) do warn('[extension.panto-subagents] ' .. problem) end
house.profiles, problems = profiles.load(here)
for _, problem in ipairs(problems) do warn(problem) end
house.workflows, problems = workflows.find(here)
for _, problem in ipairs(problems) do warn(problem) end

ext.register_tool {
  name = 'subagents.run', description = run.description(profiles.summary(house.profiles, 3000)), schema = run.SCHEMA,
  replay = true, approval = 'read', handler = run.handler(house),
}

ext.register_tool {
  name = 'subagents.models', mutates = false, description = 'Models for tasks, with prices.',
  schema = { type = 'object', properties = { query = { type = 'string' }, limit = { type = 'integer' } } },
  handler = function(args) return { models = require('panto-subagents.models').list(args.query, args.limit) } end,
}

ext.register_tool {
  name = 'subagents.lua', replay = true, approval = 'command',
  description = 'Runs a Lua script over agents; what it returns is the result. wf.run(profile, prompt, {session_id, '
    .. 'model}?) -> text, id; wf.all{fn, …}, wf.map(list, fn, {limit}?) -> list; wf.worker{prompt=, schema=} -> value; '
    .. 'wf.step(name, fn): once, even if continued; wf.log(…); args; json. Failures raise.',
  schema = { type = 'object', properties = { source = { type = 'string' }, file = { type = 'string' },
    args = { description = 'any value' } } },
  handler = later('panto-subagents.script', 'handler', house),
}

ext.register_tool {
  name = 'subagents.workflow', replay = true, approval = 'read',
  description = 'Runs a workflow:\n' .. workflows.summary(house.workflows, 2000),
  schema = { type = 'object', required = { 'name' },
    properties = { name = { type = 'string' }, inputs = { type = 'object' } } },
  handler = later('panto-subagents.flow', 'handler', house),
}

for name, workflow in pairs(house.workflows) do
  ext.register_command {
    name = 'workflow:' .. name, description = workflow.description, args = workflow.usage,
    handler = later('panto-subagents.by_hand', 'command', house, name),
  }
end

ext.register_command {
  name = 'agents.resume', description = 'goes on with an agent of this session', args = 'ID TEXT',
  handler = background.resume(house),
}

ext.register_command {
  name = 'workflows.resume', description = 'goes on with a workflow that was stopped', args = '[NAME]',
  handler = later('panto-subagents.by_hand', 'resume', house),
}

ext.on('session_start', function() background.name_lost(house) end)
