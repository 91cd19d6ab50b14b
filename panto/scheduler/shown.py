"""The card of an extension's slash command: it is there once the command says how far it is."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from panto.schema.bodies import ToolOutcome
from panto.schema.signals import ShellRun, ToolProgressed, Update
from panto.schema.view import View


class Shown:
    """A context manager around the run of one command (`id`), typed as `text`; `hear` gets what readers are told.

    `begun` is called when there is something to show.
    """

    def __init__(
        self, agent: str, id: str, text: str, hear: Callable[[Update], None], begun: Callable[[], None]
    ) -> None:
        self._agent, self._id, self._text, self._hear, self._tell = agent, id, text, hear, begun
        self._begun = False
        self._last: View | None = None

    def progress(self, text: str, view: View | None) -> None:
        """More output text, or a view that replaces the last."""
        if not self._begun:
            self._begun = True
            self._tell()
            self._hear(ShellRun(self._agent, self._id, self._text, slash=True))
        self._last = view or self._last
        self._hear(ToolProgressed(self._agent, self._id, text, view))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._begun:
            outcome = ToolOutcome((), is_error=error is not None, view=self._last)
            self._hear(ShellRun(self._agent, self._id, self._text, outcome, slash=True))
