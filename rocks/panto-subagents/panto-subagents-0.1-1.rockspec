rockspec_format = "3.0"
package = "panto-subagents"
version = "0.1-1"
source = {
  url = "file://.",
}
description = {
  summary = "Other agents and workflows for panto, on its Lua seam alone",
  detailed = "Needs panto: require('panto') is there only inside it. The specs run on plain Lua 5.4.",
  license = "MIT",
}
dependencies = { "lua ~> 5.4" }
build = {
  type = "builtin",
  modules = {
    ["panto-subagents"] = "src/init.lua",
    ["panto-subagents.background"] = "src/background.lua",
    ["panto-subagents.budget"] = "src/budget.lua",
    ["panto-subagents.by_hand"] = "src/by_hand.lua",
    ["panto-subagents.card"] = "src/card.lua",
    ["panto-subagents.change"] = "src/change.lua",
    ["panto-subagents.child"] = "src/child.lua",
    ["panto-subagents.facts"] = "src/facts.lua",
    ["panto-subagents.files"] = "src/files.lua",
    ["panto-subagents.flow"] = "src/flow.lua",
    ["panto-subagents.gate"] = "src/gate.lua",
    ["panto-subagents.graph"] = "src/graph.lua",
    ["panto-subagents.models"] = "src/models.lua",
    ["panto-subagents.operation"] = "src/operation.lua",
    ["panto-subagents.profiles"] = "src/profiles.lua",
    ["panto-subagents.run"] = "src/run.lua",
    ["panto-subagents.runs"] = "src/runs.lua",
    ["panto-subagents.schema"] = "src/schema.lua",
    ["panto-subagents.script"] = "src/script.lua",
    ["panto-subagents.sessions"] = "src/sessions.lua",
    ["panto-subagents.settings"] = "src/settings.lua",
    ["panto-subagents.text"] = "src/text.lua",
    ["panto-subagents.toml"] = "src/toml.lua",
    ["panto-subagents.worker"] = "src/worker.lua",
    ["panto-subagents.workflows"] = "src/workflows.lua",
    ["panto-subagents.yaml"] = "src/yaml.lua",
  },
  install = { lua = {
    ["panto-subagents.agents.explore"] = "agents/explore.md",
    ["panto-subagents.agents.reviewer"] = "agents/reviewer.md",
    ["panto-subagents.agents.worker"] = "agents/worker.md",
    ["panto-subagents.workflows.map"] = "workflows/map.toml",
    ["panto-subagents.workflows.review"] = "workflows/review.toml",
  } },
}
test = { type = "command", command = "lua5.4 spec/run.lua" }
