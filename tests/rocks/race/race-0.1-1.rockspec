rockspec_format = "3.0"
package = "race"
version = "0.1-1"
source = { url = "git+https://example.org/race.git", tag = "v0.1" }
description = { summary = "One prompt to several models; the first answer wins", license = "MIT" }
dependencies = { "lua >= 5.4, < 5.5" }
build = { type = "builtin", modules = { race = "init.lua" } }
