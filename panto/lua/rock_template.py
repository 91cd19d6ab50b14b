"""`panto rock new NAME`: a rock that works, with a test that runs on plain Lua."""

from __future__ import annotations

import re
from pathlib import Path

from panto.schema.errors import UsageError

_FILES = {
    "{name}-0.1-1.rockspec": """\
rockspec_format = "3.0"
package = "{name}"
version = "0.1-1"
source = {{ url = "git+https://example.org/{name}.git", tag = "v0.1" }}
description = {{ summary = "What {name} adds to panto", license = "MIT" }}
dependencies = {{ "lua >= 5.4, < 5.5" }}
build = {{
  type = "builtin",
  modules = {{
    ["{name}"] = "init.lua",
    ["{name}.greeting"] = "greeting.lua",
  }},
}}
""",
    "init.lua": """\
-- What panto loads: registers with panto, and leaves the thinking to modules that run anywhere.
local panto = require('panto')
local greeting = require('{name}.greeting')

panto.ext.register_tool {{
  name = '{tool}_greet',
  description = 'Greets somebody by name.',
  schema = {{ type = 'object', properties = {{ name = {{ type = 'string' }} }}, required = {{ 'name' }} }},
  mutates = false,
  handler = function(args) return greeting.of(args.name, panto.ext.config().word) end,
}}

panto.ext.register_command {{
  name = '{name}',
  description = 'greets whom you name',
  args = 'name',
  handler = function(args) return greeting.of(args) end,
}}
""",
    "greeting.lua": """\
-- Plain Lua: no panto in here, so that it can be tested anywhere.
local greeting = {{}}

--- A greeting for `name`; `word` is "Hello" unless given.
function greeting.of(name, word)
  if not name or name == '' then name = 'world' end
  return (word or 'Hello') .. ', ' .. name .. '!'
end

return greeting
""",
    "spec/run.lua": """\
-- Tests on plain Lua 5.4: lua5.4 spec/run.lua
local folder = arg[0]:match('^(.*)/spec/') or '.'
package.path = folder .. '/?.lua;' .. package.path

-- A panto that only remembers what is registered.
local tools, commands = {{}}, {{}}
package.loaded.panto = {{
  ext = {{
    register_tool = function(t) tools[t.name] = t end,
    register_command = function(c) commands[c.name] = c end,
    config = function() return {{ word = 'Grüezi' }} end,
  }},
}}
package.preload['{name}.greeting'] = function() return dofile(folder .. '/greeting.lua') end
dofile(folder .. '/init.lua')

local function equal(got, wanted)
  if got ~= wanted then error(('expected %q, got %q'):format(wanted, tostring(got)), 2) end
end

equal(tools['{tool}_greet'].handler({{ name = 'Ann' }}), 'Grüezi, Ann!')
equal(commands['{name}'].handler(''), 'Hello, world!')
print('ok')
""",
    "README.md": """\
# {name}

A rock for panto.

    lua5.4 spec/run.lua              its tests, on plain Lua
    panto rock install .             install it

    [extensions]
    rocks = ["{name}"]               load it (config.toml)

    [extension.{name}]
    word = "Hello"                   its settings
""",
}


def make(name: str, parent: Path) -> Path:
    """Write a new rock into `parent`/`name`. Raises UsageError for a bad name or a folder that is there already."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise UsageError(f"{name!r} is no name for a rock", "lower-case letters, digits and single dashes: my-rock")
    folder = parent / name
    if folder.exists():
        raise UsageError(f"{folder} is there already")
    words = {"name": name, "tool": name.replace("-", "_")}
    for path, text in _FILES.items():
        place = folder / path.format(**words)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text.format(**words), encoding="utf-8")
    return folder
