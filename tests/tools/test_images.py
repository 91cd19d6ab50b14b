"""Images are within every vendor's limits before they enter a conversation."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest
from PIL import Image as Pillow

from panto.schema.errors import ToolFailure
from panto.schema.messages import Image, Text
from panto.tools.images import ENCODED, SIDE, encoded, fit
from tests.tools.lab import lab, run


def picture(width: int, height: int, kind: str, noise: bool = False, mode: str = "RGB") -> bytes:
    image = Pillow.new(mode, (width, height), "red" if mode == "RGB" else None)
    if noise:
        image = Pillow.frombytes("RGB", (width, height), random.Random(0).randbytes(width * height * 3))
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_small_image_is_sent_byte_for_byte(kind: str) -> None:
    data = picture(40, 30, kind)
    got = fit(data, "x")
    assert (got.data, got.media_type, got.size) == (data, f"image/{kind.lower()}", "40×30")


@pytest.mark.parametrize(
    ("width", "height", "kind", "noise"),
    [(4_000, 1_000, "PNG", False), (1_200, 1_170, "PNG", True), (2_400, 2_400, "JPEG", True), (50, 50, "BMP", False),
     (50, 50, "TIFF", False), (20_000, 10, "PNG", False)],
)  # fmt: skip
def test_other_images_are_scaled_and_recoded_until_they_fit(width: int, height: int, kind: str, noise: bool) -> None:
    data = picture(width, height, kind, noise)
    got = fit(data, "x")
    with Pillow.open(io.BytesIO(got.data)) as image:
        assert max(image.size) <= SIDE and image.format in ("PNG", "JPEG")
        assert abs(image.width / image.height - width / height) / (width / height) < 0.6
    assert encoded(got.data) <= ENCODED
    if noise and kind == "PNG":
        assert len(data) > 4_000_000


def test_of_an_animation_the_first_picture_is_shown() -> None:
    frames = [Pillow.new("RGB", (20, 20), colour) for colour in ("red", "blue")]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    got = fit(out.getvalue(), "x")
    with Pillow.open(io.BytesIO(got.data)) as image:
        assert image.convert("RGB").getpixel((5, 5)) == (255, 0, 0) and got.media_type == "image/png"


def test_what_is_broken_or_a_bomb_is_refused_in_words() -> None:
    for data in (b"\x89PNG\r\n\x1a\nbroken", picture(40, 30, "PNG")[:60], b"\xff\xd8\xff nothing"):
        with pytest.raises(ToolFailure, match="cannot be read as an image"):
            fit(data, "x.png")
    bomb = bytearray(picture(1, 1, "PNG"))
    bomb[16:24] = (60_000).to_bytes(4, "big") * 2
    with pytest.raises(ToolFailure, match="cannot be read as an image"):
        fit(bytes(bomb), "x.png")


def test_read_gives_the_image_and_says_what_it_is(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            (work.cwd / "shot.png").write_bytes(picture(40, 30, "PNG"))
            reply = await work.call("read", path="shot.png")
            text, image = reply.outcome.parts
            assert isinstance(text, Text) and text.text.startswith("shot.png: image, png, 40×30")
            assert isinstance(image, Image) and image.name == "shot.png" and reply.outcome.fact == "40×30"
            assert reply.files[0].before == reply.files[0].after

    run(check())
