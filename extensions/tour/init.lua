-- The offline tour: a "model" that is a script. A lesson in protocols without a network: `open` gets the whole conversation
-- and returns a stream. This file is read at every start, the guide itself when somebody takes the tour.
local ext = require('panto').ext

ext.register_protocol {
  name = 'tour',
  models = { guide = { id = 'guide', context = 200000 } },
  open = function(request, handle) return require('tour.guide')(request, handle) end,
}
