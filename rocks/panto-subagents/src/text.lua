-- Words for people and models: sizes, durations, first lines, errors without tracebacks.
local M = {}

--- "830", "12k", "1.4M".
function M.count(n)
  if n < 1000 then return string.format('%d', n) end
  if n < 999500 then return string.format('%dk', (n + 500) // 1000) end
  return string.format('%.1fM', n / 1e6)
end

--- "48 s", "1 m 04 s".
function M.duration(seconds)
  seconds = seconds // 1 | 0
  if seconds < 60 then return seconds .. ' s' end
  return string.format('%d m %02d s', seconds // 60, seconds % 60)
end

--- "$0.09", nothing for nothing.
function M.money(cost)
  if not cost or cost <= 0 then return nil end
  return string.format(cost < 0.01 and '$%.4f' or '$%.2f', cost)
end

--- At most `limit` bytes, cut between characters, with a mark.
function M.cut(text, limit, mark)
  if #text <= limit then return text end
  local stop = (utf8.offset(text, 0, limit + 1) or limit + 1) - 1
  return text:sub(1, stop) .. (mark or '…')
end

--- One line without tabs and control characters.
function M.line(text, limit)
  return M.cut((tostring(text):gsub('[%c]+', ' '):gsub('^%s+', ''):gsub('%s+$', '')), limit or 120)
end

--- What went wrong as text: never a traceback.
function M.problem(e)
  local text = type(e) == 'table' and e.message or e
  text = tostring(text)
  return (text:gsub('\nstack traceback:.*$', ''))
end

--- The kind of an error, 'error' where it has none.
function M.kind(e)
  return type(e) == 'table' and type(e.kind) == 'string' and e.kind or 'error'
end

--- A list of the keys of a table, sorted.
function M.keys(t)
  local out = {}
  for key in pairs(t) do out[#out + 1] = key end
  table.sort(out)
  return out
end

return M
