"""The offline tour: a model that is a script. It shows panto by using it: the tools it calls are the real ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from panto.schema.messages import Message, Request, Text, ToolResult

if TYPE_CHECKING:
    from panto.providers import Http, Provider, ProviderSettings

PROTOCOL = "tour"
MODEL = "tour:guide"
OPENING = "Show me around."
TABLE: dict[str, Any] = {"protocol": PROTOCOL, "models": {"guide": {"id": "guide", "context": 200_000}}}
SCRIPT = Path(__file__).with_name("tour.json")
EACH_S = 0.02
"""Between two pieces of text, so that they are seen to come."""


def make(settings: ProviderSettings, http: Http) -> Provider:
    """The guide as a provider."""
    from panto.providers import Scripted

    script = json.loads(SCRIPT.read_text("utf-8"))
    return Scripted([], name=settings.name, reply=lambda request: _reply(script, settings.name, request))


def _reply(script: list[dict[str, Any]], name: str, request: Request) -> Mapping[str, object]:
    """The next stop of the tour: as many are behind us as the guide has spoken in this session."""
    import tempfile

    spoken = sum(m.role == "assistant" and m.origin is not None and m.origin.provider == name for m in request.messages)
    file = _some_file(request.messages)
    words = {
        "{what}": f"`{file}`" if file else "a file; there is none here, so you see a call fail, and nothing is lost",
        "{file}": file or "README.md",
        "{scratch}": str(Path(tempfile.gettempdir()) / f"panto-tour-{request.session_id[:8] or 'x'}"),
    }
    stop: dict[str, object] = _filled(script[spoken % len(script)], words)
    return {**stop, "each_s": EACH_S}


def _some_file(messages: tuple[Message, ...]) -> str:
    """A file named in the listing: a README if there is one, else the first that looks like text."""
    names: list[str] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResult) and part.name == "ls" and not part.is_error:
                text = "\n".join(piece.text for piece in part.parts if isinstance(piece, Text))
                names = [line.strip() for line in text.splitlines()]
    files = [n for n in names if "." in n and "/" not in n and " " not in n and not n.startswith(".")]
    return next((n for n in files if n.lower().startswith("readme")), next(iter(files), ""))


def _filled(value: Any, words: Mapping[str, str]) -> Any:
    match value:
        case str():
            for word, text in words.items():
                value = value.replace(word, text)
            return value
        case list():
            return [_filled(item, words) for item in value]
        case dict():
            return {key: _filled(item, words) for key, item in value.items()}
        case _:
            return value
