"""Inputs: queued until they are delivered, then a prompt in the transcript."""

from __future__ import annotations

from panto.schema import events as e
from panto.schema import messages as m
from panto.schema.bodies import MessageBody
from panto.schema.signals import Fact
from panto.tui.items import NoticeItem, PromptItem
from panto.tui.story import Base, Queued


class InputsPart(Base):
    """The part of a story that follows inputs."""

    def input_fact(
        self, fact: Fact, event: e.InputSubmitted | e.InputWithdrawn | e.InputRejected | e.InputAccepted
    ) -> None:
        """A fact of the input machine, or the delivery."""
        match event:
            case e.InputSubmitted(input=key, source="command"):
                pass  # what goes along with the next prompt: shown with it
            case e.InputSubmitted(input=key, when=when, source=source):
                self.queued.append(Queued(key, self.message_text(fact.body), when, source, _images(fact)))
            case e.InputWithdrawn(input=key):
                self._unqueue(key)
            case e.InputRejected(input=key, reason=reason):
                self._unqueue(key)
                self.notice(f"not sent: {reason}", "attention")
            case e.InputAccepted(run=run, input=key):
                queued = self._unqueue(key)
                by = queued.source if queued is not None else "person"
                text = self.message_text(fact.body) or (queued.text if queued is not None else "")
                if queued is None and text.startswith("I ran `"):
                    self.append(NoticeItem(self.runs.get(run, self.turn), text.split(":\n", 1)[0], detail=text))
                    return
                images = _images(fact) or (queued.images if queued is not None else ())
                self.append(PromptItem(self.runs.get(run, self.turn), text, images, by))

    def _unqueue(self, key: str) -> Queued | None:
        for at, queued in enumerate(self.queued):
            if queued.id == key:
                return self.queued.pop(at)
        return None


def _images(fact: Fact) -> tuple[str, ...]:
    if not isinstance(fact.body, MessageBody):
        return ()
    return tuple(part.name or "image" for part in fact.body.message.parts if isinstance(part, m.Image))
