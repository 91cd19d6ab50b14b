-- Workflow graphs as data: read from TOML and checked whole, with file and line, before anything runs.
local toml = require('panto-subagents.toml')
local text = require('panto-subagents.text')

local M = {}

local TOP = { name = 'string', description = 'string', inputs = 'table', step = 'table', output = 'string' }
local STEP = { id = 'string', profile = 'string', worker = 'boolean', diff = 'string', prompt = 'string', needs = 'table',
  when = 'string',
  for_each = 'any', schema = 'any', retries = 'number', model = 'string', reasoning = 'string', limit = 'number',
  budget = 'any' }
local INPUT = { description = 'string', default = 'any', required = 'boolean' }

local function fail(line, message) error({ line = line, message = message }, 0) end

local function checked(t, known, lines, what)
  local own = lines[t] or {}
  for _, name in ipairs(text.keys(t)) do
    local line = own[name] or own[1] or 1
    if not known[name] then
      fail(line, what .. ': unknown key ' .. name .. ' (known: ' .. table.concat(text.keys(known), ', ') .. ')')
    end
    if known[name] ~= 'any' and type(t[name]) ~= known[name] then
      fail(line, what .. ': ' .. name .. ': ' .. known[name] .. ' expected')
    end
  end
end

--- now: every reference {{…}} of a text, in order.
function M.references(source)
  local out = {}
  if type(source) == 'string' then
    for ref in source:gmatch('{{%s*(.-)%s*}}') do out[#out + 1] = ref end
  elseif type(source) == 'table' then
    for _, item in ipairs(source) do
      for _, ref in ipairs(M.references(item)) do out[#out + 1] = ref end
    end
  end
  return out
end

local FIELDS = { text = true, data = true, status = true, items = true, error = true }

local function check_reference(graph, step, ref, line)
  local head, rest = ref:match('^([%w_-]+)%.?(.*)$')
  if (head == 'item' or head == 'index') and step and step.for_each ~= nil then return end
  if head == 'inputs' then
    local name = rest:match('^[%w_-]+$')
    if name and graph.inputs[name] then return end
    fail(line, 'there is no input ' .. (rest == '' and '?' or rest))
  end
  if head == 'steps' then
    local id, field = rest:match('^([%w_-]+)%.([%w_-]+)')
    if not id then fail(line, '{{' .. ref .. '}}: steps.ID.text expected') end
    if not graph.by_id[id] then fail(line, '{{' .. ref .. '}}: there is no step ' .. id) end
    if not FIELDS[field] then fail(line, '{{' .. ref .. '}}: a step has text, data, items, status and error') end
    return id
  end
  fail(line, '{{' .. ref .. '}}: inputs.NAME, steps.ID.text' .. (step and step.for_each ~= nil and ', item or index' or '')
    .. ' expected')
end

local function read_step(graph, step, lines)
  local own = lines[step] or {}
  local line = own[1] or 1
  checked(step, STEP, lines, 'step')
  local id = step.id
  if not id then fail(line, 'a step without id') end
  if not id:find('^[%w_-]+$') then fail(own.id or line, 'id: letters, digits, _ and - only: ' .. id) end
  if graph.by_id[id] then fail(own.id or line, 'the step ' .. id .. ' is there twice') end
  local kinds = (step.profile and 1 or 0) + (step.worker and 1 or 0) + (step.diff and 1 or 0)
  if kinds ~= 1 then fail(line, 'step ' .. id .. ': either profile, worker = true or diff') end
  if not step.diff and not (step.prompt and step.prompt:find('%S')) then fail(line, 'step ' .. id .. ': prompt is missing') end
  if step.retries and (step.retries < 0 or step.retries > 5) then fail(own.retries or line, 'retries: 0 to 5') end
  if step.worker and step.schema == nil then fail(line, 'step ' .. id .. ': a worker needs a schema') end
  graph.by_id[id] = step
  graph.steps[#graph.steps + 1] = step
end

-- needs, and what the templates refer to.
local function link(graph, step, lines)
  local own = lines[step] or {}
  local line, seen, needs = own[1] or 1, {}, {}
  local function add(id, at)
    if id == step.id then fail(at, 'step ' .. id .. ' needs itself') end
    if not seen[id] then
      seen[id] = true
      needs[#needs + 1] = id
    end
  end
  for _, id in ipairs(step.needs or {}) do
    if type(id) ~= 'string' or not graph.by_id[id] then
      fail(own.needs or line, 'step ' .. step.id .. ' needs ' .. tostring(id) .. ', which is not there')
    end
    add(id, own.needs or line)
  end
  for _, name in ipairs { 'prompt', 'when', 'for_each', 'diff' } do
    for _, ref in ipairs(M.references(step[name])) do
      local id = check_reference(graph, name ~= 'for_each' and step or nil, ref, own[name] or line)
      if id then add(id, own[name] or line) end
    end
  end
  step.needs = needs
end

-- Steps so that each comes after what it needs. A cycle is named with the line of one of its steps.
local function in_order(graph, lines)
  local out, state = {}, {}
  local function visit(step, path)
    if state[step] == 'done' then return end
    if state[step] == 'open' then
      fail((lines[step] or {})[1] or 1, 'the steps need each other in a circle: ' .. path .. ' > ' .. step.id)
    end
    state[step] = 'open'
    for _, id in ipairs(step.needs) do visit(graph.by_id[id], path == '' and step.id or path .. ' > ' .. step.id) end
    state[step] = 'done'
    out[#out + 1] = step
  end
  for _, step in ipairs(graph.steps) do visit(step, '') end
  return out
end

local function build(root, lines, compile)
  checked(root, TOP, lines, 'workflow')
  local graph = { description = root.description or '', inputs = root.inputs or {}, steps = {}, by_id = {},
    output = root.output, name = root.name }
  for name, input in pairs(graph.inputs) do
    if type(input) ~= 'table' then
      fail((lines[graph.inputs] or {})[name] or 1, 'inputs.' .. name .. ': a table expected')
    end
    checked(input, INPUT, lines, 'inputs.' .. name)
  end
  if not root.step or #root.step == 0 then fail(1, 'a workflow without [[step]]') end
  for _, step in ipairs(root.step) do read_step(graph, step, lines) end
  for _, step in ipairs(graph.steps) do
    link(graph, step, lines)
    if step.schema ~= nil then
      local ok, problem = pcall(compile, step)
      if not ok then fail((lines[step] or {}).schema or 1, 'step ' .. step.id .. ': ' .. text.problem(problem)) end
    end
  end
  for _, ref in ipairs(M.references(root.output)) do check_reference(graph, nil, ref, (lines[root] or {}).output or 1) end
  graph.order = in_order(graph, lines)
  return graph
end

--- now: a graph from its text, or nil and "file:line: what is wrong". `compile(step)` checks a step's schema.
function M.parse(path, source, compile)
  local root, lines, line = toml.parse(source)
  if not root then return nil, path .. ':' .. line .. ': ' .. lines end
  local ok, result = pcall(build, root, lines, compile or function() end)
  if ok then return result end
  if type(result) == 'table' and result.line then return nil, path .. ':' .. result.line .. ': ' .. result.message end
  error(result, 0)
end

return M
