"""A real tmux around a real program: keys in, rows out. For what only a terminal that others wrote can tell."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

DEADLINE = 30.0


class Tmux:
    """A tmux server of its own with one window that runs a shell; `run` types a command into it."""

    def __init__(self, folder: Path, size: tuple[int, int] = (120, 36), options: Sequence[str] = (),
                 env: Mapping[str, str] | None = None) -> None:  # fmt: skip
        self._socket = folder / "tmux.sock"
        config = folder / "tmux.conf"
        config.write_text("\n".join(["set -g history-limit 5000", "set -g status off", *options]) + "\n")
        environment = {**os.environ, "LC_ALL": "C.UTF-8", **(env or {})}
        for name in ("TMUX", "NO_COLOR", "COLUMNS", "LINES"):
            environment.pop(name, None)
        start = ["tmux", "-S", str(self._socket), "-f", str(config), "new-session", "-d"]
        shell = "PS1='$ ' bash --norc --noprofile -i"
        subprocess.run([*start, "-x", str(size[0]), "-y", str(size[1]), shell], env=environment, check=True, timeout=30)
        self.see("$")

    def __enter__(self) -> Tmux:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.ask("kill-server")

    def ask(self, *words: str) -> str:
        """What tmux answers to one of its commands."""
        done = subprocess.run(["tmux", "-S", str(self._socket), *words], capture_output=True, text=True, timeout=30)
        return done.stdout

    # --- keys ----------------------------------------------------------------------------------------------------

    def run(self, argv: Sequence[str]) -> None:
        """Type a command into the shell."""
        self.type(shlex.join(argv))
        self.keys("Enter")

    def keys(self, *names: str) -> None:
        """Keys by tmux's names, one after the other as a person presses them."""
        for name in names:
            self.ask("send-keys", name)
            time.sleep(0.06)

    def type(self, text: str) -> None:
        """Characters, a few at a time: what comes in a longer run is taken for a paste."""
        for at in range(0, len(text), 16):
            self.ask("send-keys", "-l", "--", text[at : at + 16])
            time.sleep(0.04)

    def paste(self, text: str) -> None:
        """As a terminal pastes."""
        self.ask("set-buffer", text)
        self.ask("paste-buffer", "-p")

    def resize(self, columns: int, rows: int) -> None:
        """Another window size."""
        self.ask("resize-window", "-x", str(columns), "-y", str(rows))

    # --- what is seen --------------------------------------------------------------------------------------------

    def rows(self, history: bool = False) -> list[str]:
        """The screen's rows, with what scrolled away before them."""
        shown = self.ask("capture-pane", "-p", *(["-S", "-2000"] if history else []))
        return [row.rstrip() for row in shown.split("\n")]

    def text(self, history: bool = False) -> str:
        """The same as one text."""
        return "\n".join(self.rows(history))

    def until(self, true: Callable[[], object], what: str, deadline: float = DEADLINE) -> None:
        """Wait until something holds. Raises AssertionError with the screen when it never does."""
        end = time.monotonic() + deadline
        while time.monotonic() < end:
            if true():
                return
            time.sleep(0.03)
        raise AssertionError(f"never: {what}\n{self.text()}")

    def see(self, text: str) -> None:
        """Wait until this is on the screen."""
        self.until(lambda: text in self.text(), f"{text!r} on the screen")

    def gone(self, text: str) -> None:
        """Wait until this is not on the screen."""
        self.until(lambda: text not in self.text(), f"{text!r} gone")
