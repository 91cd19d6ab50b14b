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
  name = 'subagents.models', mutates = false,
  description = 'Lists models that a task of subagents.run may name, with their context and prices.',
  schema = { type = 'object', additionalProperties = false,
    properties = { query = { type = 'string' }, limit = { type = 'integer', minimum = 1, maximum = 50 } } },
  handler = function(args) return { models = require('panto-subagents.models').list(args.query, args.limit) } end,
}

ext.register_tool {
  name = 'subagents.lua', replay = true, approval = 'command',
  description = 'Runs a Lua 5.4 script that directs other agents. In it: wf.run(profile, prompt, {model, reasoning, '
    .. 'session_id, budget, on_event}) -> text, id; wf.all{fn, ...} -> list of results; wf.map(list, fn, {limit}) -> list; '
    .. 'wf.worker{prompt=, schema=, model=} -> a value that fits the JSON Schema; wf.step(name, fn): a finished step is not '
    .. 'run again when the script is continued; wf.log(text); args; json; string, table, math. No io, os, require. A failed '
    .. 'agent raises an error with its id (pcall catches it). What the script returns is the result.',
  schema = { type = 'object', additionalProperties = false, properties = {
    source = { type = 'string', description = 'the script' },
    file = { type = 'string', description = 'or a file with it' },
    args = { description = 'any value; the script sees it as args' } } },
  handler = later('panto-subagents.script', 'handler', house),
}

ext.register_tool {
  name = 'subagents.workflow', replay = true, approval = 'read',
  description = 'Runs a workflow: steps by several agents, in order of their needs.\nWorkflows:\n'
    .. workflows.summary(house.workflows, 2000),
  schema = { type = 'object', required = { 'name' }, additionalProperties = false, properties = {
    name = { type = 'string' }, inputs = { type = 'object', description = 'its inputs by name' } } },
  handler = later('panto-subagents.flow', 'handler', house),
}

for name, workflow in pairs(house.workflows) do
  ext.register_command {
    name = 'workflow:' .. name, description = workflow.description, args = workflow.usage, replay = true,
    handler = later('panto-subagents.by_hand', 'command', house, name),
  }
end

ext.register_command {
  name = 'agents.resume', description = 'goes on with an agent of this session', args = 'ID TEXT', replay = true,
  handler = background.resume(house),
}

ext.register_command {
  name = 'workflows.resume', description = 'goes on with a workflow that was stopped', args = '[NAME]',
  handler = later('panto-subagents.by_hand', 'resume', house),
}

ext.on('session_start', function() background.name_lost(house) end)
