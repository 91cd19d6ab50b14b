-- Where in the tour a conversation stands, and what the guide says and does there. Nothing is remembered between requests:
-- everything follows from the messages, so a tour goes on after a restart, and two of them never mix.
local ext = require('panto').ext
local stops = require('tour.stops')

local PIECE_MS = ext.config().piece_ms or 20 -- between two pieces of text, so that they are seen to come
local NO_TEXT = { png = 1, jpg = 1, jpeg = 1, gif = 1, webp = 1, ico = 1, pdf = 1, zip = 1, gz = 1, xz = 1, db = 1 }

-- Walk the tour along the messages: the stop that comes now, and the folder's listing where it was seen.
local function walk(messages)
  local at, listing, waits = 'welcome', '', false
  for _, message in ipairs(messages) do
    local origin = message.origin
    if message.role == 'assistant' and origin and origin.protocol == 'tour' then
      waits = false
      for _, part in ipairs(message.parts) do waits = waits or part.type == 'tool_call' end
      if not stops[at].call then at = stops[at].next end -- a call that was stopped before it was made comes again
    end
    for _, part in ipairs(message.parts) do
      if part.type == 'tool_result' and waits then
        waits = false
        if part.name == 'ls' and not part.is_error then listing = part.parts[1] and part.parts[1].text or '' end
        at = part.is_error and stops[at].otherwise or stops[at].next
      end
    end
  end
  if not ext.session_info().attended and stops[at].alone then at = stops[at].alone end
  return stops[at], listing
end

-- A file of the listing: a README if there is one, else the first that may be text, else nil.
local function some_file(listing)
  local first
  for line in listing:gmatch('[^\r\n]+') do
    local name = line:match('^%s*(.-)%s*$')
    local ending = name:match('^[^./][^/ ]*%.([^/ .]+)$')
    if ending and name:upper():match('^README') then return name end
    if ending and not NO_TEXT[ending:lower()] then first = first or name end
  end
  return first
end

local function filler(request, listing)
  local file = some_file(listing)
  local words = {
    file = file or 'README.md',
    what = file and '`' .. file .. '`' or 'a file. There is none here, so you see a call fail, and nothing is lost by it',
    scratch = (os.getenv('TMPDIR') or '/tmp'):gsub('/+$', '') .. '/panto-tour-' .. (request.session_id or 'x'):sub(1, 8),
  }
  return function(text) return (text:gsub('{(%a+)}', words)) end
end

local function parts_of(request)
  local stop, listing = walk(request.messages)
  local fill, parts = filler(request, listing), {}
  local call = #(request.tools or {}) > 0 and stop.call -- without tools it is asked for a summary, a title or the like
  local text = call == stop.call and fill(stop.text) or 'A walk through panto with its guide.'
  for piece in text:gmatch('%S+%s*') do parts[#parts + 1] = { type = 'text', text = piece } end
  if call then
    parts[#parts + 1] = { type = 'tool_call_start', index = 0, name = call, id = 'tour' }
    parts[#parts + 1] = { type = 'tool_call_delta', index = 0, text = fill(stop.arguments) }
    parts[#parts + 1] = { type = 'tool_call_end', index = 0 }
  end
  parts[#parts + 1] = { type = 'finish', reason = call and 'tool_calls' or 'stop' }
  return parts
end

--- A protocol's `open`: a stream whose parts come one after the other, as a model's would.
return function(request, handle)
  local parts, at, ready = parts_of(request), 0, 1
  ext.spawn(function() -- ends with the stream
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
end
