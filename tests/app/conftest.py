"""The real program as a subprocess, in an isolated home and an own project folder."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass
class Panto:
    """Runs `panto` with `home` as home and `cwd` as the working directory."""

    home: Path
    cwd: Path
    env: dict[str, str] = field(default_factory=dict)
    timeout: float = 60

    @property
    def config(self) -> Path:
        """The user config file, in a folder that exists."""
        (self.home / "config").mkdir(exist_ok=True)
        return self.home / "config" / "config.toml"

    def __call__(self, *words: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """The finished program; its output is decoded as UTF-8, and it must be that."""
        done = subprocess.run(
            self.argv(*words), input=stdin.encode(), capture_output=True, cwd=self.cwd, timeout=self.timeout,
            env=self.environ(**env),
        )  # fmt: skip
        out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "panto", *words]

    def environ(self, **env: str) -> dict[str, str]:
        """This process's environment with `env` set; an empty value takes a variable away."""
        root = str(Path(__file__).resolve().parents[2])
        merged = {**os.environ, "PYTHONPATH": root, "PANTO_LOCAL_SERVERS": "none", **self.env, **env}
        return {name: value for name, value in merged.items() if value}


@pytest.fixture
def panto(home: Path, tmp_path: Path) -> Panto:
    """The program, in an empty project."""
    project = tmp_path / "project"
    project.mkdir()
    return Panto(home, project)
