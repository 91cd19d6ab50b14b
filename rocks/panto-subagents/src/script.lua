-- subagents.lua: a script of the model's that directs agents. It sees wf and harmless parts of the language, nothing else.
local panto = require('panto')
local facts = require('panto-subagents.facts')
local operations = require('panto-subagents.operation')
local profiles = require('panto-subagents.profiles')
local sessions = require('panto-subagents.sessions')
local text = require('panto-subagents.text')
local worker = require('panto-subagents.worker')

local M = {}

local ERROR = { __name = 'agent error', __tostring = function(e) return e.message end, __metatable = false }

local function failed(child, result)
  local e = result.error or { kind = result.status, message = result.status }
  error(setmetatable({ kind = e.kind, child = child.id,
    message = child.spec.name .. ' (' .. child.id .. '): ' .. e.message }, ERROR), 0)
end

local function copied(library, without)
  local out = {}
  for name, v in pairs(library) do if name ~= without then out[name] = v end end
  return out
end

-- Where in the script a task is: a path that is the same each time the script runs, and a count of what it has begun there.
local function begin_places()
  local places = setmetatable({}, { __mode = 'k' })
  local root = { path = '', count = 0 }
  local function here() return places[coroutine.running()] or root end
  local function inside(path, fn, ...)
    local co = coroutine.running()
    local before = places[co]
    places[co] = { path = path, count = 0 }
    local r = table.pack(pcall(fn, ...))
    places[co] = before
    if not r[1] then error(r[2], 0) end
    return table.unpack(r, 2, r.n)
  end
  return here, inside
end

local function wanted(what, v, kind)
  if type(v) ~= kind then error(what .. ': ' .. kind .. ' expected, got ' .. type(v), 3) end
end

-- All have ended before the first error is raised: one that fails cancels nobody.
local function gather(tasks)
  local first
  for _, task in ipairs(tasks) do
    local ok, e = pcall(task.await, task)
    if not ok and (not first or text.kind(e) == 'cancelled') then first = { e } end
  end
  if first then error(first[1], 0) end
end

local function api(op, done, logged)
  local here, inside = begin_places()
  local wf = {}

  function wf.run(profile, prompt, opts)
    opts = opts or {}
    wanted('wf.run: options', opts, 'table')
    local place = here()
    place.count = place.count + 1
    local session = opts.session_id and sessions.find(op, opts.session_id).id or nil
    local child = op:plan({ profile = profile, prompt = prompt, model = opts.model, reasoning = opts.reasoning,
      session_id = session, budget = profiles.budget(opts.budget), on_event = opts.on_event, name = opts.name },
      { place.path, place.count, 0 })
    local result = child:run()
    if result.status ~= 'completed' then failed(child, result) end
    return result.text, child.id
  end

  function wf.worker(spec)
    wanted('wf.worker', spec, 'table')
    wanted('wf.worker: prompt', spec.prompt, 'string')
    local place = here()
    place.count = place.count + 1
    return (worker.run(op, { prompt = spec.prompt, schema = spec.schema, model = spec.model, reasoning = spec.reasoning,
      budget = profiles.budget(spec.budget), name = op:name(spec.name or 'worker') }, { place.path, place.count }))
  end

  function wf.map(list, fn, opts)
    wanted('wf.map: list', list, 'table')
    wanted('wf.map: function', fn, 'function')
    local place = here()
    place.count = place.count + 1
    local path, out, tasks, at = place.path .. '/' .. place.count, {}, {}, 0
    for i = 1, math.max(1, math.min(opts and opts.limit or #list, #list)) do
      tasks[i] = panto.spawn(function()
        while at < #list do
          at = at + 1
          local mine = at
          local ok, e = pcall(inside, path .. '.' .. mine, function() out[mine] = fn(list[mine], mine) end)
          if not ok then
            out.problem = out.problem or { e }
            if text.kind(e) == 'cancelled' then error(e, 0) end
          end
        end
      end)
    end
    gather(tasks)
    local problem = out.problem
    out.problem = nil
    if problem then error(problem[1], 0) end
    return out
  end

  function wf.all(functions)
    return wf.map(functions, function(fn) return fn() end)
  end

  local names = {}
  function wf.step(name, fn)
    wanted('wf.step: name', name, 'string')
    wanted('wf.step: function', fn, 'function')
    if names[name] then error('wf.step: ' .. name .. ' is there twice', 2) end
    names[name] = true
    local known = done:get(name)
    if known then return known.value end
    local value = inside('step ' .. name, fn)
    done:put(name, { value = value })
    return value
  end

  function wf.log(...)
    local parts = table.pack(...)
    for i = 1, parts.n do parts[i] = tostring(parts[i]) end
    logged[#logged + 1] = text.cut(table.concat(parts, ' '), 2000)
  end

  return wf
end

--- now: what a script sees.
function M.environment(wf, args)
  local json = panto.json
  return { wf = wf, args = args, string = copied(string, 'dump'), table = copied(table), math = copied(math),
    json = { encode = json.encode, decode = json.decode, null = json.null, array = json.array, object = json.object },
    assert = assert, error = error, ipairs = ipairs, next = next, pairs = pairs, pcall = pcall, select = select,
    tonumber = tonumber, tostring = tostring, type = type }
end

local function source_of(args)
  if type(args.source) == 'string' and args.source ~= '' then return args.source, '=script' end
  if type(args.file) ~= 'string' or args.file == '' then error({ kind = 'usage', message = 'source or file is needed' }, 0) end
  local source = panto.fs.read(args.file)
  if not source then error({ kind = 'missing', message = 'there is no ' .. args.file }, 0) end
  return source, '@' .. args.file
end

local function reply(op, content, logged)
  if #logged > 0 then content.log = logged end
  local rows = panto.json.array {}
  for i, child in ipairs(op.children) do
    local r = child:record()
    rows[i] = { id = r.id, name = r.name, status = r.status, error = r.error, usage = r.usage }
    if op:cancelled() then rows[i].text = r.text end
  end
  content.agents = rows
  return op:reply(content)
end

--- now: the handler of subagents.lua.
function M.handler(house)
  return function(args, ctx)
    local source, name = source_of(args)
    local op, logged = operations.new(house, ctx), panto.json.array {}
    local chunk, problem = load(source, name, 't', M.environment(api(op, facts.of(ctx.effect_id), logged), args.args))
    if not chunk then return { content = 'the script is not Lua: ' .. text.problem(problem), is_error = true } end
    local value, trace
    local ok, e = op:during(function()
      return xpcall(function() value = chunk() end, function(e)
        trace = debug.traceback(tostring(e), 2)
        return e
      end)
    end)
    if ok then return reply(op, { status = 'completed', result = value }, logged) end
    if op:cancelled() then op:conclude() end
    local kind = op:cancelled() and 'cancelled' or text.kind(e)
    if kind ~= 'cancelled' then panto.log('subagents.lua: ' .. tostring(trace)) end
    local out = reply(op, { status = kind == 'cancelled' and 'cancelled' or 'failed',
      error = { kind = kind, message = text.problem(e), child = type(e) == 'table' and e.child or nil } }, logged)
    out.is_error = true
    return out
  end
end

return M
