-- The shortest lesson: a tool. Copy this folder to `.panto/extensions/` or your config's `extensions/` and change it.
local panto = require('panto')

panto.ext.register_tool {
  name = 'hello',
  description = 'Greets somebody by name.',
  schema = { type = 'object', properties = { name = { type = 'string' } }, required = { 'name' } },
  mutates = false, -- it changes nothing, so no mode asks for it
  handler = function(args) return 'Hello, ' .. args.name .. '!' end,
}
