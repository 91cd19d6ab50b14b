"""Where a measurement happens: a folder with a home, configuration and files to read, a model server, and panto."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]

CONFIG = """\
model = "fake:bench"
[providers.fake]
protocol = "openai_chat"
base_url = "{url}"
[providers.fake.models.bench]
id = "fake"
context = 4000000
[compaction]
auto = false
"""


@dataclass(frozen=True)
class Finished:
    """One run of a command: when it began (monotonic), its wall and CPU seconds (children included), its output."""

    began: float
    wall: float
    cpu: float
    output: str


class Place:
    """A context manager; `runs` is how often a quick measurement is repeated."""

    def __init__(self, python: str, *, server: str | None = None, quick: bool = False) -> None:
        self.python = python
        self.panto = [python, "-c", "import sys; from panto.app.main import main; sys.exit(main())"]
        script = Path(python).parent / "panto"
        if script.is_file():
            self.panto = [str(script)]
        self.quick = quick
        self.runs = 3 if quick else 9
        self._given = server
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="panto-bench-"))
        self.work = self.folder / "work"
        self.work.mkdir()
        for number in range(20):
            lines = "".join(f"line {line} of file {number}\n" for line in range(40))
            (self.work / f"hello-{number}.txt").write_text(lines)
        url = self._given or self._serve()
        self.root_url = url.rstrip("/").removesuffix("/v1")
        (self.folder / "config").mkdir()
        (self.folder / "config/config.toml").write_text(CONFIG.format(url=f"{self.root_url}/v1"))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("PANTO_", "PYTHON", "XDG_"))}
        self.env |= {
            "HOME": str(self.folder),
            "PANTO_CONFIG_DIR": str(self.folder / "config"),
            "PANTO_SESSION_DIR": str(self.folder / "sessions"),
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LC_ALL": "C.UTF-8",
        }
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.close()
            self._process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _serve(self) -> str:
        argv = [sys.executable, "-m", "tests.fake_model"]
        self._process = subprocess.Popen(
            argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    @property
    def own_server(self) -> bool:
        """True if the server is the project's own, whose scenarios are all known."""
        return self._given is None

    # ------------------------------------------------------------ the server's side

    def reset(self) -> None:
        """Forgets the requests seen so far."""
        request = urllib.request.Request(f"{self.root_url}/_reset", b"{}", {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=10):
            pass

    def requests(self) -> list[dict[str, Any]]:
        """The model requests seen since the last reset, oldest first, with `t0` and `t1` in monotonic seconds."""
        with urllib.request.urlopen(f"{self.root_url}/_stats", timeout=10) as answer:
            seen: list[dict[str, Any]] = json.load(answer)
        return [r for r in seen if "scn" in r]

    # ------------------------------------------------------------ headless runs

    def run(self, *argv: str, fresh: bool = True) -> Finished:
        """Runs a command to its end in the work folder; raises RuntimeError with its output if it fails."""
        if fresh:
            self.reset()
        reader, writer = os.pipe()
        began = time.monotonic()
        process = subprocess.Popen(
            argv, cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.STDOUT
        )
        os.close(writer)
        with open(reader, "rb") as pipe:
            output = pipe.read().decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(argv)} ended with {process.returncode}:\n{output[-2000:]}")
        return Finished(began, wall, usage.ru_utime + usage.ru_stime, output)

    def prompt(self, marker: str) -> Finished:
        """One headless turn with this prompt, checked to have come to its end."""
        done = self.run(*self.panto, "-p", marker)
        if "-DONE" not in done.output:
            raise RuntimeError(f"the answer to {marker} did not arrive whole:\n{done.output[-2000:]}")
        return done


def _output(*argv: str) -> str:
    if not Path(argv[0]).exists():
        return ""
    return subprocess.run(argv, capture_output=True, text=True, cwd="/").stdout.strip()


def without_click() -> str:
    """An interpreter that has panto and not click, which httpx would load with pygments and rich at every start.

    The running one if it is so, else that of `.venv-bench`, made on first use.
    """
    probe = "import importlib.util as u; print(u.find_spec('click') is None and u.find_spec('panto') is not None)"
    if _output(sys.executable, "-c", probe) == "True":
        return sys.executable
    venv = ROOT / ".venv-bench"
    python = venv / "bin/python"
    stamp, wanted = venv / "panto-installed", (ROOT / "pyproject.toml").read_text()
    if _output(str(python), "-c", probe) != "True" or not stamp.is_file() or stamp.read_text() != wanted:
        print("this interpreter has click (the linters need it): making .venv-bench, as users have it", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "-e", str(ROOT)], check=True)
        stamp.write_text(wanted)
    return str(python)
