-- One prompt to several models at once; the first answer wins, the others are cancelled. Built on the same seam as
-- panto-subagents, and on nothing of it: agents, jobs and one wait.
local panto = require('panto')

local function start(model, prompt)
  local agent = panto.agent { config = model }
  return { model = model, agent = agent, job = agent:run_async { prompt = prompt } }
end

-- The first runner whose turn completed, or nil; `lost` gets a line for each that failed before.
local function first(runners, lost)
  local running = table.move(runners, 1, #runners, 1, {})
  while #running > 0 do
    local jobs = {}
    for i, runner in ipairs(running) do jobs[i] = runner.job end
    local runner = running[panto.wait(jobs)]
    while runner.job:next_event() do end
    local result = runner.job:result()
    if result then
      if result.status == 'completed' then return runner, result end
      lost[#lost + 1] = runner.model .. ': ' .. (result.error and result.error.message or result.status)
      for i, other in ipairs(running) do if other == runner then table.remove(running, i) end end
    end
  end
end

panto.ext.register_tool {
  name = 'race',
  description = 'Asks several models the same and gives the first answer.',
  mutates = false,
  schema = {
    type = 'object', required = { 'prompt', 'models' },
    properties = { prompt = { type = 'string' }, models = { type = 'array', items = { type = 'string' } } },
  },
  handler = function(args, ctx)
    local runners, lost = {}, {}
    local _ <close> = setmetatable({}, { __close = function()
      for _, runner in ipairs(runners) do runner.job:close() runner.agent:close() end
    end })
    for i, model in ipairs(args.models) do runners[i] = start(model, args.prompt) end
    ctx:progress('running: ' .. table.concat(args.models, ', '))
    local runner, result = first(runners, lost)
    for _, other in ipairs(runners) do if other ~= runner then other.job:request_cancel() end end
    for _, other in ipairs(runners) do other.job:await() end
    if not runner then error('nobody answered: ' .. table.concat(lost, '; ')) end
    return { content = result.text, fact = runner.model, details = { type = 'list',
      items = panto.json.array { runner.model .. ' was first', table.unpack(lost) } } }
  end,
}
