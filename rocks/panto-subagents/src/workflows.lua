-- Workflows there are: TOML graphs shipped, of the person and of a trusted project; a later one of a name wins.
local files = require('panto-subagents.files')
local graphs = require('panto-subagents.graph')
local text = require('panto-subagents.text')

local M = {}

local function compile(step)
  local schemas = require('panto-subagents.schema')
  if type(step.schema) == 'string' then step.schema = require('panto').json.decode(step.schema) end
  schemas.compile(step.schema)
end

--- now: a workflow from its text, or nil and what is wrong with file and line.
function M.parse(path, source) return graphs.parse(path, source, compile) end

--- now: a workflow by name. Raises where there is none.
function M.get(house, name)
  local graph = house.workflows[name]
  if graph then return graph end
  error({ kind = 'usage', message = 'there is no workflow ' .. tostring(name) .. '; there are: '
    .. table.concat(text.keys(house.workflows), ', ') }, 0)
end

local function usage(graph)
  local parts = {}
  for _, name in ipairs(text.keys(graph.inputs)) do
    parts[#parts + 1] = graph.inputs[name].required and name .. '=…' or '[' .. name .. '=…]'
  end
  return table.concat(parts, ' ')
end

--- await: workflows by name, and what was wrong with others.
function M.find(here)
  local found, problems = {}, {}
  for _, folder in ipairs(files.folders(here, 'workflows')) do
    for _, file in ipairs(files.read_all(folder.path, '.toml')) do
      local graph, problem = M.parse(file.path, file.text)
      local name = graph and graph.name or file.stem
      if not graph then
        problems[#problems + 1] = problem
      elseif not name:find('^[%w_.-]+$') then
        problems[#problems + 1] = file.path .. ':1: name: letters, digits and _ . - only'
      else
        graph.name, graph.usage, graph.path = name, usage(graph), file.path
        found[name] = graph
      end
    end
  end
  return found, problems
end

local function inputs(graph)
  local names = text.keys(graph.inputs)
  for i, name in ipairs(names) do if not graph.inputs[name].required then names[i] = name .. '?' end end
  return table.concat(names, ', ')
end

--- now: names, what they do and what they take, within `limit` bytes.
function M.summary(found, limit)
  local lines, size = {}, 0
  for _, name in ipairs(text.keys(found)) do
    local graph = found[name]
    local line = '- ' .. name .. '(' .. inputs(graph) .. '): ' .. text.line(graph.description, 300)
    size = size + #line + 1
    if size > limit then break end
    lines[#lines + 1] = line
  end
  return table.concat(lines, '\n')
end

return M
