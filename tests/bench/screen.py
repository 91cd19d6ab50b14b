"""The rows with a screen: usable prompt, rest, floods of text, key echo."""

from __future__ import annotations

import random
import re
import time

from tests.bench.figures import Figure, percentile
from tests.bench.place import Place
from tests.bench.terminal import Terminal
from tests.bench.yardsticks import BARE, READ_WALL

# Characters one cell wide that neither prose nor escape sequences hold: each key's echo can be told from all else.
RARE = [chr(code) for code in (*range(0x0400, 0x0482), *range(0x048A, 0x0500))]
BACKSPACE, PAGE_UP = "\x7f", "\x1b[5~"


def usable(place: Place) -> list[Figure]:
    """Types a key every 20 ms from the start on. Usable: one of them stands on the screen; kept: all do in the end."""
    waits, lost = [], 0
    for _ in range(3 if place.quick else 7):
        with Terminal(place) as terminal:
            typed, at = "", None
            while at is None and len(typed) < len(RARE):
                typed += RARE[len(typed)]
                terminal.type(typed[-1])
                terminal.pump(0.02)
                at = terminal.appeared_any(typed)
            if at is None:
                raise RuntimeError(f"of {len(typed)} keys none showed; on the screen:\n{terminal.text()}")
            waits.append((at - terminal.began) * 1000)
            terminal.quiet()
            shown = "".join(c for c in terminal.text() if c in typed)
            lost = max(lost, 0 if shown == typed else len(typed) - len(shown) or 1)
    note = "every key kept" if not lost else f"{lost} KEYS LOST"
    return [Figure("prompt usable", waits, "ms", 700, 420, yardstick=BARE, note=note)]


def opened(place: Place) -> Terminal:
    """panto with a prompt that is ready for keys and has nothing more to load."""
    terminal = Terminal(place)
    try:
        deadline = time.monotonic() + 30
        key = RARE[0]
        while terminal.appeared(key) is None:
            terminal.type(key)
            terminal.pump(0.2)
            if time.monotonic() > deadline:
                raise RuntimeError(f"no key showed within 30 s; on the screen:\n{terminal.text()}")
        terminal.quiet()
        terminal.type(BACKSPACE * 200)
        terminal.quiet(1.5)
    except BaseException:
        terminal.__exit__()
        raise
    return terminal


def rest(place: Place) -> list[Figure]:
    """An opened panto that nobody touches."""
    seconds = 5.0 if place.quick else 30.0
    with opened(place) as terminal:
        terminal.pump(3)
        memory = terminal.pss()
        began, before = time.monotonic(), terminal.cpu_fine()
        terminal.pump(seconds)
        share = (terminal.cpu_fine() - before) / (time.monotonic() - began) * 100
    return [
        Figure("idle, memory (PSS)", [memory], "MB", 70),
        Figure("idle, CPU", [share], "%", 0.2, note=f"over {seconds:.0f} s"),
    ]


def _send(terminal: Terminal, prompt: str) -> float:
    """Types a prompt and sends it; returns when."""
    terminal.type(prompt)
    terminal.wait_for(prompt, 10)
    terminal.quiet(0.2)
    return terminal.type("\r")


def _flood(terminal: Terminal, count: int) -> tuple[float, float]:
    """Wall seconds from Enter to the last word on the screen, and CPU seconds until all is quiet."""
    before = terminal.cpu()
    sent = _send(terminal, f"FAKE(flood:{count})")
    at = None
    while at is None:
        terminal.quiet(0.4)
        at = terminal.appeared("FLOOD-DONE")
        if time.monotonic() - sent > 180:
            raise RuntimeError(f"the end of {count} deltas did not show; on the screen:\n{terminal.text()}")
    terminal.quiet(0.4)
    return at - sent, terminal.cpu() - before


def _missing(terminal: Terminal, count: int) -> str:
    """Pages up to the beginning and says which of the numbered lines never stood on the screen."""
    wanted = {f"{n:05d}" for n in range(1, count, 12)}
    last = ""
    while (page := terminal.text()) != last:
        wanted -= set(re.findall(r"\b\d{5}\b", page))
        last = page
        terminal.type(PAGE_UP)
        terminal.quiet(0.15)
    return "every line shown" if not wanted else f"{len(wanted)} LINES NOT SHOWN"


def flood(place: Place) -> list[Figure]:
    walls, cpus, note = [], [], ""
    for turn in range(2 if place.quick else 5):
        with opened(place) as terminal:
            wall, cpu = _flood(terminal, 5000)
            if turn == 0 and place.own_server:
                note = _missing(terminal, 5000)
        walls.append(wall)
        cpus.append(cpu)
    return [
        Figure("5,000 deltas on screen, wall", walls, "s", 0.4, yardstick=READ_WALL, note=note),
        Figure("5,000 deltas on screen, CPU", cpus, "s", 0.5, note="typing the prompt included"),
    ]


def long(place: Place) -> list[Figure]:
    """Four times as much; then the echo of keys under that transcript."""
    with opened(place) as terminal:
        wall, cpu = _flood(terminal, 20000)
        note = _missing(terminal, 20000) if place.own_server and not place.quick else ""
        echo = _echo(terminal, 60 if place.quick else 200)
    return [
        Figure("20,000 deltas on screen, wall", [wall], "s", 1.6, note=note),
        Figure("20,000 deltas on screen, CPU", [cpu], "s", 2.0),
        *_echo_figures("after 20,000", echo),
    ]


def steady(place: Place) -> list[Figure]:
    """100 deltas a second, as a model sends them."""
    seconds = 10 if place.quick else 60
    with opened(place) as terminal:
        sent = _send(terminal, f"FAKE(steady:{seconds * 100};rate=100)")
        terminal.pump(1)
        began, before = time.monotonic(), terminal.cpu()
        terminal.pump(sent + seconds - 1 - time.monotonic())
        share = (terminal.cpu() - before) / (time.monotonic() - began) * 100
        if terminal.appeared("-DONE") is not None:
            return [Figure("100 deltas a second, CPU", [float("nan")], "%", note="the server does not know `steady`")]
        terminal.wait_for("STEADY-DONE", 20)
    return [Figure("100 deltas a second, CPU", [share], "%", 8, note=f"over {seconds} s")]


def keys(place: Place) -> list[Figure]:
    """The echo of keys while text streams in, at 100, 1,000 and 5,000 deltas a second."""
    count = 60 if place.quick else 200
    figures = []
    for rate in (100, 1000, 5000):
        with opened(place) as terminal:
            _send(terminal, f"FAKE(steady:{rate * 60};rate={rate})")
            terminal.pump(0.5)
            echo = _echo(terminal, count)
            if terminal.appeared("-DONE") is not None:
                return []
        figures += _echo_figures(f"at {rate:,} a second", echo, 30 if rate < 5000 else 50)
    return figures


def _echo(terminal: Terminal, count: int) -> list[float]:
    """Milliseconds from a key to its echo, for so many keys at a person's uneven pace; each is deleted again."""
    dice = random.Random(5)
    out = []
    terminal.pump(0.1)
    for number in range(count):
        key = RARE[number % len(RARE)]
        code = key.encode()
        sent = terminal.type(key)
        at = terminal.pump(5, lambda data, code=code: code in data)  # type: ignore[misc]
        if at is None:
            raise RuntimeError(f"key {number} was not echoed within 5 s; on the screen:\n{terminal.text()}")
        out.append((at - sent) * 1000)
        terminal.pump(dice.uniform(0.02, 0.06))
        terminal.type(BACKSPACE)
        terminal.pump(dice.uniform(0.02, 0.06))
    return out


def _echo_figures(when: str, echo: list[float], goal: float = 30) -> list[Figure]:
    return [
        Figure(f"key echo {when}, median", echo, "ms", 10),
        Figure(f"key echo {when}, p99", [percentile(echo, 0.99)], "ms", goal),
    ]
