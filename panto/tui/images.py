"""Images that come by paste or drag: terminals hand over a path, quoted in one way or another."""

from __future__ import annotations

import asyncio
import shlex
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

from panto.schema.messages import Image

LARGEST = 20_000_000
_KINDS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")


def pasted_paths(text: str) -> list[Path]:
    """The image paths that a pasted text consists of; empty when it is anything else."""
    text = text.strip()
    if not text or len(text) > 4096 or "\n" in text or not text.lower().rstrip("'\"").endswith(_SUFFIXES):
        return []
    if Path(text).expanduser().is_file():
        return [Path(text).expanduser()]
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    paths = [Path(unquote(urlsplit(word).path) if word.startswith("file://") else word).expanduser() for word in words]
    return paths if all(path.suffix.lower() in _SUFFIXES and path.is_file() for path in paths) else []


def image_at(path: Path) -> Image | str:
    """The image in a file, or what is wrong with it."""
    try:
        if path.stat().st_size > LARGEST:
            return f"{path.name}: over {LARGEST // 1_000_000} MB, too large for an image"
        data = path.read_bytes()
    except OSError as error:
        return f"{path.name}: {error.strerror}"
    kind = next((kind for mark, kind in _KINDS.items() if data.startswith(mark)), "")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "image/webp"
    if not kind:
        return f"{path.name}: not an image that models take (PNG, JPEG, GIF, WebP)"
    return Image(kind, data, path.name)


_CLIPBOARDS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)


async def clipboard_image() -> Image | None:
    """The picture on the clipboard, None where there is none or no program that hands it out."""
    for command in _CLIPBOARDS:
        if shutil.which(command[0]) is None:
            continue
        quiet = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *command, stdin=quiet, stdout=asyncio.subprocess.PIPE, stderr=quiet
        )
        try:
            data, _ = await asyncio.wait_for(process.communicate(), 3.0)
        except TimeoutError:
            process.kill()
            continue
        if data.startswith(b"\x89PNG") and len(data) <= LARGEST:
            return Image("image/png", data, "clipboard.png")
    return None
