"""The real program against a vendor of one protocol that fails as it is told to."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.app.conftest import Panto
from tests.wire_check import WireCheck

IDLE_S = 3
"""The config's idle limit: longer than a machine with much to do keeps a healthy vendor waiting."""
KEY = "canary-5f81c2"


@dataclass(frozen=True)
class Ran:
    """What one run came to."""

    code: int
    records: list[dict[str, Any]]
    errors: str

    @property
    def end(self) -> dict[str, Any]:
        """The last record."""
        assert self.records[-1]["type"] == "turn_ended"
        return self.records[-1]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The records of one type."""
        return [record for record in self.records if record["type"] == kind]


def provider(name: str, vendor: WireCheck) -> str:
    """A provider's part of the config, with one model `m`."""
    return f"""
[providers.{name}]
protocol = "{vendor.protocol}"
base_url = "{vendor.base_url}"
api_key_env = "FAULTY_KEY"
[providers.{name}.models.m]
id = "m"
context = 100000
max_output = 4000
images = true
reasoning = ["low", "high"]
price = {{ input = 1.0, output = 2.0, cache_read = 0.1, cache_write = 1.25 }}
"""


def configure(panto: Panto, vendors: Mapping[str, WireCheck], default: str) -> None:
    """Writes the config: every vendor a provider."""
    head = f'model = "{default}:m"\nmode = "yolo"\n[network]\nidle_s = {IDLE_S}\n'
    panto.config.write_text(head + "".join(provider(name, vendor) for name, vendor in vendors.items()))
    panto.env["FAULTY_KEY"] = KEY


def run(panto: Panto, *words: str) -> Ran:
    """One prompt, told as records."""
    done: subprocess.CompletedProcess[str] = panto("-p", *words, "--output", "stream-json")
    assert KEY not in done.stdout + done.stderr
    return Ran(done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr)


def stored(panto: Panto, session: str, folder: Path) -> list[dict[str, Any]]:
    """The lines of a session's export. The export itself refuses a ledger that is not whole."""
    target = folder / f"{session[:8]}.jsonl"
    done = panto("session", "export", session, str(target))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in target.read_text("utf-8").splitlines()]
