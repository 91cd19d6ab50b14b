"""How large images may be, by vendor, as data; and which of a request's images cannot go.

Images are scaled before they enter a conversation, by whoever reads them: `SAFE` passes every vendor at any count.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from panto.providers.model import ModelSpec
from panto.schema.messages import Image, Request, ToolResult


class ImageLimits(Struct, frozen=True):
    """`side`: longest edge in pixels; `many_side`: the same with more than `many` images in a request; `encoded`: bytes
    of base64 for one image; `count`: images in a request; `media`: accepted types.
    """

    side: int
    encoded: int
    count: int
    many: int = 0
    many_side: int = 0
    media: tuple[str, ...] = ("image/png", "image/jpeg", "image/webp", "image/gif")


SAFE = ImageLimits(
    side=2000, encoded=4_718_592, count=100, media=("image/png", "image/jpeg", "image/webp", "image/gif")
)
LIMITS: Mapping[str, ImageLimits] = {
    "anthropic_messages": ImageLimits(side=8000, encoded=10_485_760, count=600, many=20, many_side=2000),
    "openai_responses": ImageLimits(side=5500, encoded=52_428_800, count=1500),
    "openai_chat": ImageLimits(side=5500, encoded=20_971_520, count=500),
    "google_generate": ImageLimits(side=8192, encoded=20_971_520, count=3600),
}
Mark = tuple[str, int, int]


def mark_of(image: Image) -> Mark:
    """What tells an image from another in this process."""
    return image.media_type, len(image.data), hash(image.data)


def images_in(request: Request) -> list[Image]:
    """All images of a request, oldest first."""
    out: list[Image] = []
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Image):
                out.append(part)
            elif isinstance(part, ToolResult):
                out.extend(p for p in part.parts if isinstance(p, Image))
    return out


class Gate:
    """Which images of one request go, and what stands for those that do not. `variant` tells one gate from another."""

    def __init__(self, request: Request, spec: ModelSpec, limits: ImageLimits, refused: frozenset[Mark]) -> None:
        self._spec = spec
        self._limits = limits
        images = images_in(request) if spec.images else []
        surplus = {mark_of(i) for i in images[: -limits.count]} if len(images) > limits.count else set[Mark]()
        self._stopped = refused | surplus
        self.variant = (spec.images, self._stopped)

    def stand_in(self, image: Image) -> str:
        """ "" if the image goes; else the text that stands for it."""
        name = image.name or image.media_type
        if not self._spec.images:
            return f"[the image {name} is left out: this model takes no images]"
        if (size := -(-len(image.data) // 3) * 4) > self._limits.encoded:
            return f"[the image {name} is left out: {size} bytes encoded, {self._limits.encoded} at most]"
        if image.media_type not in self._limits.media or not image.data:
            return f"[the image {name} is left out: {image.media_type} is not taken]"
        if self._stopped and mark_of(image) in self._stopped:
            return f"[the image {name} is left out: the provider does not take it]"
        return ""
