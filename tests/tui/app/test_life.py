"""The screen's beginning where there is nothing to draw on."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from panto.schema.errors import UsageError
from panto.tui import early
from panto.tui.life import run
from panto.tui.settings import ScreenSettings
from tests.tui.stub_client import StubClient


async def connect() -> StubClient:
    return StubClient()


def test_without_a_terminal_the_screen_says_what_to_do_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert early.start(early.EarlyGreeting()) is None
    with pytest.raises(UsageError, match="no terminal"):
        asyncio.run(run(connect, None, ScreenSettings()))


def test_the_first_frame_needs_nothing_heavy() -> None:
    code = "import sys, panto.tui.early; print(*sorted(set(sys.modules) - set(sys.builtin_module_names)))"
    loaded = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, '.'); {code}"],
                            capture_output=True, text=True, check=True).stdout.split()  # fmt: skip
    heavy = {"asyncio", "textual", "rich", "msgspec", "dataclasses", "inspect", "json", "logging"}
    assert not heavy & set(loaded), heavy & set(loaded)
