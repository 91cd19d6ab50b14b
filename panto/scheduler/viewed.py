"""A session that another process writes, as it is seen from here: everything may be asked, nothing done."""

from __future__ import annotations

from msgspec.structs import replace

from panto.scheduler.agent import Agent, Keeper
from panto.scheduler.shared import Shared
from panto.schema.bodies import AgentSetup
from panto.schema.errors import ViewOnly
from panto.schema.signals import Fact, Noticed, StatusChanged
from panto.session.viewer import Viewer


class Viewed(Agent):
    """An agent of which only the record is here: its facts are followed, its ops raise ViewOnly.

    What it does live (text as it streams) is known to its own process only; each reply is seen once it is durable.
    """

    def __init__(self, shared: Shared, session: Viewer, keeper: Keeper) -> None:
        super().__init__(shared, session, keeper, setup=AgentSetup())
        self._viewer = session
        session.on_holder = self._changed

    @property
    def refusal(self) -> ViewOnly:
        """Why nothing can be done in it."""
        return self._viewer.refusal()

    def status(self) -> StatusChanged:
        """The same, as far as the record shows whether the turn runs or waits."""
        state = self.session.state
        run, held = state.run, self._viewer.holder is not None
        runs = run is not None and (run.phase == "executing" or any(c.state == "executing" for c in run.unfinished))
        mode = state.settings.mode or self.shared.settings.default_mode
        waits = state.turn is not None and not (held and runs)
        return replace(super().status(), busy=held and runs, parked=waits, mode=mode)

    def _changed(self) -> None:
        """Another holds it, nobody does, or it can be followed no further."""
        if (problem := self._viewer.problem) is not None:
            text = f"what happens in this session from here on cannot be shown: {problem.message}"
            self.signal(Noticed(self.id, text, "wrong", problem.hint))
        self._status()

    def _fact(self, fact: Fact) -> None:
        self._tell(fact)  # what is taken back there returns to the composer there
        self._status()
