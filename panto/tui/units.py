"""Numbers as people read them: short, with a unit."""

from __future__ import annotations


def seconds(value: float, whole: bool = False) -> str:
    """A duration: "0.1 s" (at least), "12 s", "1 m 04 s", "2 h 05 m"; `whole`: no tenths (a running clock)."""
    value = max(0.0 if whole else 0.1, value)
    if value < 9.95 and not whole:
        return f"{value:.1f}".removesuffix(".0") + " s"
    total = int(value) if whole else round(value)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} m {total % 60:02d} s"
    return f"{total // 3600} h {total % 3600 // 60:02d} m"


def tokens(count: int) -> str:
    """A number of tokens: "84", "0.4k", "12k", "1.2M"."""
    if count < 100:
        return str(count)
    if count < 9_950:
        return f"{count / 1000:.1f}".removesuffix(".0") + "k"
    if count < 999_500:
        return f"{round(count / 1000)}k"
    return f"{count / 1_000_000:.1f}".removesuffix(".0") + "M"


def money(dollars: float) -> str:
    """A cost in USD: "$0.03", "<$0.01", "$12.40"; "" for nothing."""
    if dollars <= 0:
        return ""
    return "<$0.01" if dollars < 0.005 else f"${dollars:.2f}"


def size(count: int) -> str:
    """Bytes: "340 B", "2.1 KB", "14 MB"."""
    if count < 1000:
        return f"{count} B"
    for unit in ("KB", "MB", "GB"):
        scaled = count / 1000
        if scaled < 999.5 or unit == "GB":
            return f"{scaled:.1f} {unit}" if scaled < 9.95 else f"{scaled:.0f} {unit}"
        count = round(scaled)
    return ""


def plural(count: int, word: str) -> str:
    """"1 line", "3 lines"."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
