-- How many children run at once: a bound for all of them, first come first served. A child that waits for children of its
-- own lends its slot and takes the head of the queue when they have ended, so that no depth can block itself.
--
-- Waiting is parking: an untagged yield of a task, which any code may resume.
local M = {}
local Gate = {}
Gate.__index = Gate

--- A gate with `limit` slots.
function M.new(limit)
  return setmetatable({ limit = limit, running = 0, most = 0, queue = {}, slots = {} }, Gate)
end

local function admit(gate)
  while gate.running < gate.limit and gate.queue[1] do
    local ticket = table.remove(gate.queue, 1)
    gate.running = gate.running + 1
    gate.most = math.max(gate.most, gate.running)
    ticket.admitted = true
    if ticket.task then coroutine.resume(ticket.task) end
  end
end

local function leave_queue(gate, ticket)
  for i, other in ipairs(gate.queue) do
    if other == ticket then return table.remove(gate.queue, i) end
  end
end

-- Left without a turn (an error, or the task was closed): out of the queue, or the slot given on.
local UNDONE = { __close = function(ticket)
  if ticket.taken then return end
  local gate = ticket.gate
  if ticket.admitted then
    gate.running = gate.running - 1
    admit(gate)
  else
    leave_queue(gate, ticket)
  end
  if ticket.id then gate.slots[ticket.id] = nil end
end }

-- Wait for a slot; `id` is forgotten if none comes.
local function wait_turn(gate, first, id)
  local ticket <close> = setmetatable({ gate = gate, id = id, task = (coroutine.running()) }, UNDONE)
  table.insert(gate.queue, first and 1 or #gate.queue + 1, ticket)
  admit(gate)
  while not ticket.admitted do coroutine.yield() end
  ticket.taken = true
end

-- One that is being closed is waited for: that ends by itself.
local function wait_closed(gate, id)
  while gate.slots[id] and gate.slots[id].closing do
    table.insert(gate.slots[id].closing, (coroutine.running()))
    coroutine.yield()
  end
end

--- await: a slot for session `id`. Raises { kind = 'busy' } where that session has one, and what ends the wait.
function Gate:enter(id)
  wait_closed(self, id)
  if self.slots[id] then
    error({ kind = 'busy', message = 'this session is in use: it still runs, or waits to run' }, 0)
  end
  local slot = { held = false, lent = 0 }
  self.slots[id] = slot
  wait_turn(self, false, id)
  slot.held = true
end

--- now: session `id` is being closed; it keeps its slot until it has left.
function Gate:close(id)
  local slot = self.slots[id]
  if slot and slot.held then slot.closing = slot.closing or {} end
end

--- now: the child with session `id` has really ended.
function Gate:leave(id)
  local slot = self.slots[id]
  if not slot then return end
  self.slots[id] = nil
  for _, task in ipairs(slot.closing or {}) do coroutine.resume(task) end
  if slot.held then
    slot.held = false
    self.running = self.running - 1
    admit(self)
  end
end

--- now: session `id` begins to wait for children of its own. An agent without a slot (a primary) lends nothing.
function Gate:lend(id)
  local slot = self.slots[id]
  if not slot then return end
  slot.lent = slot.lent + 1
  if slot.held then
    slot.held = false
    self.running = self.running - 1
    admit(self)
  end
end

--- await: its children have ended; it goes on once there is room, before everyone who waits to begin.
function Gate:take_back(id)
  local slot = self.slots[id]
  if not slot then return end
  slot.lent = slot.lent - 1
  if slot.lent > 0 or slot.held then return end
  wait_turn(self, true)
  if self.slots[id] == slot then
    slot.held = true
  else
    self.running = self.running - 1
    admit(self)
  end
end

--- now: how many wait.
function Gate:waiting() return #self.queue end

return M
