"""What a program printed, looked at only where it is shown: lines are never all split, and long ones never all read."""

from __future__ import annotations

from panto.tui.sanitize import clean_output

_LINE = 4000  # characters of one line that are looked at
_TAIL = 32_000  # characters kept of a running program's output


class Output:
    """A finished text. `count` is its number of lines."""

    __slots__ = ("text", "count")

    def __init__(self, text: str) -> None:
        self.text = text
        end = len(text) - 1 if text.endswith("\n") else len(text)
        self.count = text.count("\n", 0, end) + 1 if text else 0

    def head(self, lines: int) -> list[str]:
        """The first lines, fit to draw."""
        out: list[str] = []
        at = 0
        for _ in range(min(lines, self.count)):
            end = self.text.find("\n", at)
            end = len(self.text) if end < 0 else end
            out.append(_fit(self.text, at, end))
            at = end + 1
        return out

    def tail(self, lines: int) -> list[str]:
        """The last lines, fit to draw."""
        out: list[str] = []
        end = len(self.text) - 1 if self.text.endswith("\n") else len(self.text)
        for _ in range(min(lines, self.count)):
            start = self.text.rfind("\n", 0, end) + 1
            out.append(_fit(self.text, start, end))
            end = start - 1
        return out[::-1]


class Tail:
    """The end of a running program's output; memory is bounded whatever it prints."""

    __slots__ = ("count", "_text")

    def __init__(self) -> None:
        self.count = 0
        self._text = ""

    def add(self, text: str) -> None:
        """More of it."""
        self.count += text.count("\n")
        self._text = (self._text + text[-_TAIL:])[-_TAIL:]

    def last(self, lines: int) -> list[str]:
        """The last lines, fit to draw, without blank ones at the end."""
        return Output(self._text.rstrip("\n ")).tail(lines)


def _fit(text: str, start: int, end: int) -> str:
    back = text.rfind("\r", start, end)
    if back == end - 1:  # only ends the line, or begins writing it anew
        end -= 1
        back = text.rfind("\r", start, end)
    first = max(start, back + 1)
    return clean_output(text[first : min(end, first + _LINE)]).replace("\n", " ")  # other line breaks are none here
