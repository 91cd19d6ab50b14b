"""The transcript alone in a real pseudo-terminal of 200x50: python -m tests.bench.tui_transcript_bench [ROW...]

Prints wall and CPU seconds of floods of text, the share of a processor at a steady hundred deltas a second, the time
to a drawn page for a history of ten thousand facts, bytes written while nothing happens, and what very large output
costs. No engine takes part: facts and signals come from a script in the same process, whose own cost is included.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import select
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pyte

ROWS = ("flood5", "flood20", "chunked", "steady", "history", "idle", "line50", "lines1m", "running")
WIDTH, HEIGHT = 200, 50


def main() -> None:
    for name in sys.argv[1:] or ROWS:
        figures, raw = in_terminal(name)
        screen = pyte.Screen(WIDTH, HEIGHT)
        cut = raw.rfind(b"\x1b[?1049l")
        pyte.ByteStream(screen).feed(raw[: cut if cut > 0 else None])
        marker = figures.pop("marker", "")
        shown = any(marker in row for row in screen.display)
        words = "  ".join(f"{key} {value:.4g}" for key, value in figures.items())
        print(f"{name:9} {words}  bytes {len(raw)}" + ("" if shown else "  THE END IS NOT ON THE SCREEN"), flush=True)


def in_terminal(name: str) -> tuple[dict[str, Any], bytes]:
    """Runs one row in a child under a pty; its figures and everything it wrote."""
    out = Path(tempfile.mkdtemp()) / "figures.json"
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8", TEXTUAL_FPS="120")
        os.environ.pop("NO_COLOR", None)
        os.execv(sys.executable, [sys.executable, "-m", "tests.bench.tui_transcript_bench", "--inside", name, str(out)])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    parts = []
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if select.select([fd], [], [], 1.0)[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            parts.append(data)
    os.close(fd)
    os.waitpid(pid, 0)
    return json.loads(out.read_text()), b"".join(parts)


# ---------------------------------------------------------------- in the child


def inside(name: str, out: str) -> None:
    import gc

    from textual.app import App, ComposeResult

    from panto.tui.colours import GLYPHS, palette
    from panto.tui.widgets.scroll import Transcript

    class Stage(App[None]):
        CSS = "Screen { background: ansi_default; overflow: hidden; } Transcript { height: 1fr; }"
        ENABLE_COMMAND_PALETTE = False
        motion = True

        def __init__(self) -> None:
            super().__init__(ansi_color=True)
            self.palette, self.glyphs = palette("dark"), GLYPHS
            self.transcript = Transcript()
            self.figures: dict[str, Any] = {}

        def compose(self) -> ComposeResult:
            yield self.transcript

        def on_mount(self) -> None:
            gc.collect()
            gc.freeze()
            gc.set_threshold(50_000, 20, 100)
            self.run_worker(self.play())

        async def play(self) -> None:
            await asyncio.sleep(0.5)
            await SCENES[name](self.transcript, self.figures)
            await asyncio.sleep(0.3)
            self.exit()

    app = Stage()
    app.run()
    Path(out).write_text(json.dumps(app.figures))


async def drawn(transcript: Any) -> None:
    """Until everything said is on its way to the terminal."""
    while transcript.story.changed:
        await asyncio.sleep(0.002)


def document(size: int) -> str:
    """Headings, paragraphs, lists, fences and tables, about `size` characters."""
    part = (
        "## Section {n}\n\nThe price is added **once per item**, whatever the count; `total` is what changes, and the "
        "rest of this paragraph is here to be wrapped around the end of the line once or twice.\n\n"
        "- first point, short\n- second point with `code` and *weight*\n  - nested, too\n\n"
        "```python\ndef total(items):\n    # all of them\n    return sum(i.price * i.count for i in items)\n```\n\n"
        "| file | lines |\n|---|---:|\n| shop.py | 34 |\n| cart.py | 1200 |\n\n"
    )
    text, n = "", 0
    while len(text) < size:
        n += 1
        text += part.replace("{n}", str(n))
    return text


async def flood(transcript: Any, figures: dict[str, Any], deltas: int, each: int = 60, pause: float = 0.0) -> None:
    from tests.tui.transcript.script import Script

    text = document(deltas * 6)[: deltas * 6] + "\n\nThe very END."
    script = Script(transcript.apply)
    script.time = time.time()
    script.prompt("write a lot")
    await asyncio.sleep(0.1)
    pieces = [text[at : at + 6] for at in range(0, len(text), 6)]
    began, cpu = time.perf_counter(), time.process_time()
    for at in range(0, len(pieces), each):
        for piece in pieces[at : at + each]:
            script.stream(piece, 6)
        await asyncio.sleep(pause)
    script.answer(text)
    await drawn(transcript)
    figures.update(wall=time.perf_counter() - began, cpu=time.process_time() - cpu, marker="The very END.")


async def flood5(transcript: Any, figures: dict[str, Any]) -> None:
    await flood(transcript, figures, 5000)


async def flood20(transcript: Any, figures: dict[str, Any]) -> None:
    await flood(transcript, figures, 20000)


async def chunked(transcript: Any, figures: dict[str, Any]) -> None:
    """5,000 deltas over about a second: frames in between."""
    await flood(transcript, figures, 5000, each=50, pause=0.01)


async def steady(transcript: Any, figures: dict[str, Any]) -> None:
    """A hundred deltas a second for ten seconds."""
    from tests.tui.transcript.script import Script

    script = Script(transcript.apply)
    script.time = time.time()
    script.prompt("write slowly")
    text = document(6000)
    await asyncio.sleep(0.5)
    began, cpu = time.perf_counter(), time.process_time()
    for n in range(1000):
        script.stream(text[n * 6 : n * 6 + 6], 6)
        await asyncio.sleep(max(0.0, began + (n + 1) / 100 - time.perf_counter()))
    figures.update(share=(time.process_time() - cpu) / (time.perf_counter() - began), marker="")


async def history(transcript: Any, figures: dict[str, Any]) -> None:
    """A page of ten thousand facts."""
    from tests.tui.transcript.script import Script, batch_of_reads

    script = Script()
    while len(script.updates) < 10_000:
        script.prompt("one more turn, please")
        batch_of_reads(script)
        script.begin_step()
        script.answer(document(800))
        script.settle()
    script.prompt("the LAST prompt")
    page = script.history()
    began, cpu = time.perf_counter(), time.process_time()
    transcript.load(page)
    await drawn(transcript)
    figures.update(wall=time.perf_counter() - began, cpu=time.process_time() - cpu, marker="the LAST prompt")
    began = time.perf_counter()
    for _ in range(100):
        transcript.page(-1)
        await asyncio.sleep(0)
    figures["page"] = (time.perf_counter() - began) / 100
    transcript.to_end()
    await asyncio.sleep(0.1)
    figures["rss_mb"] = int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


async def idle(transcript: Any, figures: dict[str, Any]) -> None:
    """Ten seconds after a finished turn."""
    from tests.tui.transcript.script import Script

    script = Script(transcript.apply)
    script.prompt("rest")
    script.answer("At REST.")
    script.settle()
    await asyncio.sleep(1)
    driver = transcript.app._driver
    written = 0
    write = driver.write

    def counted(data: str) -> None:
        nonlocal written
        written += len(data)
        write(data)

    driver.write = counted
    cpu = time.process_time()
    await asyncio.sleep(10)
    figures.update(written=written, share=(time.process_time() - cpu) / 10, marker="At REST.")


async def big(transcript: Any, figures: dict[str, Any], text: str) -> None:
    from panto.schema.bodies import ToolOutcome
    from panto.schema.view import TextView
    from tests.tui.transcript.script import Script

    script = Script(transcript.apply)
    script.time = time.time()
    script.prompt("print a lot")
    (call,) = script.answer("", [("bash", {"command": "BIG"})])
    script.start(call)
    await drawn(transcript)
    longest = 0.0
    began = time.perf_counter()
    for at in range(0, len(text), 65536):
        before = time.perf_counter()
        script.progress(call, text[at : at + 65536])
        await asyncio.sleep(0)
        longest = max(longest, time.perf_counter() - before)
    before = time.perf_counter()
    script.complete(call, ToolOutcome((), False, "BIG", "", TextView(text, tail=True)))
    await drawn(transcript)
    longest = max(longest, time.perf_counter() - before)
    before = time.perf_counter()
    transcript.toggle_last()
    await drawn(transcript)
    figures.update(wall=time.perf_counter() - began, longest=longest, open=time.perf_counter() - before, marker="BIG")
    figures["rss_mb"] = int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


async def line50(transcript: Any, figures: dict[str, Any]) -> None:
    await big(transcript, figures, "a" * 50_000_000)


async def lines1m(transcript: Any, figures: dict[str, Any]) -> None:
    await big(transcript, figures, "a line of it\n" * 1_000_000)


async def running(transcript: Any, figures: dict[str, Any]) -> None:
    """One command running silently for ten seconds: what the spinner costs."""
    from tests.tui.transcript.script import Script

    script = Script(transcript.apply)
    script.time = time.time()
    script.prompt("wait")
    (call,) = script.answer("", [("bash", {"command": "sleep 10"})])
    script.start(call)
    await asyncio.sleep(1)
    cpu = time.process_time()
    await asyncio.sleep(10)
    figures.update(share=(time.process_time() - cpu) / 10, marker="sleep 10")


Scene = Callable[[Any, dict[str, Any]], Awaitable[None]]
SCENES: dict[str, Scene] = {
    "flood5": flood5, "flood20": flood20, "chunked": chunked, "steady": steady, "history": history, "idle": idle,
    "line50": line50, "lines1m": lines1m, "running": running,
}  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2], sys.argv[3])
    else:
        main()
