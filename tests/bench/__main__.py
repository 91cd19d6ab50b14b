"""python -m tests.bench [--quick] [--only ROW] [--server URL] [--python PATH] [--runs N]

Prints every row for panto. The screen's rows need Linux (they read /proc); a full run takes about six minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from tests.bench import headless, screen, yardsticks
from tests.bench.figures import HEAD, Figure, line
from tests.bench.place import Place, without_click

ROWS: dict[str, Callable[[Place], list[Figure]]] = {
    "version": headless.version,
    "request": headless.first_request,
    "delta": headless.delta,
    "gap": headless.gap,
    "parallel": headless.parallel,
    "size": headless.size,
    "usable": screen.usable,
    "idle": screen.rest,
    "flood": screen.flood,
    "long": screen.long,
    "steady": screen.steady,
    "keys": screen.keys,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="How fast panto is on this machine.")
    parser.add_argument("--quick", action="store_true", help="fewer runs and shorter waits: a first impression")
    parser.add_argument("--only", action="append", choices=[*ROWS], metavar="ROW", help=f"one of {', '.join(ROWS)}")
    parser.add_argument("--server", metavar="URL", help="another model server with these markers, /_reset and /_stats")
    parser.add_argument("--python", metavar="PATH", help="an interpreter that has panto (default: one without click)")
    parser.add_argument("--runs", type=int, metavar="N", help="repetitions of the quick measurements")
    return parser.parse_args()


def main() -> int:
    """Measures and prints; returns 1 if a row could not be measured, else 0, whatever the figures are."""
    given = arguments()
    python = given.python or without_click()
    failed = 0
    with Place(python, server=given.server, quick=given.quick) as place:
        place.runs = given.runs or place.runs
        place.run(*place.panto, "--version")  # compiles what is not compiled yet
        place.prompt("FAKE(hello)")
        print(HEAD, flush=True)
        measured = yardsticks.measure(place)
        base = {figure.title: figure.value for figure in measured}
        for figure in measured:
            print(line(figure, {}, 0), flush=True)
        slower = yardsticks.reference(base)
        load = os.getloadavg()[0]
        print(f"\nload {load:.1f}; `there`: the machine of the goals, {slower:.2f} times slower by the yardsticks\n")
        for name in given.only or ROWS:
            try:
                for figure in ROWS[name](place):
                    print(line(figure, base, slower), flush=True)
            except (RuntimeError, OSError, ValueError, IndexError) as error:
                failed = 1
                print(f"{name}: not measured: {error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
