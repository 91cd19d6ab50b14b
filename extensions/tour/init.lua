-- The offline tour: a "model" that is a script. A lesson in protocols without a network: `open` gets the whole conversation
-- and returns a stream; the stream's `next` gives one part a pull.
local ext = require('panto').ext
local stops = require('tour.stops')

local PIECE_MS = 20 -- between two pieces of text, so that they are seen to come

-- How often the guide has spoken in this conversation: that many stops lie behind us, also after a resume.
local function stop_of(request)
  local spoken = 0
  for _, message in ipairs(request.messages) do
    local origin = message.origin
    if message.role == 'assistant' and origin and origin.protocol == 'tour' then spoken = spoken + 1 end
  end
  return stops[spoken % #stops + 1]
end

-- A file of the folder that was listed: a README if there is one.
local function some_file(request)
  local first
  for _, message in ipairs(request.messages) do
    for _, part in ipairs(message.parts) do
      for _, r in ipairs(part.type == 'tool_result' and part.name == 'ls' and not part.is_error and part.parts or {}) do
        for name in (r.text or ''):gmatch('[^\r\n]+') do
          name = name:match('^%s*(.-)%s*$')
          if name:match('^[Rr][Ee][Aa][Dd][Mm][Ee]') then return name end
          if not first and name:match('^[^./][^/ ]*%.[^/ ]+$') then first = name end
        end
      end
    end
  end
  return first or 'README.md'
end

local function filled(text, request)
  local words = { file = some_file(request), scratch = '/tmp/panto-tour-' .. (request.session_id or 'x'):sub(1, 8) }
  return (text:gsub('{(%a+)}', words))
end

local function parts_of(stop, request)
  local parts = {}
  for piece in filled(stop.text, request):gmatch('%S+%s*') do parts[#parts + 1] = { type = 'text', text = piece } end
  if stop.call then
    parts[#parts + 1] = { type = 'tool_call_start', index = 0, name = stop.call, id = 'tour' }
    parts[#parts + 1] = { type = 'tool_call_delta', index = 0, text = filled(stop.arguments, request) }
    parts[#parts + 1] = { type = 'tool_call_end', index = 0 }
  end
  parts[#parts + 1] = { type = 'finish', reason = stop.call and 'tool_calls' or 'stop' }
  return parts
end

ext.register_protocol {
  name = 'tour',
  models = { guide = { id = 'guide', context = 200000 } },
  open = function(request, handle)
    local parts, at, ready = parts_of(stop_of(request), request), 0, 1
    ext.spawn(function()
      while ready < #parts do
        ext.sleep(PIECE_MS)
        ready = ready + 1
        handle:wake()
      end
    end)
    return {
      next = function()
        if at >= #parts then return nil end
        if at >= ready then return ext.pending() end
        at = at + 1
        return parts[at]
      end,
    }
  end,
}
