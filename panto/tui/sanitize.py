"""Everything from outside passes here before it is drawn, since a terminal obeys what it is sent: only text comes out.

Escape sequences are removed whole; other control characters, C1 controls, direction controls (which make text read
other than it is), invisible format characters and lone surrogates are removed or made visible. Colours in tool output
are dropped as well: on this screen a colour has a meaning.
"""

from __future__ import annotations

import re

TAB = 4

# CSI, then OSC/DCS/SOS/PM/APC up to their terminator (or the end of the line), then two-character sequences; the same
# with the one-byte C1 introducers.
_ESCAPES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]?"
)
_HIDDEN = "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
_REMOVED = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_HIDDEN}]")
_SUSPECT = re.compile(f"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_HIDDEN}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_OVERWRITTEN = re.compile("[^\r\n]*\r(?=[^\r\n])")
_SPACES = re.compile(r"\s+")


def clean(text: str, keep_tabs: bool = False) -> str:
    """`text` safe to draw: lines end in LF, tabs are spaces, nothing in it moves a cursor or hides.

    `keep_tabs`: the text begins within a line, so that only `untab` of the whole line can tell how wide a tab is.
    """
    if _SUSPECT.search(text) is None:
        return text
    text = _ESCAPES.sub("", text)
    text = _BREAKS.sub("\n", text)
    text = _REMOVED.sub("", text)
    text = _SURROGATE.sub("\ufffd", text)
    return text if keep_tabs else untab(text)


def clean_output(text: str) -> str:
    """As `clean`, for what a program printed: a carriage return overwrites its line, as it would have on a terminal."""
    if "\r" in text:
        text = _OVERWRITTEN.sub("", text.replace("\r\n", "\n"))
    return clean(text)


def clean_line(text: str, limit: int = 2000) -> str:
    """`text` as one line of at most `limit` characters: every run of white space is one space."""
    text = text[: limit * 4]
    if _SUSPECT.search(text) is not None:
        text = clean(text)
    return _SPACES.sub(" ", text).strip()[:limit]


def clean_url(url: str) -> str:
    """A link target that may go into a hyperlink sequence, or "" where it may not: known schemes, printable ASCII."""
    url = url.strip()
    if not url.isascii() or not url.isprintable() or " " in url or len(url) > 2000:
        return ""
    scheme = url.partition(":")[0].lower()
    return url if scheme in ("http", "https", "mailto", "file") else ""


def untab(text: str) -> str:
    """`text`, which begins at a line's start, with spaces for tabs."""
    if "\t" not in text:
        return text
    return "\n".join(line.expandtabs(TAB) if "\t" in line else line for line in text.split("\n"))


def sentences(text: str) -> str:
    """Lines as sentences of one line, a stop between them."""
    lines = [clean_line(line).strip() for line in text.split("\n")]
    *first, last = [line for line in lines if line] or [""]
    return " ".join([*(line if line[-1] in ".:!?;," else line + "." for line in first), last])
