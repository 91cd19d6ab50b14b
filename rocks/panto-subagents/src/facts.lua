-- Results of finished steps, kept as facts of the session under the effect that made them, so that a call or command that
-- is continued does not run them again.
local panto = require('panto')
local session = panto.ext.session

local M = {}
local Facts = {}
Facts.__index = Facts

--- await: what an earlier run of `effect` has finished.
function M.of(effect)
  local known = {}
  for _, fact in ipairs(session.entries('step')) do known[fact.key] = fact end
  return setmetatable({ effect = effect, known = known }, Facts)
end

--- now: the stored value of step `id`, nil if it is not finished.
function Facts:get(id)
  local fact = self.known[panto.derive_id(self.effect, 'step', id)]
  return fact and fact.value
end

--- await: step `id` is finished with this value.
function Facts:put(id, value)
  local fact = { key = panto.derive_id(self.effect, 'step', id), value = value }
  self.known[fact.key] = fact
  session.append('step', fact)
end

return M
