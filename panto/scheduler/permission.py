"""What an agent may do: its mode, the rules in config, what a person granted, and everything above it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from panto.agent.approval import Mode, Policy, Rule, Verdict, decide, network, request
from panto.tools.tool import Tool

if TYPE_CHECKING:
    from panto.scheduler.agent import Agent


def policy(agent: Agent) -> Policy:
    """What is in force for an agent now; what an opener refuses stays refused for whom it opened."""
    shared = agent.shared
    top = agent
    while top.opener is not None:
        top = top.opener
    grants = tuple(Rule.parse(rule, "allow", "session") for rule in top.session.state.grants.values())
    return Policy(
        mode=cast(Mode, agent.mode),
        rules=(*shared.rules, *grants),
        workspace=os.path.realpath(agent.cwd),
        read_roots=(os.path.realpath(shared.spool),),
        parent=policy(agent.opener) if agent.opener else None,
        network=shared.settings.network,
    )


def judge(agent: Agent, tool: Tool, arguments: Mapping[str, object]) -> Verdict:
    """Whether a call may run. Raises ToolFailure for a path that is ambiguous."""
    return decide(request(tool, arguments, agent.cwd), policy(agent))


def reaches_network(agent: Agent, command: str) -> bool:
    """Whether a command that a model runs may reach the network, where there is a sandbox to keep it from that."""
    return network(command, policy(agent))
