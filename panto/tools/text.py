"""Text out of bytes: which encoding, is it text at all, what may be shown, how much of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

MODEL_LIMIT = 30_000
"""Characters of one result that a model is given; the full text goes to a file."""
VIEW_LIMIT = 64_000
"""Characters of one result that a screen is given."""
LINE_LIMIT = 2_000

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8", 1),
    (b"\xff\xfe\x00\x00", "utf-32-le", 4),
    (b"\x00\x00\xfe\xff", "utf-32-be", 4),
    (b"\xff\xfe", "utf-16-le", 2),
    (b"\xfe\xff", "utf-16-be", 2),
)
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"), (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"), (b"MM\x00*", "image/tiff"), (b"SQLite format 3\x00", "SQLite database"),
    (b"%PDF-", "PDF"), (b"PK\x03\x04", "zip archive"), (b"\x1f\x8b", "gzip archive"), (b"\x7fELF", "ELF program"),
    (b"\x28\xb5\x2f\xfd", "zstd archive"), (b"\xfd7zXZ\x00", "xz archive"), (b"BZh", "bzip2 archive"),
    (b"\xca\xfe\xba\xbe", "Java class"), (b"\xcf\xfa\xed\xfe", "Mach-O program"), (b"MZ", "Windows program"),
    (b"\x00asm", "WebAssembly"), (b"OggS", "Ogg media"), (b"ID3", "MP3 audio"), (b"wOF2", "font"), (b"wOFF", "font"),
)  # fmt: skip
_TEXT_CONTROLS = frozenset(b"\t\n\r\f\b\x1b\x0b\x07")


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file's text is written: codec name, its byte order mark, the width of a code unit in bytes."""

    name: str
    bom: bytes = b""
    unit: int = 1

    def encode(self, text: str) -> bytes:
        """Text as bytes of this encoding, without the mark. Raises UnicodeEncodeError."""
        return text.encode(self.name)

    def decode(self, data: bytes) -> str:
        """The file's text without the mark; what cannot be read becomes U+FFFD, so that nothing is lost."""
        return data[len(self.bom) :].decode(self.name, "replace")


UTF8 = Encoding("utf-8")


def kind_of(data: bytes) -> str:
    """A few words for what the first bytes of a binary file say it is ("" if they say nothing)."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((name for magic, name in _MAGIC if data.startswith(magic)), "")


def encoding_of(data: bytes) -> Encoding | None:
    """The encoding of a text file's content; None: not text."""
    for bom, name, unit in _BOMS:
        if data.startswith(bom):
            return Encoding(name, bom, unit)
    if b"\0" in data or data.startswith(b"%PDF-"):
        return _unmarked(data)
    try:
        data.decode("utf-8")
        return UTF8
    except UnicodeDecodeError:
        pass
    if kind_of(data) not in ("", "image/bmp", "Windows program", "font", "MP3 audio", "bzip2 archive"):
        return None
    sample = data[:65_536]
    odd = sum(1 for byte in sample if byte < 32 and byte not in _TEXT_CONTROLS)
    if odd * 100 > len(sample):
        return None
    return UTF8 if _mostly_utf8(sample) else Encoding("latin-1")


def _unmarked(data: bytes) -> Encoding | None:
    """UTF-16 without a byte order mark: mostly Latin letters, so that every other byte is NUL."""
    head = data[:2_000]
    if len(data) % 2 or len(head) < 8:
        return None
    for name, zeros, letters in (("utf-16-le", head[1::2], head[::2]), ("utf-16-be", head[::2], head[1::2])):
        if zeros.count(0) * 10 >= len(zeros) * 9 and not letters.count(0):
            odd = sum(1 for byte in letters if byte < 32 and byte not in _TEXT_CONTROLS)
            return Encoding(name, b"", 2) if not odd else None
    return None


def _mostly_utf8(sample: bytes) -> bool:
    """Whether there are at least as many right multi-byte characters as wrong bytes: by chance they are rare."""
    text = sample.decode("utf-8", "replace")
    wrong = text.count("\ufffd")
    right = sum(1 for char in text if ord(char) > 127) - wrong
    return right >= wrong


_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # control sequences
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # titles, clipboards, device strings
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]",
    re.DOTALL,
)
_CONTROLS = dict.fromkeys((*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0)))
_OVERWRITTEN = re.compile(r"[^\n]*\r(?=[^\n])")


def plain(text: str) -> str:
    """Program output as plain text: no escape sequences, no control characters, a line as it stood last."""
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPE.sub("", text)
    if "\r" in text:
        text = _OVERWRITTEN.sub("", text.replace("\r\n", "\n"))
    return visible(text.translate(_CONTROLS))


def visible(text: str) -> str:
    """Text as it is, but for what a terminal would obey or hide: control characters and such become escapes."""
    if _UNSEEN.search(text) is None:
        return text
    return _UNSEEN.sub(lambda found: "".join(map(_escape, found[0])), text)


def shown(name: str) -> str:
    """A file name fit to print on one line: control characters and undecodable bytes as escapes. See paths.fold."""
    if name.isprintable():
        return name
    return "".join("\\n" if c == "\n" else "\\x09" if c == "\t" else c for c in visible(name))


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8, as file names carry it
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


def one_line(text: str, limit: int = 200) -> str:
    """Text as one bounded, printable line, for cards and questions."""
    line = shown(" ".join(text[: limit * 4].split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def cut_line(line: str, limit: int = LINE_LIMIT) -> str:
    """A long line, cut, saying how much is missing."""
    return line if len(line) <= limit else f"{line[:limit]}… (+{len(line) - limit} characters)"


def both_ends(text: str, limit: int = MODEL_LIMIT, note: str = "") -> str:
    """Text within `limit` characters: a third from its start, the rest from its end, whole lines where possible."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 3], text[-(limit - limit // 3) :]
    head = head[: head.rfind("\n") + 1] or head
    cut = tail.find("\n", 0, len(tail) // 2)
    tail = tail[cut + 1 :]
    left = len(text) - len(head) - len(tail)
    return f"{head}\n… {left:,} characters left out{note} …\n{tail}"


def count(number: int, word: str) -> str:
    """A number with its word: "1 line", "2,000 lines", "3 matches", "4 entries"."""
    if number == 1:
        return f"1 {word}"
    if word.endswith(("ch", "ss")):
        return f"{number:,} {word}es"
    return f"{number:,} {word[:-1]}ies" if word.endswith("ry") else f"{number:,} {word}s"


def size(number: int) -> str:
    """A number of bytes for people."""
    value = float(number)
    for unit in ("bytes", "kB", "MB"):
        if value < 1000:
            return f"{number:,} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
