"""The rows without a screen: start, first request, deltas, tool rounds."""

from __future__ import annotations

from tests.bench.figures import Figure
from tests.bench.place import Place
from tests.bench.yardsticks import BARE, HTTPX, READ_CPU

ROUNDS = 20


def version(place: Place) -> list[Figure]:
    walls = [place.run(*place.panto, "--version").wall * 1000 for _ in range(place.runs)]
    return [Figure("panto --version", walls, "ms", 60, yardstick=BARE)]


def first_request(place: Place) -> list[Figure]:
    """From the start of the process to the server having read the whole request; and the CPU of the whole run."""
    waits, cpus = [], []
    for _ in range(place.runs):
        done = place.prompt("FAKE(hello)")
        waits.append(place.requests()[0]["t0"] - done.began)
        cpus.append(done.cpu)
    return [
        Figure("first request leaves", [w * 1000 for w in waits], "ms", 650, 450, yardstick=HTTPX),
        Figure("hello, CPU", [c * 1000 for c in cpus], "ms", 650, 450, yardstick=HTTPX),
    ]


def delta(place: Place) -> list[Figure]:
    """CPU of a long answer less that of a short one, by the number of deltas between them."""
    count = 5000
    costs = []
    for _ in range(3 if place.quick else 5):
        short, long = place.prompt("FAKE(hello)"), place.prompt(f"FAKE(flood:{count})")
        costs.append((long.cpu - short.cpu) / (count - 20) * 1e6)
    return [Figure("CPU a delta, headless", costs, "µs", 25, yardstick=READ_CPU)]


def gap(place: Place) -> list[Figure]:
    """From the end of an answer that calls a tool to the next request, tool included."""
    gaps: list[float] = []
    for _ in range(1 if place.quick else 3):
        place.prompt(f"FAKE(tools:{ROUNDS};file=hello.txt)")
        seen = place.requests()
        gaps += [(b["t0"] - a["t1"]) * 1000 for a, b in zip(seen, seen[1:], strict=False)]
    return [Figure("gap between tool rounds", gaps, "ms", 10, note=f"{ROUNDS} rounds of one read")]


def parallel(place: Place) -> list[Figure]:
    waits = []
    for _ in range(3 if place.quick else 7):
        place.prompt("FAKE(par:10;file=hello.txt)")
        first, second = place.requests()
        waits.append((second["t0"] - first["t1"]) * 1000)
    return [Figure("10 parallel reads", waits, "ms", 60)]


def size(place: Place) -> list[Figure]:
    place.prompt("FAKE(hello)")
    first = place.requests()[0]
    return [Figure("first request", [first["bytes"] / 1000], "KB", 6, note=f"{first['ntools']} tools")]
