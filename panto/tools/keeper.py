"""A small program of its own, one for each panto: it starts commands and outlives panto just long enough to end them.

Run as `python -I -S keeper.py` with a stream socket as its standard input. A request (length, then `marshal`: program
and argv, env, cwd, places of the descriptors 0, 1, 2, limits) comes with descriptors; the first of them is the
command's control socket. For each request the program forks a keeper, which becomes the reaper of everything that
descends from the command, however often it forks or leaves its group. The keeper says on the control socket `pid N`,
`exit STATUS LEFT`, `gone` (nothing is left) or `fail ERRNO WHAT`; it obeys `T` (ask all to end) and `K` (kill all).
End of file on the control socket means that panto is gone: all are asked, and killed after a second.

Only the standard library, nothing of panto: it starts in milliseconds and its environment holds no secrets.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import select
import signal
import socket
import struct
import sys
import time

Limits = dict[int, int]
Request = tuple[list[bytes], dict[bytes, bytes], bytes, tuple[int, int, int], Limits]
_GRACE = 1.0
_DEFAULT = (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that a command gets as if nobody had touched them."""


def serve(server: socket.socket) -> None:
    """Fork a keeper for each request until the other end is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        head, fds, _, _ = socket.recv_fds(server, 4, 8)
        if len(head) < 4:
            return
        length = struct.unpack("!I", head)[0]
        body = b""
        while len(body) < length:
            piece = server.recv(length - len(body))
            if not piece:
                return
            body += piece
        if os.fork() == 0:
            server.close()
            try:
                Keeper(socket.socket(fileno=fds[0]), fds[1:], marshal.loads(body)).run()
            finally:
                os._exit(0)
        for fd in fds:
            os.close(fd)


class Keeper:
    """Stands over one command and all that descends from it."""

    def __init__(self, control: socket.socket, fds: list[int], request: Request) -> None:
        self.control = control
        self.fds = fds
        self.request = request
        self.shell = 0
        self.told = -1  # in the forked child: where it says why it could not become the command
        self.ended = False
        self.wake, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self.wake, False)
        os.setsid()
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER

    def run(self) -> None:
        """Start the command, then serve until nothing of it is left."""
        if not self._start():
            return
        for fd in self.fds:
            os.close(fd)
        while not self._reap():
            ready, _, _ = select.select([self.wake, self.control.fileno()], [], [])
            if self.wake in ready:
                self._drain()
            if self.control.fileno() in ready:
                try:
                    orders = self.control.recv(64)
                except ConnectionError:
                    orders = b""
                if not orders or b"K" in orders:
                    self._end(0.0 if orders else _GRACE)
                elif b"T" in orders:
                    self._tell(signal.SIGTERM)
        self._say("gone")

    def _start(self) -> bool:
        """Start the command: in one go where that can be, since to fork this program costs as much as a shell."""
        argv, env, cwd, stdio, limits = self.request
        if limits or sys.platform != "linux":
            return self._fork()
        for fd in (*self.fds, self.control.fileno()):
            os.set_inheritable(fd, False)
        nothing = os.open(os.devnull, os.O_RDWR)
        places = [(os.POSIX_SPAWN_DUP2, self.fds[place] if place >= 0 else nothing, n) for n, place in enumerate(stdio)]
        what = cwd
        try:
            os.chdir(cwd)
            what = argv[0]
            self.shell = os.posix_spawn(argv[0], argv[1:], env, file_actions=places, setsid=True, setsigdef=_DEFAULT)
        except OSError as e:
            self._say(f"fail {e.errno} {what.decode('utf-8', 'replace')}".replace("\n", " "))
            return False
        os.close(nothing)
        os.chdir("/")
        self._say(f"pid {self.shell}")
        return True

    def _fork(self) -> bool:
        told, tell = os.pipe()
        self.shell = os.fork()
        if self.shell == 0:
            self.told = tell
            try:
                self._become(tell)
            except BaseException as e:  # a forked child must not return into the parent's code
                code = e.errno if isinstance(e, OSError) else 0
                what = e.filename if isinstance(e, OSError) and e.filename else self.request[0][0]
                os.write(self.told, b"%d %s" % (code or 0, what if isinstance(what, bytes) else str(what).encode()))
            finally:
                os._exit(127)
        os.close(tell)
        problem = os.read(told, 4096)
        os.close(told)
        if problem:
            self._say("fail " + problem.decode("utf-8", "replace").replace("\n", " "))
            return False
        self._say(f"pid {self.shell}")
        return True

    def _become(self, tell: int) -> None:
        """In the forked child: become the command. `tell` reports what goes wrong before that."""
        argv, env, cwd, stdio, limits = self.request
        os.setsid()
        signal.set_wakeup_fd(-1)
        for name in _DEFAULT:
            signal.signal(name, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        high = [os.dup(self.fds[place] if place >= 0 else nothing) for place in stdio]
        keep = self.told = os.dup(tell)
        os.set_inheritable(keep, False)
        for number, fd in enumerate(high):
            os.dup2(fd, number)
        os.closerange(3, keep)
        os.closerange(keep + 1, 256)
        if limits:
            import resource

            for kind, most in limits.items():
                resource.setrlimit(kind, (most, most))
        os.chdir(cwd)
        os.execve(argv[0], argv[1:], env)

    def _say(self, text: str) -> None:
        try:
            self.control.sendall(text.encode() + b"\n")
        except OSError:
            pass

    def _drain(self) -> None:
        try:
            while os.read(self.wake, 512):
                pass
        except BlockingIOError:
            pass

    def _reap(self) -> bool:
        """Collect what has ended; true when nothing is left."""
        status = None
        none_left = False
        while True:
            try:
                pid, code = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                none_left = True
                break
            if pid == 0:
                break
            if pid == self.shell:
                status = os.waitstatus_to_exitcode(code)
        if status is not None:
            self.ended = True
            left = 0 if none_left else self._staying()
            self._say(f"exit {status} {left}")
        return none_left and self.ended and (sys.platform == "linux" or not self._group_lives())

    def _staying(self) -> int:
        """How many descendants outlive the command, leaving out those that end with it."""
        for _ in range(10):
            if not (left := len(self._descendants())):
                break
            time.sleep(0.003)
        return left

    def _group_lives(self) -> bool:
        try:
            os.killpg(self.shell, 0)
            return True
        except OSError:
            return False

    def _descendants(self) -> list[int]:
        """All living processes below this one."""
        children: dict[int, list[int]] = {}
        for pid, parent in _parents():
            children.setdefault(parent, []).append(pid)
        out: list[int] = []
        todo = [os.getpid()]
        while todo:
            below = children.get(todo.pop(), [])
            out += below
            todo += below
        return out

    def _tell(self, number: int) -> None:
        if not self.ended:
            _kill(-self.shell, number)
        for pid in self._descendants():
            _kill(pid, number)
            if number == signal.SIGTERM:
                _kill(pid, signal.SIGCONT)

    def _end(self, grace: float) -> None:
        """End everything: ask first where there is time, then kill until nothing is left."""
        if grace:
            self._tell(signal.SIGTERM)
            until = time.monotonic() + grace
            while not self._reap() and time.monotonic() < until:
                select.select([self.wake], [], [], 0.05)
                self._drain()
        for number in (signal.SIGSTOP, signal.SIGSTOP, signal.SIGKILL):  # stopped ones cannot fork away
            self._tell(number)
        until = time.monotonic() + 3
        while not self._reap() and time.monotonic() < until:
            self._tell(signal.SIGKILL)
            select.select([self.wake], [], [], 0.005)
            self._drain()


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def _parents() -> list[tuple[int, int]]:
    """(pid, parent) of every process that has not ended."""
    if not os.path.isdir("/proc/self"):
        import subprocess

        listing = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True).stdout
        return [(int(pid), int(parent)) for pid, parent in (line.split() for line in listing.splitlines())]
    out: list[tuple[int, int]] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                fields = file.read(512).rpartition(b")")[2].split()
        except OSError:
            continue
        if fields and fields[0] not in (b"Z", b"X"):
            out.append((int(name), int(fields[1])))
    return out


if __name__ == "__main__":
    serve(socket.socket(fileno=os.dup(0)))
