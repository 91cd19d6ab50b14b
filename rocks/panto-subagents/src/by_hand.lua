-- Workflows that a person runs: /workflow:NAME, and /workflows.resume after one that was stopped.
local panto = require('panto')
local flow = require('panto-subagents.flow')
local operations = require('panto-subagents.operation')
local runs = require('panto-subagents.runs')
local text = require('panto-subagents.text')
local workflows = require('panto-subagents.workflows')

local M = {}

--- now: a command's words as inputs: name=value, quotes around values with spaces; the rest is the first input left.
function M.words(graph, args)
  local given, rest, at = {}, {}, 1
  while true do
    at = args:find('%S', at)
    if not at then break end
    local name, quote, after = args:match('^([%w_-]+)=(["\']?)()', at)
    if name and graph.inputs[name] then
      local value, stop
      if quote ~= '' then
        value, stop = args:match('^([^' .. quote .. ']*)' .. quote .. '?()', after)
      else
        value, stop = args:match('^(%S*)()', after)
      end
      given[name], at = value, stop
    else
      local word, stop = args:match('^(%S+)()', at)
      rest[#rest + 1], at = word, stop
    end
  end
  if #rest > 0 then
    local names = text.keys(graph.inputs)
    table.sort(names, function(a, b)
      local ra, rb = graph.inputs[a].required == true, graph.inputs[b].required == true
      if ra ~= rb then return ra end
      return a < b
    end)
    for _, name in ipairs(names) do
      if given[name] == nil then
        given[name] = table.concat(rest, ' ')
        break
      end
    end
  end
  return given
end

-- Not completed steps, each with why.
local function troubles(report)
  local out = {}
  for _, row in ipairs(report.steps) do
    if row.status ~= 'completed' then
      local why = row.error and ': ' .. row.error or row.because and ', ' .. row.because or ''
      out[#out + 1] = row.id .. ': ' .. row.status .. why
    end
  end
  return out
end

-- A person's own run: what it finds is said to the agent as a message; of one that was stopped only the person hears.
local function by_hand(op, graph, given)
  local report = flow.run(op, graph, given)
  op.card:close()
  local left = troubles(report)
  local finished = #report.steps - #left .. ' of ' .. #report.steps .. ' steps finished'
  if report.status == 'cancelled' then
    return 'workflow ' .. graph.name .. ' stopped: ' .. finished .. '; /workflows.resume goes on with it'
  end
  local how = report.status == 'completed' and 'has finished' or 'has ' .. report.status
  local said = 'The workflow ' .. graph.name .. ' ' .. how .. (#left > 0 and ' (' .. table.concat(left, '; ') .. ')' or '')
    .. '.\n\n' .. report.text
  op.agent:submit { prompt = said, when = 'follow_up', id = panto.derive_id(op.ctx.effect_id, 'report') }
  if report.status == 'completed' then return 'workflow ' .. graph.name .. ' completed' end
  return 'workflow ' .. graph.name .. ' failed: ' .. finished .. '; /workflows.resume tries the rest again'
end

--- now: the handler of /workflow:NAME.
function M.command(house, name)
  return function(args, ctx)
    local graph = workflows.get(house, name)
    return by_hand(operations.new(house, ctx), graph, M.words(graph, args))
  end
end

--- now: the handler of /workflows.resume [NAME]: goes on with the last one that was stopped, failed or killed.
function M.resume(house)
  return function(args, ctx)
    local wanted, last = args:match('%S+'), nil
    for _, run in ipairs(runs.unfinished(house)) do
      if not wanted or run.name == wanted then last = run end
    end
    if not last then return 'no workflow ' .. (wanted and wanted .. ' ' or '') .. 'waits to be continued' end
    local op = operations.new(house, ctx)
    op.effect, op.again = last.effect, last.again
    return by_hand(op, workflows.get(house, last.name), last.inputs)
  end
end

return M
