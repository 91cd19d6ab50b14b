"""What all agents of a process share, handed in once by whoever builds the house."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from panto.agent.approval import Rule
from panto.agent.hooks import Hooks, NoHooks
from panto.agent.ports import Complete, Limits
from panto.agent.prompt import Part
from panto.providers.catalog import Catalog
from panto.schema.queries import SettingRow
from panto.session import Store
from panto.tools.registry import Registry


class Observer(Protocol):
    """Who is told of a session's course: synchronous, in order, never disturbs. See `scheduler.observing`."""

    def observe(self, name: str, event: dict[str, object]) -> None: ...


class NoObserver:
    """Nobody."""

    def observe(self, name: str, event: dict[str, object]) -> None:
        pass


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """From the config. `limits` of a primary's run, `parallel` calls at once, `compact_at` share of the window
    (0 never), `repeat` identical calls before the loop guard, `network`: commands in the sandbox reach it where no rule
    speaks, `default_mode`, `default_model` label ("" none)."""

    limits: Limits = Limits(steps=200)
    parallel: int = 16
    compact_at: float = 0.8
    repeat: int = 3
    network: bool = True
    default_mode: str = "ask"
    default_model: str = ""
    default_reasoning: str = ""


@dataclass(slots=True)
class Shared:
    """The process's own: store, models, tools, rules, and what the outside world hands in.

    `instructions(cwd)` gives (path, text) of the project's rules, outermost first. `attended`: a person or program
    answers questions. `save_rule` writes a rule into the person's config, `save_model` a default model.
    `run_mode`: the permission mode that the command line named: it holds for this run, in whatever session, until a
    person chooses another, and is not recorded ("" none: a session's own, else the default).
    `env_drop`: names of variables that hold credentials, `mask`: their values. `spool`: where full outputs go.
    `export(session, path)` writes a session to a file and says where. `log` takes what no person is shown.
    """

    store: Store
    catalog: Catalog
    complete: Complete
    registry: Registry
    settings: AgentSettings
    rules: tuple[Rule, ...]
    spool: str
    cwd: str
    platform: str
    attended: bool = True
    run_mode: str = ""
    hooks: Hooks = field(default_factory=NoHooks)
    observer: Observer = field(default_factory=NoObserver)
    instructions: Callable[[str], tuple[tuple[str, str], ...]] = lambda cwd: ()
    replaced_parts: Mapping[str, Part] = field(default_factory=dict)
    extra_parts: Callable[[], tuple[Part, ...]] = lambda: ()
    save_rule: Callable[[str], None] = lambda rule: None
    save_model: Callable[[str, str], None] = lambda label, reasoning: None
    env_drop: frozenset[str] = frozenset()
    env_pass: frozenset[str] = frozenset()
    mask: Callable[[], tuple[str, ...]] = lambda: ()
    settings_rows: Callable[[], tuple[SettingRow, ...]] = lambda: ()
    export: Callable[[str, str], Awaitable[str]] | None = None
    log: Callable[[str], None] = lambda text: None


__all__ = ["AgentSettings", "NoObserver", "Observer", "Shared"]
