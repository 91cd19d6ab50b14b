"""Sessions that another process writes: the ways that are offered, and what a session that is only viewed shows."""

from __future__ import annotations

import time

from msgspec.structs import replace

from panto.schema.ops import OpenSession
from panto.schema.queries import AskSessions
from panto.schema.signals import Noticed, SessionOwner, Update
from panto.tui.frame import Frame
from panto.tui.now import Now

TYPING_S = 0.8
"""Who typed so lately is not interrupted by a dialog."""
LOOK_S = 5.0
"""Seconds between two looks at who writes the session that is viewed."""


class Viewing(Frame, inherit_bindings=False):
    """The layer between the frame and the actions."""

    def offer_ways(self, owner: SessionOwner, asked_for: bool = True) -> None:
        """Put the ways to a session before the person; unasked only where nothing is being typed."""
        from panto.tui.screens.owned import OwnedScreen

        typing = bool(self.composer.draft.text) or time.monotonic() - self.last_key < TYPING_S
        if asked_for or not (typing or self.screen is not self.main):
            self.push_screen(OwnedScreen(owner, viewing=self.now.read_only and owner.session == self.now.primary))

    def met(self, update: Update) -> Update:
        """A start that met a held session offers the ways; they can also be had later, and the notice says how."""
        if not isinstance(update, Noticed) or update.owner is None:
            return update
        self.offer_ways(update.owner, asked_for=False)
        return replace(update, hint=f"/resume {update.owner.session[:8]}: view, fork or take it over")

    def work_here(self) -> None:
        """Open the session that is viewed for writing: who holds it is asked about, where nobody does it is opened."""
        self.link.submit(OpenSession(self.now.primary))

    def not_sent(self) -> None:
        """Say why a prompt stays where it is."""
        who = f", {self.now.held_by} writes it" if self.now.held_by else ""
        self.say(f"not sent: this session is only viewed here{who}", "attention",
                 "your text is kept; Enter in an empty prompt shows the ways to work in it", "viewed")  # fmt: skip

    async def find_holder(self) -> None:
        """Know who writes the session that is viewed, for as long as it is."""
        now = self.now
        rows = await self.link.ask(AskSessions(), quiet=True) or ()
        if self.now is not now or not now.read_only:
            return
        now.held_by = next((row.owner for row in rows if row.id == now.primary), "")
        self.sync()
        self.set_timer(LOOK_S, lambda: self.look_again(now))

    def look_again(self, now: Now) -> None:
        """The holder may be another by now."""
        if self.now is now:
            self.link.start(self.find_holder())
