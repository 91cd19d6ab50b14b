-- Profiles: Markdown files whose front matter says what a child may do and whose body is its system prompt. Those written
-- for other agents are read as they are: their names of tools and models are understood, unknown keys are ignored.
local panto = require('panto')
local yaml = require('panto-subagents.yaml')
local files = require('panto-subagents.files')
local text = require('panto-subagents.text')

local M = {}

-- What other agents call the tools.
local TOOLS = { bashoutput = 'bash_output', killshell = 'bash_kill', killbash = 'bash_kill', multiedit = 'edit',
  webfetch = 'fetch', askuserquestion = 'ask', task = 'subagents.*', agent = 'subagents.*' }

local function list_of(value)
  local out = {}
  if type(value) == 'string' then
    -- commas inside parentheses belong to a rule, not to the list
    local depth, word = 0, ''
    for c in (value .. ','):gmatch('.') do
      if c == ',' and depth == 0 then
        word = word:match('^%s*(.-)%s*$')
        if word ~= '' then out[#out + 1] = word end
        word = ''
      else
        depth = depth + (c == '(' and 1 or c == ')' and -1 or 0)
        word = word .. c
      end
    end
  elseif type(value) == 'table' then
    for _, word in ipairs(value) do out[#out + 1] = tostring(word) end
  end
  for i, word in ipairs(out) do
    local bare = word:gsub('%(.*$', ''):lower()
    out[i] = TOOLS[bare] or bare
  end
  return out
end

local function number(value)
  value = tonumber(value)
  return value and value > 0 and value or nil
end

--- { tokens, cost, seconds } from a number (dollars) or a table.
function M.budget(value)
  if type(value) == 'number' then return { cost = number(value) } end
  if type(value) ~= 'table' then return {} end
  return { steps = number(value.steps), tokens = number(value.tokens), cost = number(value.cost or value.usd),
    seconds = number(value.seconds or value.time) }
end

--- A profile from a file's text: profile, problem (a text, where the front matter could not be read).
function M.parse(stem, path, source)
  local fields, body, problem = yaml.front_matter(source)
  local model = type(fields.model) == 'string' and fields.model or nil
  if model == 'inherit' or model == '' then model = nil end
  local profile = {
    name = type(fields.name) == 'string' and text.line(fields.name, 60) or stem,
    description = type(fields.description) == 'string' and fields.description or '',
    model = model,
    reasoning = type(fields.reasoning) == 'string' and fields.reasoning or nil,
    tools = fields.tools ~= nil and list_of(fields.tools) or nil,
    denied = list_of(fields.disallowed_tools or fields.disallowedTools),
    max_steps = number(fields.max_steps or fields.maxTurns),
    budget = M.budget(fields.budget),
    prompt = body:match('^%s*(.-)%s*$'),
    path = path,
  }
  profile.version = panto.derive_id(profile.name, source):sub(1, 12)
  return profile, problem and path .. ': ' .. problem
end

--- await: all profiles by name, and what was wrong with files. Later places override earlier ones.
function M.load(here)
  local found, problems = {}, {}
  for _, folder in ipairs(files.folders(here, 'agents')) do
    for _, file in ipairs(files.read_all(folder.path, '.md')) do
      local profile, problem = M.parse(file.stem, file.path, file.text)
      profile.place = folder.place
      if problem then problems[#problems + 1] = problem .. '; its text is used all the same' end
      found[profile.name] = profile
    end
  end
  return found, problems
end

local function matches(patterns, name)
  for _, pattern in ipairs(patterns) do
    if pattern == '*' or pattern == name then return true end
    if pattern:sub(-2) == '.*' and name:sub(1, #pattern - 1) == pattern:sub(1, -2) then return true end
  end
  return false
end

--- The declarations of a child: those of its parent, without subagents.* unless the profile names them and `depth` (the
--- child's own, from 1) leaves room, and without what the profile does not name or denies.
function M.declarations(profile, tools, depth, deepest)
  local out = {}
  for _, tool in ipairs(tools) do
    local own = tool.name:sub(1, 10) == 'subagents.'
    local allowed
    if own then
      allowed = depth < deepest and profile.tools ~= nil and matches(profile.tools, tool.name)
        and not (#profile.tools == 1 and profile.tools[1] == '*')
    else
      allowed = profile.tools == nil or matches(profile.tools, tool.name)
    end
    if allowed and not matches(profile.denied, tool.name) then out[#out + 1] = tool end
  end
  return out
end

--- The names for a tool's description, within `limit` bytes.
function M.summary(found, limit)
  local lines, size, left = {}, 0, 0
  for _, name in ipairs(text.keys(found)) do
    local line = '- ' .. name .. ': ' .. text.line(found[name].description, 200)
    if size + #line < limit then
      lines[#lines + 1] = line
      size = size + #line + 1
    else
      left = left + 1
    end
  end
  if left > 0 then lines[#lines + 1] = '- and ' .. left .. ' more' end
  return table.concat(lines, '\n')
end

return M
