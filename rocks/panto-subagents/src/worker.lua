-- A one-shot structured worker: one model round whose only possible answer is a call with the wanted schema. The call is
-- never run; its arguments are the answer, checked here and nowhere else.
local panto = require('panto')
local schemas = require('panto-subagents.schema')
local text = require('panto-subagents.text')
local json = panto.json

local M = {}

local ANSWER = 'answer'
local SYSTEM = 'You answer by calling the tool `answer` exactly once, with arguments that fit its schema.'
  .. ' Nothing else is read.'
M.RETRIES = 2

-- Providers want an object as a tool's arguments: any other schema becomes the member `value` of one.
local function wrapped(schema)
  if type(schema) == 'table' and schema.type == 'object' then return schema, false end
  local inner = schema
  if type(schema) == 'table' then
    inner = {}
    for name, v in pairs(schema) do if name ~= '$defs' then inner[name] = v end end
  end
  return { type = 'object', properties = { value = inner }, required = { 'value' },
    ['$defs'] = type(schema) == 'table' and schema['$defs'] or nil }, true
end

-- What the reply says: true and the value, or false and why it is none.
local function answered(result, boxed)
  local call = result.calls and result.calls[1]
  local source = call and call.name == ANSWER and call.input or not call and result.text or nil
  if not source then return false, 'the tool ' .. ANSWER .. ' was not called' end
  if call and not source:find('%S') then source = '{}' end
  local ok, value = pcall(json.decode, source)
  if not ok then return false, call and 'not JSON: ' .. text.problem(value) or 'the tool ' .. ANSWER .. ' was not called' end
  if call and boxed then
    if type(value) ~= 'table' or value.value == nil then return false, 'value is missing' end
    return true, value.value
  end
  return true, value
end

local function extended(key, attempt)
  local out = { table.unpack(key) }
  out[#out + 1] = attempt
  return out
end

--- await: a value that fits `spec.schema`. `spec`: { prompt, schema, model?, reasoning?, name?, budget? }. Raises
--- { kind, message, child } where the agent fails, or three answers in a row do not fit.
function M.run(op, spec, key)
  local compiled = schemas.compile(spec.schema)
  local schema, boxed = wrapped(spec.schema)
  local prompt, problems = spec.prompt, nil
  for attempt = 0, M.RETRIES do
    local child = op:plan({ prompt = prompt, model = spec.model, reasoning = spec.reasoning, budget = spec.budget,
      name = attempt == 0 and spec.name or op:name(spec.name or 'worker'), system = SYSTEM, base_prompt = false,
      dispatch_tools = false, tool_choice = ANSWER,
      tools = { { name = ANSWER, description = 'Gives the answer.', schema = schema } } },
      extended(key, attempt))
    local result = child:run()
    if result.status ~= 'completed' then
      local why = result.error and result.error.message or result.status
      error({ kind = result.error and result.error.kind or result.status, message = why, child = child.id }, 0)
    end
    local ok, value = answered(result, boxed)
    problems = ok and schemas.check(compiled, value) or { value }
    if #problems == 0 then return value, child end
    op.card:finish(child.row, 'failed', 'does not fit: ' .. problems[1])
    prompt = spec.prompt .. '\n\nAn earlier answer did not fit the schema:\n- '
      .. table.concat(problems, '\n- ', 1, math.min(#problems, 20))
    if attempt == M.RETRIES then
      local why = 'the answer does not fit the schema: ' .. problems[1]
      error({ kind = 'invalid_output', message = why, child = child.id }, 0)
    end
  end
end

return M
