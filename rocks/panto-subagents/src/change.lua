-- A change as git shows it, for steps that look at one. It only reads: what would make git run another program, write a file
-- or look outside the working tree is refused, so that nobody has to be asked.
local panto = require('panto')
local text = require('panto-subagents.text')

local M = {}

local LONGEST = 80000 -- bytes of a change that a step is given
local NEW_FILES = 50

local function refuse(word, why)
  error({ kind = 'usage', message = 'diff: ' .. word .. ': ' .. why }, 0)
end

local function path_of(word)
  if word:find('^[-/:~]') or ('/' .. word .. '/'):find('/../', 1, true) then
    refuse(word, 'a path within the working directory expected')
  end
  return word
end

--- now: words of `git diff` as arguments: revisions, --staged, and paths after --. Raises what else they are.
function M.arguments(words)
  local out, paths = {}, nil
  for word in words:gmatch('%S+') do
    if paths then
      paths[#paths + 1] = path_of(word)
    elseif word == '--' then
      paths = {}
    elseif word == '--staged' or word == '--cached' or word:find('^[%w_@][%w_.@^~{}/-]*$') then
      out[#out + 1] = word
    else
      refuse(word, 'revisions, --staged, and paths after -- expected')
    end
  end
  out[#out + 1] = '--'
  table.move(paths or {}, 1, #(paths or {}), #out + 1, out)
  return out, paths
end

local function git(cwd, ...)
  local argv = { 'git', '--no-optional-locks', '-c', 'core.fsmonitor=false', ... }
  local ok, done = pcall(panto.exec, { argv = argv, cwd = cwd, timeout = 60000 })
  if not ok then
    if text.kind(done) == 'cancelled' then error(done, 0) end
    error({ kind = 'failed', message = 'git cannot be run: ' .. text.problem(done) }, 0)
  end
  if done.code == 0 and done.signal == 0 and not done.timed_out then return done.stdout end
  error({ kind = 'failed', message = 'git: ' .. text.line(done.stderr, 300) }, 0)
end

local function new_files(cwd)
  local names = {}
  for name in git(cwd, 'ls-files', '--others', '--exclude-standard', '-z'):gmatch('[^\0]+') do names[#names + 1] = name end
  if #names == 0 then return '' end
  local more = #names > NEW_FILES and '\n… and ' .. #names - NEW_FILES .. ' more' or ''
  return 'Files that git does not know yet (read them):\n' .. table.concat(names, '\n', 1, math.min(#names, NEW_FILES)) .. more
end

--- await: the change that `words` name, in the folder `cwd`: files and sizes, then the lines. Raises where there is none.
function M.read(cwd, words)
  local arguments, paths = M.arguments(words)
  local shape = { 'diff', '--no-ext-diff', '--no-textconv', '--no-color', '--stat=100', '--patch' }
  local change = git(cwd, table.unpack(table.move(arguments, 1, #arguments, #shape + 1, shape)))
  if #change > LONGEST then
    local cut = '\n… (cut here; the whole change has ' .. #change .. ' bytes: read the files for the rest)'
    change = text.cut(change, LONGEST, cut)
  end
  local about_files_here = arguments[1] == '--' or arguments[1] == 'HEAD' and arguments[2] == '--'
  local unknown = about_files_here and not paths and new_files(cwd) or ''
  if not (change .. unknown):find('%S') then
    error({ kind = 'failed', message = 'there is no change: git diff ' .. words .. ' shows nothing' }, 0)
  end
  return change ~= '' and unknown ~= '' and change .. '\n' .. unknown or change .. unknown
end

return M
