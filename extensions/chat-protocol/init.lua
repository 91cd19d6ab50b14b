-- A whole wire protocol in Lua: Chat Completions, as llama.cpp, vLLM, Ollama and many others speak it. In the config:
--   [providers.mine]
--   protocol = "chat_lua"
--   base_url = "http://127.0.0.1:8080/v1"
local ext = require('panto').ext
local wire, array = ext.wire, ext.json.array
local OPTIONS = { temperature = 1, top_p = 1, top_k = 1, min_p = 1, seed = 1, stop = 1, logit_bias = 1, user = 1 }
local REASONS = { stop = 'stop', length = 'length', tool_calls = 'tool_calls', content_filter = 'content_filter' }
local USAGE = { input = 'prompt_tokens', output = 'completion_tokens', cache_read = 'prompt_tokens_details.cached_tokens',
  reasoning = 'completion_tokens_details.reasoning_tokens' }

local function message(m)
  local out = { role = m.role, tool_call_id = m.id, reasoning_content = m.reasoning, content = array {} }
  for i, p in ipairs(m.content) do
    out.content[i] = p.text and { type = 'text', text = p.text } or { type = 'image_url', image_url = { url = p.url } }
  end
  for i, c in ipairs(m.calls) do
    out.tool_calls = out.tool_calls or array {}
    out.tool_calls[i] = { id = c.id, type = 'function', ['function'] = { name = c.name, arguments = c.arguments } }
  end
  return out
end

local function body_of(request, plain)
  local body = wire.options(request, OPTIONS)
  body.model, body.max_completion_tokens, body.reasoning_effort = request.model, request.max_output, plain.reasoning
  body.stream, body.stream_options = request.stream, request.stream and { include_usage = true } or nil
  body.messages = array { plain.system and { role = 'system', content = plain.system } }
  for _, m in ipairs(plain.messages) do body.messages[#body.messages + 1] = message(m) end
  for i, t in ipairs(plain.tools or {}) do
    body.tools = body.tools or array {}
    body.tools[i] = { type = 'function', ['function'] = t }
  end
  body.tool_choice = plain.forced and { type = 'function', ['function'] = { name = plain.forced } } or plain.choice
  return body
end

ext.register_protocol { name = 'chat_lua', open = function(request, handle)
  return wire.stream(handle, function(put)
    local plain = wire.plain(request)
    local ask = { endpoint = request.endpoint, path = '/chat/completions', body = body_of(request, plain) }
    for data in wire.post(ask) do
      put { type = 'response', id = data.id, model = data.model, created = data.created }
      local choice = data.choices and data.choices[1] or {}
      local said = choice.delta or choice.message or {}
      put { type = 'reasoning', text = said.reasoning_content }
      put { type = 'text', text = said.content }
      for i, call in ipairs(said.tool_calls or {}) do
        local fn = call['function']
        put { type = 'tool_call', index = call.index or i - 1, id = call.id, name = plain.long(fn.name),
          text = fn.arguments }
      end
      put(wire.usage(data.usage, USAGE))
      put { type = 'finish', reason = REASONS[choice.finish_reason], raw = choice.finish_reason }
    end
  end)
end }
