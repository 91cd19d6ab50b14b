"""Many agents on the one owner loop: inboxes, jobs, slash commands, and the client that screens hold.

Floor 4; its door is asyncio's tasks. Its rule: it knows agents, jobs and who opened them; no tree, slot or child
policy. What is decided is read from sessions, never remembered here.
"""

from panto.scheduler.agent import Agent
from panto.scheduler.client import LocalClient
from panto.scheduler.commands import Command, CommandContext, Commands
from panto.scheduler.job import Job, JobResult
from panto.scheduler.scheduler import Scheduler
from panto.scheduler.shared import AgentSettings, NoObserver, Observer, Shared

__all__ = [
    "Agent", "AgentSettings", "Command", "CommandContext", "Commands", "Job", "JobResult", "LocalClient", "NoObserver",
    "Observer", "Scheduler", "Shared",
]  # fmt: skip
