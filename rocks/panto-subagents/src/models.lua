-- Which model a child speaks to: what the call says, then what its last turn used, then its profile, then its parent's.
local panto = require('panto')
local ext = panto.ext

local M = {}

local function resolved(model, reasoning)
  local config = ext.resolve_model { model = model, reasoning = reasoning }
  return { model = config.model, reasoning = config.reasoning }
end

-- A profile written for another agent may name a model by a nickname: the usable one whose label holds that word.
local function by_nickname(word)
  for _, row in ipairs(ext.models { query = word, limit = 20 }) do
    if row.usable and row.label:lower():find(word:lower(), 1, true) then return row.label end
  end
end

--- await: { model, reasoning } for a child. Raises where the call itself names what is not there; what a profile names is a
--- wish, and without it the child gets its parent's model.
function M.choose(asked, profile, inherited)
  local reasoning = asked.reasoning or profile and profile.reasoning
  if asked.model then
    if asked.reasoning then return resolved(asked.model, asked.reasoning) end
    local ok, choice = pcall(resolved, asked.model, reasoning)
    return ok and choice or resolved(asked.model)
  end
  for _, model in ipairs { profile and profile.model or false, inherited } do
    if model then
      local ok, choice = pcall(resolved, model, reasoning)
      if ok then return choice end
      local other = not model:find(':', 1, true) and by_nickname(model)
      if other then
        ok, choice = pcall(resolved, other, reasoning)
        if ok then return choice end
        return resolved(other)
      end
      if asked.reasoning then error(choice, 0) end
    end
  end
  return resolved(inherited)
end

--- await: the catalogue for the model, bounded.
function M.list(query, limit)
  local rows = panto.json.array {}
  for _, row in ipairs(ext.models { query = query, limit = math.max(1, math.min(limit or 20, 50)) }) do
    rows[#rows + 1] = { label = row.label, context = row.context, price_input = row.price_input,
      price_output = row.price_output, reasoning = row.reasoning, images = row.images, usable = row.usable }
  end
  return rows
end

return M
