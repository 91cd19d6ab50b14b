"""Starting programs so that they can be ended: through a keeper (keeper.py) that outlives panto by a second.

A child has its own session and no terminal; its input is empty unless a descriptor is given. One `Spawner` serves
everything that panto starts: commands, workers, ripgrep.
"""

from __future__ import annotations

import asyncio
import marshal
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from panto.schema.errors import ToolFailure, ToolStop
from panto.tools.tool import ToolContext

_KEEPER = Path(__file__).with_name("keeper.py")

QUIET = {
    "PAGER": "cat", "GIT_PAGER": "cat", "MANPAGER": "cat", "SYSTEMD_PAGER": "", "LESS": "-FRX", "TERM": "dumb",
    "EDITOR": "false", "VISUAL": "false", "GIT_SEQUENCE_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "echo 'no editor here: give the message with -m' >&2; false", "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false", "SSH_ASKPASS_REQUIRE": "never", "SUDO_ASKPASS": "false", "GCM_INTERACTIVE": "never",
    "GH_PROMPT_DISABLED": "1", "DEBIAN_FRONTEND": "noninteractive", "PIP_NO_INPUT": "1",
}  # fmt: skip
"""Variables that keep programs from paging, editing and asking."""


def environment(context: ToolContext, **more: str) -> dict[str, str]:
    """This process's environment for a command: without credentials (but those let pass), with `QUIET`, then `more`."""
    dropped = context.env_drop - context.env_pass
    secret = {value for value in context.mask if len(value) >= 8}
    out = {k: v for k, v in os.environ.items() if k not in dropped and (k in context.env_pass or v not in secret)}
    return out | QUIET | more


class Child:
    """A started program. `exited` becomes its exit code (negative: a signal's number); `left` counts what it left."""

    def __init__(self, control: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._control = control
        self._loop = loop
        self._text = b""
        self.pid = 0
        self.left = 0
        self.started: asyncio.Future[None] = loop.create_future()
        self.exited: asyncio.Future[int] = loop.create_future()
        self.gone = asyncio.Event()
        control.setblocking(False)
        loop.add_reader(control.fileno(), self._hear)

    def terminate(self) -> None:
        """Ask it and all its descendants to end (TERM)."""
        self._order(b"T")

    def kill(self) -> None:
        """Kill it and all its descendants."""
        self._order(b"K")

    def _order(self, word: bytes) -> None:
        with suppress(OSError, ValueError):
            self._control.send(word)

    def _hear(self) -> None:
        try:
            data = self._control.recv(4096)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            self._note(line.decode("utf-8", "replace"))
        if not data:
            self._closed()

    def _note(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        match word:
            case "pid":
                self.pid = int(rest)
                _settle(self.started, None)
            case "exit":
                status, left = rest.split()
                self.left = int(left)
                _settle(self.exited, int(status))
            case "fail":
                number, _, what = rest.partition(" ")
                if not self.started.done():
                    self.started.set_exception(OSError(int(number), os.strerror(int(number)), what))
            case "gone":
                self.left = 0
                self.gone.set()

    def _closed(self) -> None:
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        if not self.started.done():
            self.started.set_exception(ToolStop("the process keeper ended before a command could start"))
        elif not self.exited.done() and not self.started.exception():
            _settle(self.exited, -signal.SIGKILL)
        self.gone.set()


def _settle(future: asyncio.Future[object] | asyncio.Future[int] | asyncio.Future[None], value: object) -> None:
    if not future.done():
        future.set_result(value)  # type: ignore[arg-type]


class Spawner:
    """Starts programs. Its keeper program is started with the first of them; `close` ends everything still running."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._living: set[Child] = set()

    @property
    def keeper(self) -> int | None:
        """The process id of the keeper program, where one runs."""
        return self._process.pid if self._process is not None else None

    def warm(self) -> None:
        """Start the keeper program ahead of need. Cheap, does not wait. Raises ToolStop."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._launch()

    def _launch(self) -> None:
        ours, theirs = socket.socketpair()
        env = {key: os.environ[key] for key in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT") if key in os.environ}
        argv = [sys.executable, "-I", "-S", str(_KEEPER)]
        try:
            with theirs:
                self._process = subprocess.Popen(
                    argv, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, cwd="/",
                    start_new_session=True,
                )  # fmt: skip
        except OSError as e:
            ours.close()
            raise ToolStop(f"no process can be started: {e.strerror}") from None
        self._server = ours

    async def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        limits: Mapping[int, int] | None = None,
    ) -> Child:
        """Start a program; returns when it runs. Descriptors stay the caller's (None: the null device).

        `argv[0]` is looked up in `env`'s PATH. `limits` are resource limits (RLIMIT_* -> value).
        Raises ToolFailure(not_found) where the program or directory is not there, ToolStop where nothing can start.
        """
        program = argv[0] if "/" in argv[0] else shutil.which(argv[0], path=env.get("PATH", os.defpath))
        if program is None:
            raise ToolFailure(f"{argv[0]} is not installed here", "not_found")
        given = [fd for fd in (stdin, stdout, stderr) if fd is not None]
        places = tuple(-1 if fd is None else given.index(fd) for fd in (stdin, stdout, stderr))
        words = [os.fsencode(word) for word in (program, *argv)]
        variables = {os.fsencode(k): os.fsencode(v) for k, v in env.items()}
        body = marshal.dumps((words, variables, os.fsencode(cwd), places, dict(limits or {})))
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        child = Child(ours, loop)
        with theirs:
            self._send(struct.pack("!I", len(body)), body, [theirs.fileno(), *given])
        self._living.add(child)
        child_gone = loop.create_task(child.gone.wait())
        child_gone.add_done_callback(lambda _: self._living.discard(child))
        try:
            await child.started
        except OSError as e:
            raise ToolFailure(f"{e.filename}: {e.strerror}", "not_found") from None
        except asyncio.CancelledError:
            child.kill()
            raise
        return child

    def _send(self, head: bytes, body: bytes, fds: list[int]) -> None:
        for attempt in (1, 2):
            self.warm()
            with self._lock:
                assert self._server is not None
                try:
                    socket.send_fds(self._server, [head], fds)
                    self._server.sendall(body)
                    return
                except OSError as e:
                    self._server.close()
                    self._process = None
                    if attempt == 2:
                        raise ToolStop(f"the process keeper does not answer: {e.strerror}") from None

    def close(self) -> None:
        """Kill everything still running and end the keeper program."""
        for child in tuple(self._living):
            child.kill()
        with self._lock:
            if self._server is not None:
                self._server.close()
                self._server = None
            if self._process is not None:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(2)
                self._process = None


async def end(child: Child, deadline: float | None, *, grace: float = 2.0) -> None:
    """TERM now, KILL `grace` seconds later or 0.2 s before `deadline` (loop time), and wait until nothing is left."""
    now = asyncio.get_running_loop().time()
    wait = grace if deadline is None else max(0.0, min(grace, deadline - 0.2 - now))
    child.terminate()
    try:
        await asyncio.wait_for(child.gone.wait(), wait)
    except TimeoutError:
        child.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(child.gone.wait(), 2 if deadline is None else 0.1)
