"""Taking a provider's key in the prompt's place: nothing of it is shown, kept or remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.events import Key

from panto.schema.ops import Login
from panto.schema.queries import AskCompletions
from panto.tui.draft import clean
from panto.tui.widgets.composer import Desk, is_edit

if TYPE_CHECKING:
    from panto.tui.app import PantoApp


class KeyDesk(Desk):
    """Stands behind the masked text. Enter stores, Escape leaves, everything that is not editing is left alone."""

    def __init__(self, app: PantoApp, provider: str) -> None:
        self._app = app
        self._provider = provider

    def key(self, event: Key) -> bool:
        """Nothing but editing, Enter and the ways out."""
        if event.key == "enter":
            key = self._app.reply.draft.text.strip()
            if key:
                self.end()
                self._app.link.submit(Login(self._provider, key))
                self._app.say(f"trying the key of {self._provider}", key="login")
            return True
        if event.key in ("escape", "ctrl+c"):
            self.end()
            return True
        typed = bool(event.character) and not event.key.startswith(("ctrl+", "alt+"))
        return event.key not in ("home", "end") and not is_edit(event.key) and not typed

    def pasted(self, text: str) -> None:
        """A key is one word, whatever blanks came along."""
        self._app.reply.draft.insert("".join(clean(text).split()))
        self._app.reply.touched()

    def end(self) -> None:
        """Forget the text, and the prompt comes back."""
        app = self._app
        app.signing = None
        app.reply.masked, app.reply.placeholder = False, ""
        app.reply.clear()
        app.reply.draft.killed = ""
        app.reply.desk = Desk()
        app.reply.display, app.composer.display = False, True
        app.rule.left = ""
        app.back_to_prompt()


async def sign_in(app: PantoApp, provider: str) -> None:
    """Ask for the key of a provider; without a name, for the name."""
    if not provider:
        app.composer.set_text("/login ")
        return
    names = await app.link.ask(AskCompletions("login", ""), quiet=True) or ()
    if names and provider not in names:
        app.say(f"no provider {provider}", "attention", "there are: " + ", ".join(names))
        return
    if app.signing is not None or app.question.held is not None:
        return
    app.signing = desk = KeyDesk(app, provider)
    app.reply.desk = desk
    app.reply.clear()
    app.reply.masked = True
    app.reply.placeholder = "paste or type the key; Enter stores it, Esc leaves"
    app.rule.left = f"key for {provider}"
    app.composer.display, app.reply.display = False, True
    app.reply.focus()
    app.rule.redraw()
