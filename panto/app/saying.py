"""What is said to people on stderr."""

from __future__ import annotations

import sys


def say_error(message: str, hint: str = "") -> None:
    """One clear line on stderr, and the way out below it."""
    print(f"panto: {message}", file=sys.stderr)
    if hint:
        print(f"       {hint}", file=sys.stderr)
