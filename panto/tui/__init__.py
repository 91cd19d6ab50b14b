"""The terminal people live in: a full-screen client of one engine.

Its door is the terminal (Textual draws, its own thread reads); its rule: everything a person does becomes an op,
everything shown comes from `subscribe` and `ask`, and nothing here decides anything about a session. It imports the
schema and nothing behind it. `early` draws a first frame before anything heavy is loaded; `run` is the application.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from panto.tui.life import Farewell, run
    from panto.tui.settings import ScreenSettings

__all__ = ["Farewell", "ScreenSettings", "run"]


def __getattr__(name: str) -> object:
    # Lazy: importing this door must not import Textual, since `early` draws before that is loaded.
    if name in ("Farewell", "run"):
        from importlib import import_module

        return getattr(import_module("panto.tui.life"), name)
    if name == "ScreenSettings":
        from panto.tui.settings import ScreenSettings

        return ScreenSettings
    raise AttributeError(f"panto.tui has no {name}")
