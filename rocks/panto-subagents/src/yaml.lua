-- The part of YAML that front matter is written in: mappings, block and flow lists, scalars of all five styles, comments.
-- Anchors, tags and several documents are refused by name. Data only; no global is touched.
local M = {}

local function fail(line, message)
  error({ line = line, message = message }, 0)
end

local ESCAPES = { n = '\n', t = '\t', r = '\r', ['0'] = '\0', ['"'] = '"', ['\\'] = '\\', ['/'] = '/', e = '\27' }

local function double_quoted(text, at, line)
  local out, i = {}, at + 1
  while true do
    local c = text:sub(i, i)
    if c == '' then fail(line, 'a quoted text does not end on its line') end
    if c == '"' then return table.concat(out), i + 1 end
    if c == '\\' then
      local e = text:sub(i + 1, i + 1)
      local digits = e == 'x' and text:match('^%x%x', i + 2) or e == 'u' and text:match('^%x%x%x%x', i + 2)
      if digits then
        out[#out + 1] = utf8.char(tonumber(digits, 16))
        i = i + 2 + #digits
      else
        out[#out + 1] = ESCAPES[e] or fail(line, 'unknown escape \\' .. e)
        i = i + 2
      end
    else
      out[#out + 1] = c
      i = i + 1
    end
  end
end

local function single_quoted(text, at, line)
  local out, i = {}, at + 1
  while true do
    local stop = text:find("'", i, true)
    if not stop then fail(line, 'a quoted text does not end on its line') end
    out[#out + 1] = text:sub(i, stop - 1)
    if text:sub(stop + 1, stop + 1) ~= "'" then return table.concat(out), stop + 1 end
    out[#out + 1] = "'"
    i = stop + 2
  end
end

local WORDS = { ['true'] = true, ['false'] = false, yes = true, no = false }

local function plain(text)
  local lower = text:lower()
  if WORDS[lower] ~= nil then return WORDS[lower] end
  if text == '' or text == '~' or lower == 'null' then return nil end
  if text:find('^[-+]?%d[%d_]*$') then return math.tointeger(tonumber((text:gsub('[_+]', '')))) or text end
  if text:find('^[-+]?%d*%.?%d+[eE]?[-+]?%d*$') then return tonumber(text) or text end
  return text
end

local flow

-- A value inside [ ] or { }: what it is, and where it ends.
local function flow_value(text, at, line)
  at = text:find('%S', at) or #text + 1
  local c = text:sub(at, at)
  if c == '[' or c == '{' then return flow(text, at, line) end
  if c == '"' then return double_quoted(text, at, line) end
  if c == "'" then return single_quoted(text, at, line) end
  local word = text:match('^[^,%[%]{}]*', at)
  return plain((word:gsub('%s+$', ''))), at + #word
end

function flow(text, at, line)
  local list, out = text:sub(at, at) == '[', {}
  local close = list and ']' or '}'
  at = at + 1
  while true do
    at = text:find('%S', at)
    if not at then fail(line, 'a ' .. (list and '[' or '{') .. ' is not closed on its line') end
    if text:sub(at, at) == close then return out, at + 1 end
    if list then
      out[#out + 1], at = flow_value(text, at, line)
    else
      local key, after = text:match('^%s*["\']?([%w_.-]+)["\']?%s*:%s*()', at)
      if not key then fail(line, 'a name and a colon expected') end
      out[key], at = flow_value(text, after, line)
    end
    at = text:find('%S', at) or #text + 1
    local c = text:sub(at, at)
    if c == ',' then
      at = at + 1
    elseif c ~= close then
      fail(line, "',' or '" .. close .. "' expected")
    end
  end
end

local function without_comment(text)
  local at = text:find('%s#')
  return (at and text:sub(1, at - 1) or text):gsub('%s+$', '')
end

local function scalar(text, line)
  local c = text:sub(1, 1)
  if c == '&' or c == '*' or c == '!' then fail(line, 'anchors, aliases and tags are not read here') end
  local value, after
  if c == '"' then
    value, after = double_quoted(text, 1, line)
  elseif c == "'" then
    value, after = single_quoted(text, 1, line)
  elseif c == '[' or c == '{' then
    value, after = flow(text, 1, line)
  else
    return plain((without_comment(text)))
  end
  if text:sub(after):find('^%s*[^%s#]') then fail(line, 'something follows a value that has ended') end
  return value
end

-- Lines that count, each { indent, text, number }; raw ones are kept for block scalars.
local function read_lines(text)
  local raw, lines = {}, {}
  for line in (text:gsub('\r\n?', '\n') .. '\n'):gmatch('([^\n]*)\n') do
    raw[#raw + 1] = line
    local spaces, rest = line:match('^( *)(.*)$')
    if rest:sub(1, 1) == '\t' then fail(#raw, 'a tab cannot indent') end
    if rest ~= '' and rest:sub(1, 1) ~= '#' then
      lines[#lines + 1] = { indent = #spaces, text = rest, number = #raw }
    end
  end
  return raw, lines
end

-- A | or > text: the raw lines below `from` that are deeper than `indent`.
local function block_text(state, mark, indent, from)
  local out, depth, at = {}, nil, from + 1
  while at <= #state.raw do
    local line = state.raw[at]
    local spaces = #line:match('^ *')
    if line:find('%S') then
      if spaces <= indent then break end
      depth = depth or spaces
    end
    out[#out + 1] = line:sub((depth or spaces) + 1)
    at = at + 1
  end
  while state.lines[state.at] and state.lines[state.at].number < at do state.at = state.at + 1 end
  local keep = mark:find('+', 1, true)
  while not keep and out[#out] and not out[#out]:find('%S') do out[#out] = nil end
  local text
  if mark:sub(1, 1) == '|' then
    text = table.concat(out, '\n')
  else
    text = table.concat(out, '\n'):gsub('([^\n])\n([^\n ])', '%1 %2'):gsub('\n\n', '\n')
  end
  return mark:find('-', 1, true) and text or text .. '\n'
end

local node

local function value_after(state, rest, line, indent)
  if rest:find('^[|>][-+]?%s*$') or rest:find('^[|>][-+]?%s+#') then return block_text(state, rest, indent, line) end
  if rest ~= '' and rest:sub(1, 1) ~= '#' then
    -- a plain text may go on in deeper lines
    local first = rest:sub(1, 1)
    local joined = rest
    if not first:find('["\'%[{]') then
      joined = without_comment(rest)
      while state.lines[state.at] and state.lines[state.at].indent > indent do
        local more = state.lines[state.at]
        if more.text:find('^[%w_.-]+:%s') then fail(more.number, 'this line is indented more than what it follows') end
        joined = joined .. ' ' .. without_comment(more.text)
        state.at = state.at + 1
      end
    end
    return scalar(joined, line)
  end
  local next_line = state.lines[state.at]
  if next_line and (next_line.indent > indent or next_line.indent == indent and next_line.text:find('^%-%s')) then
    return node(state, next_line.indent)
  end
  return nil
end

local function list_node(state, indent)
  local out = {}
  while true do
    local line = state.lines[state.at]
    if not line or line.indent ~= indent then break end
    local rest = line.text:match('^%-%s+(.*)$') or line.text == '-' and ''
    if not rest then break end
    state.at = state.at + 1
    if rest:find('^[%w_.-]+:%s') or rest:find('^[%w_.-]+:$') then
      local inner = indent + #line.text - #rest
      table.insert(state.lines, state.at, { indent = inner, text = rest, number = line.number })
      out[#out + 1] = node(state, inner)
    else
      out[#out + 1] = value_after(state, rest, line.number, indent)
    end
  end
  return out
end

local function map_node(state, indent)
  local out = {}
  while true do
    local line = state.lines[state.at]
    if not line or line.indent < indent then break end
    if line.indent > indent then fail(line.number, 'this line is indented more than what it follows') end
    if line.text:find('^%-%s') then break end
    local key, rest = line.text:match('^"([^"]*)"%s*:%s*(.*)$')
    if not key then key, rest = line.text:match("^'([^']*)'%s*:%s*(.*)$") end
    if not key then key, rest = line.text:match('^([^%s:#][^:]-)%s*:%s+(.*)$') end
    if not key then key, rest = line.text:match('^([^%s:#][^:]-)%s*:()$'), '' end
    if not key then fail(line.number, 'a name and a colon expected') end
    if out[key] ~= nil then fail(line.number, key .. ' is there twice') end
    state.at = state.at + 1
    out[key] = value_after(state, rest, line.number, indent)
  end
  return out
end

function node(state, indent)
  local line = state.lines[state.at]
  if line.text:find('^%-%s') or line.text == '-' then return list_node(state, indent) end
  return map_node(state, indent)
end

--- A mapping from its text. On failure nil, what is wrong, and the line from 1.
function M.parse(text)
  local ok, result = pcall(function()
    local raw, lines = read_lines(text)
    if #lines == 0 then return {} end
    local state = { raw = raw, lines = lines, at = 1 }
    local out = node(state, lines[1].indent)
    if state.lines[state.at] then fail(state.lines[state.at].number, 'this line belongs to nothing before it') end
    return out
  end)
  if ok then return result end
  if type(result) == 'table' then return nil, result.message, result.line end
  error(result, 0)
end

--- A file's front matter and the rest: fields, body, problem. The body is used whatever the front matter is.
function M.front_matter(text)
  text = text:gsub('^\xef\xbb\xbf', ''):gsub('\r\n?', '\n')
  local front, body = text:match('^%-%-%-[ \t]*\n(.-)\n%-%-%-[ \t]*\n(.*)$')
  if not front then front, body = text:match('^%-%-%-[ \t]*\n(.-)\n%-%-%-[ \t]*$'), '' end
  if not front then
    local empty = text:match('^%-%-%-[ \t]*\n%-%-%-[ \t]*\n(.*)$')
    if empty then return {}, empty end
    if text:find('^%-%-%-[ \t]*\n') then return {}, text, 'line 1: the front matter is not closed by ---' end
    return {}, text
  end
  local fields, problem, line = M.parse(front)
  if not fields then return {}, body, 'line ' .. (line or 0) + 1 .. ': ' .. problem end
  return fields, body
end

return M
