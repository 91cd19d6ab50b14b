-- What may be spent: by one child, and by a whole operation. At nine tenths a child is told to finish; at the whole the
-- limits of its run stop it.
local M = {}

local NAMES = { 'steps', 'tokens', 'cost', 'seconds' }

--- The smaller of each limit, nil where there is none.
function M.least(...)
  local out = {}
  for _, limits in ipairs { ... } do
    for _, name in ipairs(NAMES) do
      local v = limits[name]
      if v and v > 0 and (not out[name] or v < out[name]) then out[name] = v end
    end
  end
  return out
end

--- What is left of `limits` after `spent`; never less than a trace, so that a limit stays one.
function M.left(limits, spent)
  local out = {}
  for _, name in ipairs(NAMES) do
    if limits[name] then out[name] = math.max(limits[name] - (spent[name] or 0), name == 'cost' and 1e-9 or 1) end
  end
  return out
end

--- The name of the first limit of which `share` is used up, nil if none. Of steps the last two count as nine tenths: what is
--- said to a child is heard a step later.
function M.reached(limits, spent, share)
  for _, name in ipairs(NAMES) do
    local limit, used = limits[name], spent[name] or 0
    if limit then
      if used >= limit * share then return name end
      if name == 'steps' and share < 1 and limit > 1 and used >= math.max(1, limit - 2) then return name end
    end
  end
end

--- How much a limit is, in words.
function M.words(limits, name)
  local v = limits[name]
  if name == 'cost' then return string.format('$%.4g', v) end
  if name == 'seconds' then return string.format('%d seconds', v // 1) end
  return string.format('%d %s', v // 1, name)
end

return M
