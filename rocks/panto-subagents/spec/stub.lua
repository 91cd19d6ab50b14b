-- A host for the rock without panto: tasks, sessions and models in plain Lua. Time is counted, not waited for.
--
-- `reply(agent, prompt)` says what a model does: { text, status?, calls?, error?, rounds? (scheduler rounds it takes, 'never':
-- until it is cancelled), usage?, steps? (how many, each a step_ended event) }.
local M = {}
local WAIT = {}

local function hash(text) -- two lanes of FNV: unequal inputs of a test give unequal ids
  local a, b = 0xcbf29ce484222325, 0x84222325cbf29ce4
  for i = 1, #text do
    a = (a ~ text:byte(i)) * 0x100000001b3
    b = (b ~ (text:byte(i) + i)) * 0x100000001b3
  end
  return string.format('%016x%016x', a, b)
end

local function tasks_of(host)
  local scheduler = { list = {}, by_thread = setmetatable({}, { __mode = 'k' }) }

  function scheduler.spawn(fn, options)
    local from = scheduler.current
    local task = { detached = options and options.detached, cancelled = from and not (options and options.detached) and from.cancelled }
    task.co = coroutine.create(function() task.results = table.pack(fn()) end)
    scheduler.by_thread[task.co] = task
    table.insert(scheduler.list, task)
    local handle = { task = task, events = {}, look = function() return task.over end }
    function handle:await()
      host.wait(function() return task.over end, 'task')
      if task.problem then error(task.problem, 0) end
      return table.unpack(task.results, 1, task.results.n)
    end
    function handle:cancel() task.cancelled = true end
    return handle
  end

  local function step(task)
    scheduler.current = task
    local r = table.pack(coroutine.resume(task.co))
    scheduler.current = nil
    if coroutine.status(task.co) == 'suspended' then
      task.ready = nil
      if r[2] == WAIT then task.ready, task.survives = r[3], r[4] else task.parked = true end
      return
    end
    task.over, task.problem = true, not r[1] and (r[2] or 'nil') or nil
  end

  local function can_go(task)
    if task.over then return false end
    if task.parked then
      if not (task.woken or task.cancelled) then return false end
      task.parked, task.woken = nil, nil
      return true
    end
    if task.ready then return task.ready() or task.cancelled and not task.survives end
    return true
  end

  --- One round: every task that can goes on once. True if one did.
  function scheduler.round()
    local moved = false
    for _, task in ipairs({ table.unpack(scheduler.list) }) do
      if can_go(task) then
        moved = true
        step(task)
      end
    end
    for i = #scheduler.list, 1, -1 do
      if scheduler.list[i].over then table.remove(scheduler.list, i) end
    end
    host.rounds = host.rounds + 1
    return moved
  end

  --- What Escape does to the tasks of a call.
  function scheduler.interrupt()
    for _, task in ipairs(scheduler.list) do
      if not task.detached then task.cancelled = true end
    end
  end

  return scheduler
end

-- `coroutine` as the rock sees it: a resume of a task wakes it, a yield of a cancelled one raises.
local function coroutines(host)
  local out = {}
  for name, fn in pairs(coroutine) do out[name] = fn end
  function out.resume(co, ...)
    local task = host.scheduler.by_thread[co]
    if not task then return coroutine.resume(co, ...) end
    task.woken = true
    return not task.over
  end
  function out.yield(...)
    local r = table.pack(coroutine.yield(...))
    local task = host.scheduler.by_thread[coroutine.running()]
    if task and task.cancelled then error({ kind = 'cancelled', message = 'cancelled' }, 0) end
    return table.unpack(r, 1, r.n)
  end
  return out
end

local function job_of(host, agent, spec)
  local session = agent.session
  local reply = host.reply(agent, spec.prompt, spec) or { text = 'answer to ' .. spec.prompt }
  local job = { began = host.rounds, spec = spec, events = {} }
  host.turns[#host.turns + 1] = { agent = agent.id, prompt = spec.prompt, metadata = spec.metadata }
  host.running = host.running + 1
  host.most = math.max(host.most, host.running)
  assert(not session.busy, 'two turns of one session')
  session.busy = true
  table.insert(session.messages, { role = 'user', text = spec.prompt, metadata = spec.metadata or {} })
  for n = 1, reply.steps or 1 do
    table.insert(job.events, { type = 'step_ended', step = n, usage = reply.usage or { input = 5, output = 5 }, cost = 0.01 })
  end

  local function settle(result)
    if job.settled then return end
    host.running = host.running - 1
    session.busy = false
    result.text, result.usage, result.resumable = result.text or '', reply.usage or { input = 5, output = 5 }, true
    job.settled = result
    if spec.id then session.turns[spec.id] = result end
    table.insert(session.messages, { role = 'assistant', text = result.text, metadata = {} })
  end

  local function look()
    if not job.settled and reply.rounds ~= 'never' and host.rounds - job.began >= (reply.rounds or 1) then
      settle { status = reply.status or 'completed', text = reply.text, error = reply.error, tool_calls = reply.calls }
    end
    return job.settled
  end
  job.look = look

  function job:next_event() return table.remove(job.events, 1) end
  function job:result() return look() end
  function job:await()
    host.wait(look, 'survives')
    return job.settled
  end
  function job:request_cancel() settle { status = 'cancelled', text = reply.text } end
  function job:close()
    if not job.settled then settle { status = 'cancelled' } end
    host.wait(function() return host.rounds > job.began + 1 end, 'survives')
  end
  return job
end

local function agent_of(host, id, spec)
  local session = host.sessions[id]
  if not session then
    session = { id = id, title = spec.title or '', messages = {}, turns = {}, tools = spec.tools or {}, config = spec.config or {} }
    for _, m in ipairs(spec.system_messages or {}) do
      table.insert(session.messages, { role = 'system', text = m[1], metadata = m[2] or {} })
    end
    host.sessions[id] = session
  end
  local agent = { id = id, session_id = id, session = session }
  host.open[id] = (host.open[id] or 0) + 1
  function agent:tools() return session.tools end
  function agent:set_config(config) session.config = config end
  function agent:submit(given) table.insert(host.submitted, { agent = id, prompt = given.prompt, when = given.when, id = given.id }) end
  function agent:conversation() return { messages = function() return session.messages end } end
  function agent:close() host.open[id] = host.open[id] - 1 end
  function agent:run_async(given)
    local known = given.id and session.turns[given.id]
    if known then
      return { next_event = function() end, result = function() return known end, await = function() return known end,
        request_cancel = function() end, close = function() end, look = function() return known end }
    end
    return job_of(host, agent, given)
  end
  return agent
end

local function surface(host, json)
  local panto = { json = json }
  function panto.derive_id(...)
    local parts = json.array {}
    for i = 1, select('#', ...) do parts[i] = (select(i, ...)) end
    return hash(json.encode(parts))
  end
  function panto.spawn(fn, options) return host.scheduler.spawn(fn, options) end
  function panto.sleep(ms) local till = host.rounds + ms // 100 host.wait(function() return host.rounds >= till end) end
  function panto.exec(spec) return host.exec(spec) end
  function panto.log(...) table.insert(host.logged, table.concat({ ... }, ' ')) end
  function panto.agent(spec)
    host.wait(function() return true end)
    return agent_of(host, spec.session_id or panto.derive_id('session', host.rounds), spec)
  end
  function panto.wait(list, ms)
    local till = ms and host.rounds + ms // 100
    local found
    host.wait(function()
      for i, job in ipairs(list) do if job.look() or #job.events > 0 then found = i end end
      return found or till and host.rounds >= till
    end)
    return found
  end
  function panto.session_store()
    return { metadata = function(_, id) return host.sessions[id] end,
      list = function() local out = {} for _, s in pairs(host.sessions) do out[#out + 1] = s end return out end }
  end
  panto.fs = { read = function(path) return host.files[path] end,
    list = function(folder)
      local out = {}
      for path in pairs(host.files) do
        local name = path:sub(1, #folder + 1) == folder .. '/' and path:sub(#folder + 2)
        if name and not name:find('/') then out[#out + 1] = name end
      end
      table.sort(out)
      return #out > 0 and out or nil
    end }
  return panto
end

local function extension(host, panto)
  local ext = { registered = {}, ui = {}, session = {} }
  for name, v in pairs(panto) do ext[name] = v end
  for _, kind in ipairs { 'tool', 'command' } do
    ext['register_' .. kind] = function(spec) ext.registered[spec.name] = spec end
  end
  function ext.on() end
  function ext.config() return host.config end
  function ext.session_info()
    return { id = 'primary', model = 'fake:m', attended = host.attended, config_dir = '/config', project = host.project }
  end
  function ext.ui.notify(spec) table.insert(host.notices, type(spec) == 'string' and spec or spec.text) end
  function ext.session.append(kind, value) table.insert(host.facts, { kind = kind, value = value }) end
  function ext.session.entries(kind)
    local out = {}
    for _, fact in ipairs(host.facts) do if fact.kind == kind then out[#out + 1] = fact.value end end
    return out
  end
  function ext.resolve_model(spec)
    if not host.models[spec.model] then error({ kind = 'usage', message = 'unknown model ' .. spec.model }, 0) end
    if spec.reasoning and not host.models[spec.model][spec.reasoning] then
      error({ kind = 'usage', message = spec.model .. ' has no reasoning level ' .. spec.reasoning }, 0)
    end
    return { model = spec.model, reasoning = spec.reasoning }
  end
  function ext.models(spec)
    local out = {}
    for label in pairs(host.models) do
      if label:find(spec.query or '', 1, true) then out[#out + 1] = { label = label, usable = true } end
    end
    return out
  end
  return ext
end

--- A host whose `require` loads the rock's modules from `folder` against it. `json` is the JSON to use.
function M.new(folder, json, options)
  local host = { rounds = 0, running = 0, most = 0, sessions = {}, open = {}, turns = {}, submitted = {}, logged = {},
    notices = {}, facts = {}, files = {}, config = {}, attended = true,
    models = { ['fake:m'] = { low = true, high = true }, ['fake:other'] = {}, ['far:sonnet'] = { low = true } } }
  for name, v in pairs(options or {}) do host[name] = v end
  host.reply = host.reply or function(_, prompt) return { text = 'answer to ' .. prompt } end
  host.scheduler = tasks_of(host)
  function host.wait(ready, survives)
    local task = host.scheduler.current
    local raises = task and survives ~= 'survives'
    if raises and task.cancelled then error({ kind = 'cancelled', message = 'cancelled' }, 0) end
    if ready() then return end
    coroutine.yield(WAIT, ready, survives == 'survives')
    if raises and task.cancelled then error({ kind = 'cancelled', message = 'cancelled' }, 0) end
  end
  local panto = surface(host, json)
  panto.ext = extension(host, panto)
  host.panto, host.ext = panto, panto.ext
  local loaded = { panto = panto }
  local env = setmetatable({ coroutine = coroutines(host), os = setmetatable({ time = function() return host.rounds // 10 end,
    getenv = function() end }, { __index = os }) }, { __index = _G })
  function env.require(name)
    if loaded[name] == nil then
      local short = name:match('^panto%-subagents%.(.+)$') or 'init'
      local path = folder .. '/' .. short .. '.lua'
      local file = assert(io.open(path, 'rb'))
      local source = file:read('a')
      file:close()
      loaded[name] = assert(load(source, '@' .. path, 't', env))(name, '/rock/src/init.lua') or true
    end
    return loaded[name]
  end
  host.require = env.require

  --- Run `fn` as a task until it and all others have ended, or nothing moves any more. Gives its results or its error.
  function host.run(fn, each_round)
    local handle = host.scheduler.spawn(fn)
    local idle = 0
    for _ = 1, 20000 do
      if each_round then each_round(host.rounds) end
      idle = host.scheduler.round() and 0 or idle + 1
      if #host.scheduler.list == 0 or idle > 200 then break end
    end
    local task = handle.task
    if not task.over then error('it never ends', 0) end
    if task.problem then error(task.problem, 0) end
    return table.unpack(task.results, 1, task.results.n)
  end
  return host
end

--- The context of a tool call.
function M.context(host, effect)
  local ctx = { agent = { id = 'primary', session_id = 'primary', tools = function() return host.tools or {} end,
    submit = function(_, spec) table.insert(host.submitted, spec) end }, effect_id = effect or 'effect', call_id = 'call' }
  function ctx.cancelled() return host.interrupted == true end
  function ctx:set_component(view)
    host.view = view
    return { alive = function() return host.alive end, invalidate = function() end }
  end
  return ctx
end

return M
