-- panto.ext: what needs the running session. Registrations are checked here, where the caller's line is known.
local H = ...
if not H.options.session then return end
local await, misuse, post, current, plain, expect = H.await, H.misuse, H.post, H.current, H.plain, H.expect
local panto, asks, place, failure = H.panto, H.asks, H.place, H.failure
local json_decode, json_encode, shape = H.json_decode, H.json_encode, H.shape
local type, tostring, ipairs, pairs, setmetatable, next, rawget = type, tostring, ipairs, pairs, setmetatable, next, rawget
local match, sub = string.match, string.sub
local pcall, sort, concat = pcall, table.sort, table.concat

local ext = {}
for _, name in ipairs { 'json', 'sleep', 'exec', 'http', 'fs', 'spawn', 'derive_id', 'log', 'wait' } do
  ext[name] = panto[name]
end

-- ---------------------------------------------------------------- registrations (now)

local function fields(what, spec, known)
  expect(what, spec, 'table')
  for name in next, spec do
    if not known[name] then
      local names = {}
      for k in pairs(known) do names[#names + 1] = k end
      sort(names)
      misuse(what .. ': unknown member ' .. tostring(name) .. ' (known: ' .. concat(names, ', ') .. ')')
    end
  end
  local out = {}
  for name, rule in pairs(known) do
    local v = spec[name]
    local kind, must = match(rule, '^(%a+)(!?)$')
    if v == nil then
      if must == '!' then misuse(what .. ': ' .. name .. ' is missing') end
    elseif kind ~= 'any' and type(v) ~= kind then
      misuse(what .. ': ' .. name .. ': ' .. kind .. ' expected, got ' .. type(v))
    end
    out[name] = v
  end
  return out
end

local function owner()
  local t = current()
  return t and t.owner or ''
end

local function register(kind, spec)
  post('register', owner(), kind, plain('register_' .. kind, spec, true), place(3) or '')
end

--- now: a tool the model may call.
function ext.register_tool(spec)
  local what = 'register_tool'
  spec = fields(what, spec, { name = 'string!', description = 'string!', schema = 'any', handler = 'function',
    mutates = 'boolean', replay = 'boolean', approval = 'string', timeout = 'number', isolate = 'boolean',
    external = 'boolean' })
  if not match(spec.name, '^[%a_][%w_.-]*$') then misuse(what .. ': name: letters, digits and _ . - only: ' .. spec.name) end
  if not spec.external and not spec.handler then misuse(what .. ': handler is missing') end
  local approval = spec.approval
  if approval and approval ~= 'read' and approval ~= 'edit' and approval ~= 'command' then
    misuse(what .. ": approval: 'read', 'edit' or 'command' expected")
  end
  spec.schema = H.schema_text(what .. ': schema', spec.schema)
  register('tool', spec)
end

--- now: a slash command.
function ext.register_command(spec)
  spec = fields('register_command', spec, { name = 'string!', description = 'string!', args = 'string',
    handler = 'function!', complete = 'function' })
  if not match(spec.name, '^[%w_][%w_:.-]*$') then misuse('register_command: name: letters, digits and _ : . - only') end
  register('command', spec)
end

--- now: a wire protocol.
function ext.register_protocol(spec)
  spec = fields('register_protocol', spec, { name = 'string!', open = 'function!', cancel_turn = 'function',
    close = 'function', models = 'table' })
  register('protocol', spec)
end

local COLOURS = { 'ground', 'text', 'aside', 'accent', 'attention', 'wrong', 'added', 'keyword', 'string', 'number',
  'comment', 'name', 'band', 'code' }
local is_colour = {}
for _, name in ipairs(COLOURS) do is_colour[name] = true end

--- now: a theme: { name, dark, colors = { name = "#rrggbb" } }.
function ext.register_theme(spec)
  spec = fields('register_theme', spec, { name = 'string!', dark = 'boolean', colors = 'table!' })
  for name, colour in pairs(spec.colors) do
    if not is_colour[name] then
      misuse('register_theme: no colour ' .. tostring(name) .. ' (known: ' .. concat(COLOURS, ', ') .. ')')
    end
    if type(colour) ~= 'string' or not match(colour, '^#%x%x%x%x%x%x$') then
      misuse('register_theme: ' .. tostring(name) .. ': a colour is "#rrggbb", got ' .. tostring(colour))
    end
  end
  register('theme', spec)
end

--- now: a key that runs a slash command or a function.
function ext.register_shortcut(spec)
  spec = fields('register_shortcut', spec, { key = 'string!', description = 'string!', command = 'string',
    handler = 'function' })
  if not spec.command and not spec.handler then misuse('register_shortcut: command or handler is missing') end
  register('shortcut', spec)
end

--- now: an item of the status line: text, or { key, text, priority }; returns a function that changes the text.
function ext.register_status(spec)
  spec = fields('register_status', spec, { key = 'string!', text = 'string', priority = 'number' })
  register('status', spec)
  local key = spec.key
  return function(text)
    expect('status text', text, 'string', true)
    post('status', owner(), key, text or '')
  end
end

local HOOKS = { tool_call = true, tool_result = true, input = true, context = true, before_compact = true }

local TOLD = { 'session_start', 'session_end', 'turn_start', 'turn_interrupt', 'turn_end', 'step_start', 'step_end',
  'model_change', 'tool_call', 'tool_result', 'input', 'context', 'before_compact' }

-- A name of one's own may be anything, but hardly one of panto's with a letter more or less.
local function no_slip(name)
  for _, known in ipairs(TOLD) do
    local shorter, longer = name, known
    if #name > #known then shorter, longer = known, name end
    if name ~= known and #shorter > 3 and #longer - #shorter < 4 and sub(longer, 1, #shorter) == shorter then
      misuse('on: there is no event ' .. name .. '; did you mean ' .. known .. '?')
    end
  end
end

--- now: a hook (tool_call, tool_result, input, context, before_compact) or an observer (any other name).
function ext.on(event, fn)
  expect('on', event, 'string')
  no_slip(event)
  expect('on: function', fn, 'function')
  post('register', owner(), HOOKS[event] and 'hook' or 'observer', plain('on', { event = event, handler = fn }, true),
    place(2) or '')
end

--- now: tell observers of `name`.
function ext.emit(name, payload)
  expect('emit', name, 'string')
  if HOOKS[name] or asks.is_turn_event(name) then misuse('emit: ' .. name .. ' is told by panto alone') end
  if payload ~= nil then expect('emit: payload', payload, 'table') end
  post('emit', name, plain('emit', payload or {}))
end

-- ---------------------------------------------------------------- the session

--- now: the extension's own table of the configuration.
function ext.config()
  local t = current()
  local text = t and t.owner and asks.config(t.owner)
  return text and json_decode(text) or {}
end

--- now: { id, root, scope, cwd, model, reasoning, attended, config_dir, project } of the primary; `project` is the
--- folder of a trusted project only.
function ext.session_info() return json_decode(asks.session_info()) end

--- await: an opaque configuration for panto.agent and set_config.
function ext.resolve_model(spec)
  local config = H.config_of('resolve_model', spec)
  if not config or not config.model then misuse('resolve_model: model is missing') end
  return H.opaque_config(await('resolve_model', 'resolve_model', config))
end

--- await: a bounded catalogue.
function ext.models(spec)
  expect('models', spec, 'table', true)
  spec = spec or {}
  return await('models', 'models', expect('models: query', spec.query, 'string', true) or '',
    expect('models: limit', spec.limit, 'number', true) or 50)
end

ext.session = {}

--- await: a durable fact of the extension's own.
function ext.session.append(kind, value)
  expect('session.append', kind, 'string')
  local ok, text = pcall(json_encode, value == nil and H.null or value)
  if not ok then misuse('session.append: ' .. tostring(text)) end
  await('session.append', 'append', kind, text)
end

--- await: the values appended under `kind`, oldest first.
function ext.session.entries(kind)
  expect('session.entries', kind, 'string')
  local out = await('session.entries', 'entries', kind)
  for i, text in ipairs(out) do out[i] = json_decode(text) end
  return out
end

ext.ui = {}

--- now: something a person should know: text, or { text, level = info | attention | wrong, hint, key }.
function ext.ui.notify(spec, level)
  if type(spec) == 'string' then spec = { text = spec, level = level } end
  spec = fields('notify', spec, { text = 'string!', level = 'string', hint = 'string', key = 'string' })
  local t = current()
  post('notify', t and t.lane or '', spec.text, spec.level or 'info', spec.hint or '', spec.key or '')
end
ext.notify = ext.ui.notify

--- await: yes or no; `default` where nobody can answer.
function ext.ui.confirm(title, spec)
  expect('confirm', title, 'string')
  spec = spec or {}
  local answer = await('ui.confirm', 'ask', 'confirm', title, plain('confirm', { reason = spec.reason }))
  if answer == nil then return spec.default or false end
  return answer == 'yes'
end

--- await: one of `choices`; nil (or `default`) where nobody answers.
function ext.ui.select(title, choices, spec)
  expect('select', title, 'string')
  expect('select: choices', choices, 'table')
  spec = spec or {}
  local answer = await('ui.select', 'ask', 'select', title, plain('select', { choices = choices, reason = spec.reason }))
  if answer == nil then return spec.default end
  return answer
end

--- await: free text; nil (or `default`) where nobody answers.
function ext.ui.input(title, spec)
  expect('input', title, 'string')
  spec = spec or {}
  local answer = await('ui.input', 'ask', 'input', title, plain('input', { reason = spec.reason }))
  if answer == nil then return spec.default end
  return answer
end

-- ---------------------------------------------------------------- components

local components, last_component = {}, 0
local Component = { __name = 'component', __metatable = false }
Component.__index = Component
local numbers = setmetatable({}, { __mode = 'k' })

--- now: ask for a repaint after a change; the table is copied at the next frame.
function Component:invalidate()
  local c = components[numbers[self]]
  if c and not c.dirty then
    c.dirty = true
    post('component_dirty', c.id)
  end
end

--- now: is it still shown?
function Component:alive() return components[numbers[self]] ~= nil end

--- Show `view` on the card of `call`; returns its handle.
function H.set_component(call, view)
  expect('set_component', view, 'table')
  last_component = last_component + 1
  local c = { id = last_component, view = view }
  components[c.id] = c
  post('component', c.id, call, plain('set_component', view))
  local handle = setmetatable({}, Component)
  numbers[handle] = c.id
  return handle
end

function H.copy_component(id)
  local c = components[id]
  if not c then return nil end
  c.dirty = false
  return H.freeze(c.view)
end

function H.drop_component(id) components[id] = nil end

-- ---------------------------------------------------------------- protocols

local PENDING = { __name = 'pending' }
H.PENDING = PENDING

--- now: nothing is ready; pull again after `ms`, or when woken.
function ext.pending(ms)
  expect('pending', ms, 'number', true)
  return setmetatable({ ms = ms }, PENDING)
end

local endpoints = setmetatable({}, { __mode = 'k' })

--- An opaque endpoint: `name` and `model` can be read.
function H.endpoint(id, name)
  local e = setmetatable({}, {
    __name = 'endpoint',
    __index = { name = name },
    __newindex = function() misuse('an endpoint cannot be changed') end,
    __pairs = function() return next, {}, nil end,
    __metatable = false,
  })
  endpoints[e] = id
  return e
end

function H.endpoint_id(e) return endpoints[e] end

-- ---------------------------------------------------------------- the table itself

local LIVE = {
  __index = function(_, name)
    if name ~= 'agent' then return nil end
    local t = current()
    local lane = t and t.lane or ''
    if lane == '' then lane = asks.primary() end
    return H.lane_agent(lane)
  end,
  __metatable = false,
}

H.classes.component = Component
panto.ext = setmetatable(ext, LIVE)
