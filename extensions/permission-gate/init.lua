-- Asks before commands that reach out of the project, also where a rule or mode would allow them. A lesson in hooks:
-- `tool_call` may wait (dialogs do not count), the first block wins, and a hook that fails blocks.
--
--   [extension.permission-gate]
--   commands = ["git push", "npm publish", "rm -rf"]
local ext = require('panto').ext

local words = ext.config().commands
  or { 'git push', 'git reset --hard', 'rm -rf', 'sudo ', 'npm publish', 'cargo publish', 'twine upload' }

ext.on('tool_call', function(event)
  local command = event.name == 'bash' and event.arguments.command
  if type(command) ~= 'string' then return end
  local plain = ' ' .. command:gsub('%s+', ' ')
  for _, word in ipairs(words) do
    if plain:find(word, 1, true) then
      local yes = ext.ui.confirm('Run this command?', { reason = 'it contains "' .. word .. '": ' .. command })
      if yes then return end
      return { block = true, reason = 'the person did not agree to a command with "' .. word .. '"' }
    end
  end
end)
