-- The progress card: one line a child in the order in which they began, repainted through the component's handle.
local panto = require('panto')
local text = require('panto-subagents.text')

local M = {}
local Card = {}
Card.__index = Card

--- A card for `ctx` (a tool's context), or one that is never shown where there is none. It is shown with its first line.
function M.new(ctx)
  return setmetatable({ ctx = ctx, rows = {}, began = 0, started = os.time(), view = {} }, Card)
end

-- Seconds pass also while nothing happens; the task ends with the call.
local function show(card)
  card.handle = card.ctx:set_component(card:fill())
  panto.spawn(function()
    while card.handle:alive() do
      panto.sleep(1000)
      card:touch()
    end
  end)
end

--- now: a new line; `name` is what the child is called.
function Card:add(name, model)
  local row = { name = name, model = model or '', state = 'waiting', action = 'waits for a free slot', tokens = 0,
    cost = 0, place = math.huge, number = #self.rows + 1 }
  self.rows[#self.rows + 1] = row
  if self.ctx and not self.handle then show(self) end
  return row
end

--- now: this child begins; until something is heard of it, its line says what it is to do.
function Card:begin(row, task)
  self.began = self.began + 1
  row.place, row.started, row.state, row.action = self.began, os.time(), 'running', task
  self:touch()
end

--- now: this child has ended.
function Card:finish(row, state, action)
  row.state, row.action, row.ended = state, action, os.time()
  self:touch()
end

local FRAME_MS = 33

--- now: something on it has changed; the view is made anew once a frame, however much changes.
function Card:touch()
  if not self.handle or self.painting then return end
  self.painting = true
  panto.spawn(function()
    pcall(panto.sleep, FRAME_MS)
    self.painting = false
    self:fill()
    self.handle:invalidate()
  end)
end

--- now: it will not change any more; it is shown as it ended.
function Card:close()
  if not self.handle then return end
  self:fill()
  self.handle:invalidate()
end

local function short_model(label)
  return label:match(':(.+)$') or label
end

local function row_view(row)
  local seconds = row.started and (row.ended or os.time()) - row.started
  local fact = row.tokens > 0 and text.count(row.tokens) or ''
  if seconds then fact = fact .. (fact ~= '' and '\t' or '') .. text.duration(seconds) end
  return { type = 'card', title = row.name .. '\t' .. short_model(row.model) .. '\t' .. text.line(row.action, 120),
    fact = fact, state = row.state }
end

--- now: the tokens and dollars of all lines.
function Card:totals()
  local tokens, cost = 0, 0
  for _, row in ipairs(self.rows) do
    tokens, cost = tokens + row.tokens, cost + row.cost
  end
  return tokens, cost
end

--- now: tokens, dollars and time of the whole as one text.
function Card:fact()
  local tokens, cost = self:totals()
  local parts = { text.count(tokens) }
  parts[#parts + 1] = text.money(cost)
  parts[#parts + 1] = text.duration(os.time() - self.started)
  return table.concat(parts, ' · ')
end

-- A card of many lines shows those that run and the last ones that ended.
local MOST = 60

--- now: bring the view up to date and give it.
function Card:fill()
  local rows = { table.unpack(self.rows) }
  table.sort(rows, function(a, b)
    if a.place ~= b.place then return a.place < b.place end
    return a.number < b.number
  end)
  local counts, children = {}, panto.json.array {}
  for _, row in ipairs(rows) do
    counts[row.state] = (counts[row.state] or 0) + 1
    if #children < MOST then children[#children + 1] = row_view(row) end
  end
  local state = (counts.running or counts.waiting) and 'running' or counts.stopped and 'stopped'
    or counts.failed and 'failed' or 'done'
  self.view.type, self.view.title, self.view.fact = 'card', #rows .. (#rows == 1 and ' child' or ' children'), self:fact()
  self.view.state, self.view.children = state, children
  return self.view
end

return M
