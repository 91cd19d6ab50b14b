"""What a measurement gives, and how the table shows it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


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
    """Three significant digits, without an exponent."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2g}" \
        if abs(value) < 0.1 else f"{value:.2f}"


def line(figure: Figure, yardsticks: dict[str, float]) -> str:
    """The figure's line of the table."""
    spread = f"{number(min(figure.samples))} - {number(max(figure.samples))}" if len(figure.samples) > 1 else ""
    goal = "" if figure.goal is None else f"< {number(figure.goal)}"
    if figure.later is not None:
        goal += f", {number(figure.later)}"
    verdict = "" if figure.goal is None else "met" if figure.value < figure.goal else "OVER"
    if figure.later is not None and figure.value < figure.later:
        verdict = "met, both"
    base = yardsticks.get(figure.yardstick)
    ratio = f"{figure.value / base:.1f} x {figure.yardstick}" if base else ""
    return (
        f"{figure.title:<34} {number(figure.value):>7} {figure.unit:<3} {spread:<15} {goal:<13} {verdict:<10} "
        f"{ratio}{'  ' if ratio and figure.note else ''}{figure.note}"
    ).rstrip()


HEAD = f"{'what':<34} {'median':>7}     {'spread':<15} {'goal':<13} {'':<10} against the yardstick"
