"""What a measurement gives, and how the table shows it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TIMES = ("s", "ms", "µs", "%")  # units of figures that a slower machine makes larger


@dataclass(frozen=True)
class Figure:
    """One line of the table. `goal` is the largest value that is good enough, None where there is none."""

    title: str
    samples: Sequence[float]
    unit: str
    goal: float | None = None
    later: float | None = None  # the goal after that
    yardstick: str = ""  # title of the figure that this one is a multiple of
    note: str = ""

    @property
    def value(self) -> float:
        return statistics.median(self.samples)


def percentile(samples: Sequence[float], share: float) -> float:
    """The value that this share (0 to 1) of the samples does not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def number(value: float) -> str:
    """Two or three significant digits."""
    size = abs(value)
    if size >= 10:
        return f"{value:.0f}" if size >= 100 else f"{value:.1f}"
    return f"{value:.2g}" if size < 0.1 else f"{value:.2f}"


def _verdict(value: float, figure: Figure) -> str:
    if figure.goal is None:
        return ""
    if figure.later is not None and value < figure.later:
        return "both met"
    return "met" if value < figure.goal else "OVER"


def line(figure: Figure, yardsticks: Mapping[str, float], slower: float) -> str:
    """The figure's line of the table. `slower`: how many times slower the machine is for which the goals were set."""
    spread = f"{number(min(figure.samples))} - {number(max(figure.samples))}" if len(figure.samples) > 1 else ""
    goal = "" if figure.goal is None else f"< {number(figure.goal)}"
    if figure.later is not None:
        goal += f", {number(figure.later)}"
    there = figure.value * slower if figure.unit in TIMES else figure.value
    scaled = f"{number(there):>6} {_verdict(there, figure)}" if slower else ""
    base = yardsticks.get(figure.yardstick)
    ratio = f"{figure.value / base:.1f} x {figure.yardstick}" if base else ""
    return (
        f"{figure.title:<34} {number(figure.value):>7} {figure.unit:<2} {spread:<15} {goal:<11} "
        f"{_verdict(figure.value, figure):<9} {scaled:<16} {ratio}{'; ' if ratio and figure.note else ''}{figure.note}"
    ).rstrip()


HEAD = f"{'what':<34} {'median':>7}    {'spread':<15} {'goal':<11} {'here':<9}  there          against the yardstick"
