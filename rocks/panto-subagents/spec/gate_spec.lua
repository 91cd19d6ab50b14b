local t = ...
local it, is = t.it, t.is

local function begun(limit)
  local host = t.host()
  return host, host.require('panto-subagents.gate').new(limit)
end

it('lets as many in as there are slots, first come first served', function()
  local host, gate = begun(2)
  local order = {}
  host.run(function()
    for i = 1, 6 do
      host.panto.spawn(function()
        gate:enter('s' .. i)
        order[#order + 1] = i
        host.panto.sleep(300)
        gate:leave('s' .. i)
      end)
    end
  end)
  is(order, { 1, 2, 3, 4, 5, 6 })
  is({ gate.most, gate.running, gate:waiting(), next(gate.slots) }, { 2, 0, 0 })
end)

it('refuses a session in use and waits for one that is closing', function()
  local host, gate = begun(4)
  host.run(function()
    gate:enter('s')
    is(t.fails(function() gate:enter('s') end, 'in use').kind, 'busy')
    gate:close('s')
    local entered
    local task = host.panto.spawn(function() gate:enter('s') entered = true end)
    host.panto.sleep(300)
    is(entered, nil)
    gate:leave('s')
    task:await()
    is(entered, true)
    gate:leave('s')
  end)
  is(gate.running, 0)
end)

it('lends the slot of one that waits for its own, and gives it back before all others', function()
  local host, gate = begun(1)
  local order = {}
  host.run(function()
    gate:enter('parent')
    for _, name in ipairs { 'other', 'another' } do
      host.panto.spawn(function()
        gate:enter(name)
        order[#order + 1] = name
        host.panto.sleep(300)
        gate:leave(name)
      end)
    end
    gate:lend('parent')
    gate:enter('child')
    order[#order + 1] = 'child'
    gate:leave('child')
    host.panto.spawn(function() gate:enter('late') order[#order + 1] = 'late' gate:leave('late') end)
    gate:take_back('parent')
    order[#order + 1] = 'parent'
    gate:leave('parent')
  end)
  is(gate.most, 1)
  is(order[#order], 'late')
  is({ gate.running, gate:waiting() }, { 0, 0 })
end)

it('is lent once however many calls wait', function()
  local host, gate = begun(2)
  host.run(function()
    gate:enter('p')
    gate:lend('p')
    gate:lend('p')
    is(gate.running, 0)
    gate:take_back('p')
    is(gate.running, 0)
    gate:take_back('p')
    is(gate.running, 1)
    gate:leave('p')
    gate:lend('primary has no slot')
    gate:take_back('primary has no slot')
  end)
  is(gate.running, 0)
end)

it('gives a place in the queue and a slot back when the one who waits is stopped', function()
  local host, gate = begun(1)
  host.run(function()
    gate:enter('holder')
    local waiting = host.panto.spawn(function() pcall(gate.enter, gate, 'gone') end)
    host.panto.sleep(200)
    is(gate:waiting(), 1)
    waiting:cancel()
    waiting:await()
    is({ gate:waiting(), gate.slots.gone }, { 0 })
    gate:leave('holder')
    gate:enter('gone')
    gate:leave('gone')
  end)
  is(gate.running, 0)
end)

it('admits nobody too many, whatever happens', function()
  local host, gate = begun(3)
  local seed, inside, most = 5, 0, 0
  local function chance(n) seed = (seed * 1103515245 + 12345) & 0x7fffffff return seed // 65536 % n end
  host.run(function()
    local tasks = {}
    for i = 1, 60 do
      tasks[i] = host.panto.spawn(function()
        local id = 's' .. i
        if not pcall(gate.enter, gate, id) then return end
        inside = inside + 1
        most = math.max(most, inside)
        pcall(host.panto.sleep, 100 * chance(4))
        if chance(3) == 0 then
          inside = inside - 1
          gate:lend(id)
          pcall(host.panto.sleep, 100 * chance(3))
          if not pcall(gate.take_back, gate, id) then return gate:leave(id) end
          inside = inside + 1
          most = math.max(most, inside)
        end
        inside = inside - 1
        gate:leave(id)
      end)
    end
    for i = 1, 40 do
      host.panto.sleep(100)
      if chance(2) == 0 then tasks[chance(60) + 1]:cancel() end
    end
  end)
  is(most <= 3, true)
  is({ gate.running, gate:waiting(), next(gate.slots) }, { 0, 0 })
end)
