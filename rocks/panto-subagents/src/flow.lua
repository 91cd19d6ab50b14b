-- Running a workflow graph: independent steps at once, a failed one skips what needs it, finished ones are kept.
local panto = require('panto')
local facts = require('panto-subagents.facts')
local graphs = require('panto-subagents.graph')
local operations = require('panto-subagents.operation')
local runs = require('panto-subagents.runs')
local schemas = require('panto-subagents.schema')
local text = require('panto-subagents.text')
local worker = require('panto-subagents.worker')
local workflows = require('panto-subagents.workflows')
local json = panto.json

local M = {}

-- ---------------------------------------------------------------- templates

local function as_text(v)
  if v == nil or v == json.null then return '' end
  if type(v) == 'table' then return json.encode(v) end
  return tostring(v)
end

local function lookup(scope, ref)
  local at = scope
  for part in ref:gmatch('[^.]+') do
    if type(at) ~= 'table' or at == json.null then return nil end
    local number = math.tointeger(tonumber(part))
    if at[part] ~= nil then at = at[part] elseif number then at = at[number + 1] else return nil end
  end
  return at
end

local function render(source, scope)
  return (source:gsub('{{%s*(.-)%s*}}', function(ref) return as_text(lookup(scope, ref)) end))
end

-- A value: what a text that is one reference names, else the text.
local function evaluate(source, scope)
  local ref = source:match('^%s*{{%s*([^{}]-)%s*}}%s*$')
  if ref then return lookup(scope, ref) end
  return render(source, scope)
end

local FALSE = { [''] = true, ['false'] = true, no = true, ['0'] = true, null = true, ['[]'] = true, ['{}'] = true }

local function holds(condition, scope)
  local left, operator, right = condition:match('^(.-)%s*([=!]=)%s*(.-)$')
  if not left then return not FALSE[render(condition, scope):match('^%s*(.-)%s*$'):lower()] end
  local function side(s) return render(s:match('^%s*["\']?(.-)["\']?%s*$'), scope) end
  return (side(left) == side(right)) == (operator == '==')
end

-- The items of for_each: a list as it is, JSON text, or the lines of a text.
local function items_of(source, scope)
  local v = source
  if type(source) == 'string' then v = evaluate(source, scope) end
  if type(v) == 'string' then
    if v:find('^%s*%[') then
      local ok, list = pcall(json.decode, v)
      if ok then return list end
    end
    local lines = {}
    for line in v:gmatch('[^\n]+') do
      line = line:match('^%s*[-*]?%s*(.-)%s*$')
      if line ~= '' then lines[#lines + 1] = line end
    end
    return lines
  end
  if type(v) ~= 'table' then error({ kind = 'usage', message = 'for_each gave no list' }, 0) end
  return v
end

-- ---------------------------------------------------------------- one answer

local function json_in(answer)
  local ok, value = pcall(json.decode, answer)
  if ok then return true, value end
  local last
  for block in answer:gmatch('```%w*%s*\n(.-)\n%s*```') do last = block end
  if last then
    ok, value = pcall(json.decode, last)
    if ok then return true, value end
  end
  return false, 'it is not JSON'
end

local function failed(child)
  local r = child.result
  error({ kind = r.error and r.error.kind or r.status, message = r.error and r.error.message or r.status, child = child.id }, 0)
end

local function plan(op, step, prompt, key, name, session)
  return op:plan({ profile = step.profile, prompt = prompt, session_id = session, model = step.model,
    reasoning = step.reasoning, budget = require('panto-subagents.profiles').budget(step.budget), name = name }, key)
end

-- An agent with tools whose last message must be JSON that fits: it is told what is wrong, at most twice.
local function with_schema(op, step, prompt, key, name)
  local compiled = schemas.compile(step.schema)
  local child = plan(op, step, prompt .. '\n\nYour last message must be one JSON value, and nothing else, that fits this JSON'
    .. ' Schema:\n' .. json.encode(step.schema), key, name)
  for again = 1, worker.RETRIES + 1 do
    if child:run().status ~= 'completed' then failed(child) end
    local ok, value = json_in(child.result.text)
    local problems = ok and schemas.check(compiled, value) or { value }
    if #problems == 0 then return { text = child.result.text, data = value } end
    if again > worker.RETRIES then
      error({ kind = 'invalid_output', message = 'the answer does not fit the schema: ' .. problems[1], child = child.id }, 0)
    end
    op.card:finish(child.row, 'failed', 'does not fit: ' .. problems[1])
    local more = { table.unpack(key) }
    more[#more + 1] = 'again ' .. again
    child = plan(op, step, 'That does not fit the schema:\n- ' .. table.concat(problems, '\n- ')
      .. '\nAnswer again with the JSON value only.', more, op:name(name), child.id)
  end
end

local function once(op, step, prompt, key, name, scope)
  if step.diff then return { text = require('panto-subagents.change').read(op.ctx.cwd, render(step.diff, scope)) } end
  if step.worker then
    local value = worker.run(op, { prompt = prompt, schema = step.schema, model = step.model, reasoning = step.reasoning,
      name = name, budget = require('panto-subagents.profiles').budget(step.budget) }, key)
    return { text = as_text(value), data = value }
  end
  if step.schema ~= nil then return with_schema(op, step, prompt, key, name) end
  local child = plan(op, step, prompt, key, name)
  if child:run().status ~= 'completed' then failed(child) end
  return { text = child.result.text }
end

local function tried(op, step, scope, item)
  local prompt, name, problem = render(step.prompt or '', scope), step.id .. (item > 0 and ' ' .. item or ''), nil
  for attempt = 0, step.retries or 0 do
    local ok, result = pcall(once, op, step, prompt, { step.id, item, attempt }, op:name(name), scope)
    if ok then return result end
    problem = result
    if text.kind(problem) == 'cancelled' or op:cancelled() then break end
  end
  error(problem, 0)
end

-- ---------------------------------------------------------------- steps

local function within(scope, item, index)
  return setmetatable({ item = item, index = index }, { __index = scope })
end

local function each_item(op, step, scope, list)
  local results, problems, at, tasks = {}, {}, 0, {}
  for i = 1, math.max(1, math.min(step.limit or #list, #list)) do
    tasks[i] = panto.spawn(function()
      while at < #list do
        at = at + 1
        local mine = at
        local ok, result = pcall(tried, op, step, within(scope, list[mine], mine), mine)
        if ok then
          results[mine] = result
        else
          problems[mine] = text.problem(result)
          if text.kind(result) == 'cancelled' then error(result, 0) end
        end
      end
    end)
  end
  local broken
  for _, task in ipairs(tasks) do
    local ok, e = pcall(task.await, task)
    if not ok then broken = e end
  end
  if broken then error(broken, 0) end
  local texts, items, failures = {}, json.array {}, 0
  for i, item in ipairs(list) do
    local r = results[i]
    failures = failures + (r and 0 or 1)
    local said = r and r.text or '(failed: ' .. problems[i] .. ')'
    texts[i] = '## ' .. text.line(as_text(item), 200) .. '\n' .. said
    items[i] = { item = item, text = said, data = r and r.data, failed = not r or nil }
  end
  if #list > 0 and failures == #list then
    error({ kind = 'failed', message = 'all ' .. #list .. ' items failed: ' .. problems[1] }, 0)
  end
  return { text = table.concat(texts, '\n\n'), items = items, data = items, failures = failures > 0 and failures or nil }
end

-- The step's state: { status = completed | failed | skipped | cancelled, text, data?, items?, error?, because? }.
local function run_step(op, step, states, scope)
  for _, id in ipairs(step.needs) do
    local need = states[id].status
    if need == 'failed' or need == 'cancelled' or states[id].because then
      return { status = 'skipped', text = '', because = states[id].because or id }
    end
  end
  if step.when and not holds(step.when, scope) then return { status = 'skipped', text = '' } end
  local ok, result = pcall(function()
    if step.for_each == nil then return tried(op, step, scope, 0) end
    return each_item(op, step, scope, items_of(step.for_each, scope))
  end)
  if ok then
    result.status = 'completed'
    return result
  end
  if text.kind(result) == 'cancelled' or op:cancelled() then return { status = 'cancelled', text = '' } end
  local child = type(result) == 'table' and result.child or nil
  return { status = 'failed', text = '', error = text.problem(result), child = child }
end

local function inputs_of(graph, given)
  local out = {}
  for name in pairs(given) do
    if not graph.inputs[name] then
      error({ kind = 'usage', message = 'the workflow ' .. graph.name .. ' has no input ' .. tostring(name) .. '; it has: '
        .. table.concat(text.keys(graph.inputs), ', ') }, 0)
    end
  end
  for name, input in pairs(graph.inputs) do
    out[name] = given[name]
    if out[name] == nil or out[name] == json.null then out[name] = input.default end
    if out[name] == nil then
      if input.required then
        error({ kind = 'usage', message = 'the input ' .. name .. ' is missing: ' .. (input.description or '') }, 0)
      end
      out[name] = ''
    end
  end
  return out
end

-- All steps as tasks, each waiting for those it needs.
local function run_all(op, graph, inputs, done)
  local states, tasks = {}, {}
  local scope = { inputs = inputs, steps = states }
  local functions, at = {}, {}
  for i, step in ipairs(graph.order) do
    at[step.id] = i
    functions[i] = function()
      for _, id in ipairs(step.needs) do tasks[at[id]]:await() end
      local known = done:get(step.id)
      if known and op.again > 0 then op.card:finish(op.card:add(step.id), 'done', 'finished before') end
      states[step.id] = known or run_step(op, step, states, scope)
      local status = states[step.id].status
      if not known and (status == 'completed' or status == 'skipped' and not states[step.id].because) then
        done:put(step.id, states[step.id])
      end
    end
  end
  if not op:together(functions, tasks) then op:conclude() end
  for _, step in ipairs(graph.steps) do
    states[step.id] = states[step.id] or { status = 'cancelled', text = '' }
  end
  return states, scope
end

local function steps_report(graph, states)
  local rows, worst = json.array {}, 'completed'
  for i, step in ipairs(graph.steps) do
    local s = states[step.id]
    rows[i] = { id = step.id, status = s.status, error = s.error, because = s.because and 'it needs ' .. s.because,
      failures = s.failures, agent = s.child }
    if s.status == 'cancelled' then worst = 'cancelled' end
    if s.status == 'failed' and worst ~= 'cancelled' then worst = 'failed' end
  end
  return rows, worst
end

local function output(graph, states, scope)
  if graph.output then return render(graph.output, scope) end
  local needed, parts = {}, {}
  for _, step in ipairs(graph.steps) do
    for _, id in ipairs(step.needs) do needed[id] = true end
  end
  for _, step in ipairs(graph.steps) do
    if not needed[step.id] and states[step.id].text ~= '' then parts[#parts + 1] = states[step.id].text end
  end
  return table.concat(parts, '\n\n')
end

-- What is there when the last step has nothing to say: the texts of those that finished.
local function salvage(graph, states)
  local parts = {}
  for _, step in ipairs(graph.steps) do
    if states[step.id].status == 'completed' then parts[#parts + 1] = '# ' .. step.id .. '\n' .. states[step.id].text end
  end
  return table.concat(parts, '\n\n')
end

--- await: a workflow from start to end: { status, text, steps }.
function M.run(op, graph, given)
  local inputs = inputs_of(graph, given)
  local done = facts.of(op.effect)
  runs.begin(op, graph.name, given)
  local ok, states, scope = pcall(run_all, op, graph, inputs, done)
  if not ok then
    runs.finish(op, 'failed')
    error(states, 0)
  end
  local rows, status = steps_report(graph, states)
  runs.finish(op, status)
  local said = status == 'completed' and output(graph, states, scope) or salvage(graph, states)
  return { status = status, text = text.cut(said, 100000, '\n… (cut)'), steps = rows }
end

--- now: the handler of subagents.workflow.
function M.handler(house)
  return function(args, ctx)
    local graph = workflows.get(house, args.name)
    local op = operations.new(house, ctx)
    local given = type(args.inputs) == 'table' and args.inputs ~= json.null and args.inputs or {}
    local report = op:during(M.run, op, graph, given)
    local out = op:reply(report)
    out.is_error = report.status == 'failed' or nil
    return out
  end
end

return M
