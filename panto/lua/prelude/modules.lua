-- `require` in Lua, so that a module's main chunk may wait. Modules remember who loaded them, so that a reload can drop
-- exactly those.
local H = ...
local type, error, next, tostring, pcall, ipairs = type, error, next, tostring, pcall, ipairs
local concat, find, sub, gsub = table.concat, string.find, string.sub, string.gsub
local searchpath, loaded = package.searchpath, package.loaded
local stock_searchers = package.searchers
local load_file, misuse, current = H.load_file, H.misuse, H.current
local open, resume = io.open, coroutine.resume

local roots = {} -- first word of a module's name -> folder of the extension with that name
local by_owner = {} -- owner -> names of the modules it loaded
local loading = {} -- name -> { task, waiters }

--- Where modules are looked for besides: LuaRocks trees, and the system's places for C modules.
function H.set_paths(trees, c_places)
  local path, cpath = {}, {}
  for _, tree in ipairs(trees) do
    path[#path + 1] = tree .. '/share/lua/5.4/?.lua'
    path[#path + 1] = tree .. '/share/lua/5.4/?/init.lua'
    cpath[#cpath + 1] = tree .. '/lib/lua/5.4/?.so'
  end
  for _, place in ipairs(c_places) do cpath[#cpath + 1] = place end
  package.path, package.cpath = concat(path, ';'), concat(cpath, ';')
end

--- Let `name` and `name.x` be found in `folder` (init.lua and x.lua there).
function H.add_root(name, folder) roots[name] = folder end

local function readable(path)
  local file = open(path, 'rb')
  if file then file:close() end
  return file ~= nil
end

local function search_root(name)
  local word, rest = name, ''
  local dot = find(name, '.', 1, true)
  if dot then word, rest = sub(name, 1, dot - 1), sub(name, dot + 1) end
  local folder = roots[word]
  if not folder then return '' end
  local stem = folder .. '/' .. gsub(rest, '%.', '/')
  local tries = rest == '' and { folder .. '/init.lua', folder .. '/' .. word .. '.lua' }
    or { stem .. '.lua', stem .. '/init.lua' }
  for _, path in ipairs(tries) do
    if readable(path) then
      local chunk, problem = load_file(path)
      if not chunk then error(problem, 0) end
      return chunk, path
    end
  end
  return "\n\tno file '" .. concat(tries, "'\n\tno file '") .. "'"
end

local function search_path(name)
  local path, tried = searchpath(name, package.path)
  if not path then return tried end
  local chunk, problem = load_file(path)
  if not chunk then error(problem, 0) end
  return chunk, path
end

local searchers = { stock_searchers[1], search_root, search_path, stock_searchers[3], stock_searchers[4] }
package.searchers = searchers

local function find_loader(name)
  local tried = {}
  for _, search in ipairs(searchers) do
    local loader, extra = search(name)
    if type(loader) == 'function' then return loader, extra end
    if type(loader) == 'string' and loader ~= '' then tried[#tried + 1] = '\n\t' .. gsub(loader, '^%s+', '') end
  end
  misuse("module '" .. name .. "' not found:" .. concat(tried))
end

local function note(name)
  local t = current()
  local owner = t and t.owner
  if owner then
    by_owner[owner] = by_owner[owner] or {}
    by_owner[owner][name] = true
  end
end

--- Drop what `owner` loaded, so that the next require loads it again.
function H.forget_modules(owner)
  for name in next, by_owner[owner] or {} do loaded[name] = nil end
  by_owner[owner] = nil
end

local yield = coroutine.yield
local function wait_for(name, other)
  local t = current()
  if not (t and t.task) or other.task == t then misuse("loop or previous error loading module '" .. name .. "'") end
  other.waiters[#other.waiters + 1] = t.co
  repeat yield() until loading[name] ~= other
  if loaded[name] == nil then misuse("module '" .. name .. "' failed to load in another task") end
  return loaded[name]
end

function require(name)
  if type(name) ~= 'string' then misuse('require: a name expected, got ' .. type(name)) end
  if loaded[name] ~= nil then return loaded[name] end
  if name == 'luv' then return H.require_luv() end
  if loading[name] then return wait_for(name, loading[name]) end
  local loader, extra = find_loader(name)
  local mine = { task = current(), waiters = {} }
  loading[name] = mine
  note(name)
  local ok, result = pcall(loader, name, extra)
  loading[name] = nil
  if ok then
    if result ~= nil then loaded[name] = result elseif loaded[name] == nil then loaded[name] = true end
  end
  for _, co in ipairs(mine.waiters) do resume(co) end
  if not ok then error(result, 0) end
  return loaded[name], extra
end

--- Let modules beside a script be found first.
function H.prepend_path(folder)
  package.path = folder .. '/?.lua;' .. folder .. '/?/init.lua;' .. package.path
end
