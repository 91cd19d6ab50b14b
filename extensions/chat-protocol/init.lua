-- A whole wire protocol in Lua: Chat Completions, as llama.cpp, vLLM, Ollama and many others speak it. In the config:
--   [providers.mine]
--   protocol = "chat_lua"
--   base_url = "http://127.0.0.1:8080/v1"
local ext = require('panto').ext
local json, wire = ext.json, ext.wire
local OPTIONS = { temperature = 1, top_p = 1, top_k = 1, min_p = 1, seed = 1, stop = 1, logit_bias = 1, user = 1 }
local REASONS = { stop = 'stop', length = 'length', tool_calls = 'tool_calls', content_filter = 'content_filter' }

local function some(s) return type(s) == 'string' and s ~= '' and s or nil end

-- panto's messages as this wire's. Its own thoughts go back to it, other models' do not.
local function messages(request, short)
  local out = json.array {}
  for _, block in ipairs(request.system or {}) do out[#out + 1] = { role = 'system', content = block.text } end
  for _, m in ipairs(request.messages) do
    local own = m.origin and m.origin.protocol == 'chat_lua'
    local said = { role = m.role, content = json.array {} }
    for _, p in ipairs(m.parts) do
      local to = p.type == 'tool_result' and { role = 'tool', tool_call_id = p.call_id, content = json.array {} } or said
      for _, r in ipairs(p.type == 'tool_result' and p.parts or { p }) do
        if r.type == 'text' or r.type == 'json' then
          table.insert(to.content, { type = 'text', text = r.text })
        elseif r.type == 'image' then -- this wire takes images from people only
          said.role = 'user'
          table.insert(said.content, { type = 'image_url',
            image_url = { url = 'data:' .. r.media_type .. ';base64,' .. r.data } })
        elseif r.type == 'reasoning' and own then
          said.reasoning_content = (said.reasoning_content or '') .. r.text
        elseif r.type == 'tool_call' then
          said.tool_calls = said.tool_calls or json.array {}
          table.insert(said.tool_calls, { id = r.call_id, type = 'function',
            ['function'] = { name = short(r.name), arguments = r.arguments.text } })
        end
      end
      if to ~= said then out[#out + 1] = to end
    end
    if #said.content > 0 or said.tool_calls then out[#out + 1] = said end
  end
  return out
end

local function body_of(request, short)
  local body = { model = request.model, messages = messages(request, short), stream = true,
    stream_options = { include_usage = true }, max_completion_tokens = request.max_output,
    reasoning_effort = some(request.reasoning) }
  for i, t in ipairs(request.tools or {}) do
    body.tools = body.tools or json.array {}
    body.tools[i] = { type = 'function', ['function'] = { name = short(t.name), description = t.description,
      parameters = json.decode(t.schema) } }
  end
  local choice = request.tool_choice or {}
  if choice.kind == 'named' then
    body.tool_choice = { type = 'function', ['function'] = { name = short(choice.name) } }
  elseif body.tools then
    body.tool_choice = choice.kind
  end
  for name, value in pairs(request.options) do
    if not OPTIONS[name] then error { kind = 'invalid_request', message = 'chat_lua takes no option ' .. name } end
    body[name] = value
  end
  return json.encode(body)
end

ext.register_protocol { name = 'chat_lua', open = function(request, handle)
  return wire.stream(handle, function(put)
    local short, long = wire.names()
    local response <close> = ext.http { endpoint = request.endpoint, path = '/chat/completions', stream = true,
      check = true, body = body_of(request, short), headers = { ['content-type'] = 'application/json' } }
    local told, finish
    for data in wire.events(response) do
      if type(data) ~= 'table' then break end -- [DONE]
      if data.error then error { kind = 'server', message = data.error.message } end
      if not told then put { type = 'response', id = data.id, model = data.model, created = data.created } end
      told = true
      local choice = data.choices and data.choices[1] or {}
      local delta = choice.delta or {}
      if some(delta.reasoning_content) then put { type = 'reasoning', text = delta.reasoning_content } end
      if some(delta.content) then put { type = 'text', text = delta.content } end
      for _, call in ipairs(delta.tool_calls or {}) do
        local fn = call['function']
        if some(fn.name) then put { type = 'tool_call_start', index = call.index, name = long(fn.name), id = call.id } end
        if some(fn.arguments) then put { type = 'tool_call_delta', index = call.index, text = fn.arguments } end
      end
      local u = data.usage
      if u and u ~= json.null then
        local read, thought = u.prompt_tokens_details or {}, u.completion_tokens_details or {}
        put { type = 'usage', input = u.prompt_tokens, output = u.completion_tokens, cache_read = read.cached_tokens,
          reasoning = thought.reasoning_tokens }
      end
      local word = some(choice.finish_reason)
      if word then finish = { type = 'finish', reason = REASONS[word] or 'other', raw = word } end
    end
    if not finish then error { kind = 'connection', message = 'the stream ended before the reply was complete' } end
    put(finish)
  end)
end }
