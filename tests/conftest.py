"""What every test stands on: its own empty home, no credentials, two sizes of effort, and a local model server.

`PANTO_TEST_PROFILE` is `ci` (default) or `long`; it sets how many examples hypothesis tries and whether the cases
marked `long` run. Under `ci` a test marked `@pytest.mark.long(sample=3)` keeps three of its cases (default one, 0:
none), chosen by `PANTO_TEST_SEED` (default 0), the same ones on every run with that seed. Nothing is ever skipped.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.fake_model import FakeModel

PROFILE = os.environ.get("PANTO_TEST_PROFILE", "ci")
SEED = os.environ.get("PANTO_TEST_SEED", "0")

# Health checks measure speed, and a loaded machine is slow; no result may depend on that.
_CALM = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large]
hypothesis.settings.register_profile(
    "ci", max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=_CALM
)
hypothesis.settings.register_profile(
    "long", max_examples=2000, deadline=None, database=None, print_blob=True, suppress_health_check=_CALM
)
hypothesis.settings.load_profile(PROFILE)

_SECRET = re.compile(r"(API_?KEY|_TOKEN|_SECRET|_PASSWORD|_CREDENTIALS?|ACCESS_KEY(_ID)?)$", re.IGNORECASE)
_FOREIGN = ("PANTO_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "AWS_", "AZURE_", "MISTRAL_", "GIT_", "TMUX")
_KEPT = ("PANTO_TEST_PROFILE", "PANTO_TEST_SEED")
_SESSION_WIDE = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of this test's own, returned as a path; every folder panto may write to lies below it."""
    for name in list(os.environ):
        foreign = name.startswith(_FOREIGN) and name not in _KEPT
        if foreign or _SECRET.search(name) or name.upper() in _SESSION_WIDE:
            monkeypatch.delenv(name)
    folder = tmp_path / "home"
    places = {
        "HOME": folder,
        "USERPROFILE": folder,
        "PANTO_CONFIG_DIR": folder / "config",
        "PANTO_SESSION_DIR": folder / "sessions",
        "XDG_CONFIG_HOME": folder / ".config",
        "XDG_DATA_HOME": folder / ".local/share",
        "XDG_STATE_HOME": folder / ".local/state",
        "XDG_CACHE_HOME": folder / ".cache",
    }
    folder.mkdir()
    for name, place in places.items():
        monkeypatch.setenv(name, str(place))
    who = {"NAME": "Test", "EMAIL": "test@example.org"}
    for part, value in who.items():
        monkeypatch.setenv(f"GIT_AUTHOR_{part}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{part}", value)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    return folder


@pytest.fixture
def fake_model() -> Iterator[FakeModel]:
    """A running model server on this machine, strict as the vendors are; see tests/fake_model.py."""
    with FakeModel() as server:
        yield server


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Under the profile `ci`, keeps a seeded sample of the cases of each test marked `long`."""
    if PROFILE == "long":
        return
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("long"):
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    dropped: set[pytest.Item] = set()
    for family in families.values():
        mark = family[0].get_closest_marker("long")
        keep = int(mark.kwargs.get("sample", 1)) if mark else 1
        dropped.update(sorted(family, key=_lot)[keep:])
    if dropped:
        config.hook.pytest_deselected(items=[item for item in items if item in dropped])
        items[:] = [item for item in items if item not in dropped]


def _lot(item: pytest.Item) -> str:
    return hashlib.sha256(f"{SEED}:{item.nodeid}".encode()).hexdigest()
