"""What a server's refusals teach about what to leave out: members of the body, tools, images, earlier reasoning."""

from __future__ import annotations

import re
from collections.abc import Sequence

from panto.providers.failure import Failure
from panto.providers.images import Mark, images_in, mark_of
from panto.providers.model import ModelSpec
from panto.providers.names import Names
from panto.schema.messages import Request, ToolSpec

_NUMBERED = re.compile(r"(?:tools|function_?declarations)(?:\[|\.)(\d+)", re.IGNORECASE)
_GEMINI = re.compile(r"function_?declarations\[(\d+)\]", re.IGNORECASE)
_QUOTED = re.compile(
    r"(?:function|tool)s?\.? ?(?:schema for function )?['\"`:]+ ?['\"]?([A-Za-z0-9_.-]+)['\"`]?", re.IGNORECASE
)
_SCHEMA = re.compile(r"schema|declaration|parameter|tools?[.\[]|keyword|pattern", re.IGNORECASE)
_REASONING = re.compile(
    r"signature|thinking['` ]+block|encrypted[ _]content|reasoning['` ]+item|bound to a different conversation"
    r"|item with id|of type 'reasoning'",
    re.IGNORECASE,
)
_IMAGE = re.compile(r"\bimages?\b|image_|inline_?data|media type", re.IGNORECASE)


class Lessons:
    """One server's, for as long as the process lives: a lesson learnt once is not asked for again."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.members: set[str] = set()
        self.images: frozenset[Mark] = frozenset()
        self.voided: dict[int, object] = {}
        """Parts of messages whose signatures were refused, by their id in this process."""
        self._tools: set[ToolSpec] = set()

    def tools(self, request: Request, spec: ModelSpec | None = None) -> tuple[ToolSpec, ...]:
        """The tools without those that were refused (a changed one is tried again); none for a model that has none."""
        if spec is not None and not spec.tools:
            return ()
        if not self._tools:
            return request.tools
        return tuple(tool for tool in request.tools if tool not in self._tools)

    def learn(self, failure: Failure, request: Request, optional: Sequence[str]) -> str | None:
        """What a 400 says about a tool, an image, reasoning or one of the `optional` members; see Wire.adapt."""
        if failure.status not in (0, 400, 404, 413, 422):
            return None
        if failure.kind in ("invalid_request", "not_found") and _REASONING.search(failure.detail):
            return self._forget(request)
        if failure.kind not in ("invalid_request", "overflow"):
            return None
        if failure.kind == "invalid_request":
            if tool := self._blamed(failure.detail, request):
                self._tools.add(tool)
                return f"the tool {tool.name} is switched off: {self.host} refuses it ({failure.detail[:200]})"
            for name in optional:
                if re.search(rf"\b{name}\b", failure.detail) and name not in self.members:
                    self.members.add(name)
                    return ""
        if _IMAGE.search(failure.detail):
            return self._blind(request)
        return None

    def _blamed(self, text: str, request: Request) -> ToolSpec | None:
        tools = self.tools(request)
        if found := _GEMINI.search(text) or _NUMBERED.search(text):
            at = int(found[1])
            return tools[at] if at < len(tools) else None
        if not _SCHEMA.search(text):
            return None
        names = Names(tool.name for tool in tools)
        wire = {names.to_wire(tool.name): tool for tool in tools}
        return next((wire[name] for name in _QUOTED.findall(text) if name in wire), None)

    def _forget(self, request: Request) -> str | None:
        """Without its signatures a conversation goes on; with refused ones it is dead."""
        new = [
            message.parts
            for message in request.messages
            if id(message.parts) not in self.voided and any(getattr(part, "metadata", None) for part in message.parts)
        ]
        if not new:
            return None
        self.voided |= {id(parts): parts for parts in new}
        return f"earlier reasoning is left out: {self.host} refuses it"

    def _blind(self, request: Request) -> str | None:
        """The newest image is the one that is new to the server."""
        left = [image for image in images_in(request) if mark_of(image) not in self.images]
        if not left:
            return None
        self.images |= {mark_of(left[-1])}
        name = left[-1].name or left[-1].media_type
        return f"the image {name} is left out: {self.host} refuses it"
