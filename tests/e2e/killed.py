"""The real program as a process that is killed: how to start it, watch it, and come back. For tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CONFIG = """
model = "fake:m"
mode = "yolo"
[providers.fake]
protocol = "{protocol}"
base_url = "{url}"
[providers.fake.models.m]
id = "m"
context = {context}
max_output = 4096
"""


def configure(home: Path, protocol: str, url: str, context: int = 200_000) -> None:
    """Write the config of a home whose only model is behind `url`."""
    (home / "config").mkdir(exist_ok=True)
    (home / "config" / "config.toml").write_text(CONFIG.format(protocol=protocol, url=url, context=context))


def environment(home: Path) -> dict[str, str]:
    return os.environ | {"PANTO_CONFIG_DIR": str(home / "config"), "PANTO_SESSION_DIR": str(home / "sessions")}


def panto(home: Path, cwd: Path, *arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run panto to its end."""
    return subprocess.run(
        [sys.executable, "-m", "panto", *arguments], cwd=cwd, env=environment(home), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip


@contextmanager
def started(
    home: Path, cwd: Path, *arguments: str, stdin: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """A running panto in a process group of its own; killed at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "panto", *arguments], cwd=cwd, env=environment(home), stdin=stdin,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def records(output: str) -> list[dict[str, Any]]:
    """Stream-json output as records; every line must be one."""
    return [json.loads(line) for line in output.splitlines()]


def session_id(home: Path, cwd: Path) -> str:
    """The newest session of a directory."""
    listed = records(panto(home, cwd, "session", "list", "--json").stdout)
    return str(listed[0]["id"])


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Wait for something that is sure to come."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)
