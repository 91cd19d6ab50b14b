"""Images within what every vendor accepts, before they enter a conversation: measured encoded, scaled if need be."""

from __future__ import annotations

import io
from dataclasses import dataclass

from panto.schema.errors import ToolFailure
from panto.tools.text import shown, size

SIDE = 2_000
"""Pixels of the longer side that pass everywhere, whatever the number of images."""
ENCODED = 4_718_592
"""Bytes of base64 (4.5 MiB): below the strictest limit of 5 MiB."""
_FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}


@dataclass(frozen=True, slots=True)
class Picture:
    """A fitted image; `size` is "1200×800", `note` says what it is and whether it was changed."""

    data: bytes
    media_type: str
    size: str
    note: str


def encoded(data: bytes) -> int:
    """Bytes that `data` takes as base64."""
    return (len(data) + 2) // 3 * 4


def fit(data: bytes, name: str) -> Picture:
    """The image as it may be sent. Raises ToolFailure for what cannot be decoded or made small enough."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as image:
            kind = image.format or ""
            still = getattr(image, "n_frames", 1) == 1
            width, height = image.size
            if kind in _FORMATS and still and max(width, height) <= SIDE and encoded(data) <= ENCODED:
                image.verify()
                where = f"{width}×{height}"
                return Picture(data, _FORMATS[kind], where, f"image, {kind.lower()}, {where}, {size(len(data))}")
            image.draft("RGB", (SIDE, SIDE))
            frame = ImageOps.exif_transpose(image)
            frame.load()
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as e:
        raise ToolFailure(f"{shown(name)} cannot be read as an image: {e}") from None
    frame = frame.convert("RGBA" if "A" in frame.getbands() or "transparency" in frame.info else "RGB")
    frame.thumbnail((SIDE, SIDE))
    while True:
        for media_type, made in _tries(frame):
            if encoded(made) <= ENCODED:
                where = f"{frame.width}×{frame.height}"
                was = f"{kind.lower()}, {width}×{height}, {size(len(data))}"
                return Picture(made, media_type, where, f"image, {was}; shown as {media_type[6:]}, {where}")
        if max(frame.size) < 64:
            raise ToolFailure(f"{shown(name)} cannot be made small enough")
        frame.thumbnail((frame.width * 3 // 4, frame.height * 3 // 4))


def _tries(frame: object) -> list[tuple[str, bytes]]:
    """The picture in forms of falling size."""
    from PIL import Image

    assert isinstance(frame, Image.Image)
    out = [("image/png", _save(frame, "PNG"))]
    if encoded(out[0][1]) > ENCODED:
        flat = Image.new("RGB", frame.size, "white")
        flat.paste(frame, mask=frame.getchannel("A") if frame.mode == "RGBA" else None)
        out += [("image/jpeg", _save(flat, "JPEG", quality=quality)) for quality in (85, 60)]
    return out


def _save(frame: object, kind: str, **options: int) -> bytes:
    from PIL import Image

    assert isinstance(frame, Image.Image)
    out = io.BytesIO()
    frame.save(out, kind, **options)
    return out.getvalue()
