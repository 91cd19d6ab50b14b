"""One door to the four vendors' rules."""

from __future__ import annotations

from collections.abc import Mapping

from tests.wire_check import anthropic, chat, google, responses
from tests.wire_check.replies import Protocol
from tests.wire_check.rules import Refused, check_text, expect

PROTOCOLS: tuple[Protocol, ...] = ("openai_chat", "openai_responses", "anthropic_messages", "google_generate")
LIMITS = {
    "openai_chat": 20 << 20,
    "openai_responses": 50 << 20,
    "anthropic_messages": 10 << 20,
    "google_generate": 20 << 20,
}


def refusal(
    protocol: Protocol,
    body: object,
    headers: Mapping[str, str] | None = None,
    *,
    path: str = "/models/gemini-4-argon:streamGenerateContent",
    dialect: str = "openai",
    image_limit: int = 0,
) -> str | None:
    """Why the vendor would answer 400 to this body, or None. Header names in lower case."""
    limit = image_limit or LIMITS[protocol]
    try:
        expect(isinstance(body, dict), "the body is not a JSON object")
        assert isinstance(body, dict)
        check_text(body)
        match protocol:
            case "openai_chat":
                chat.check(body, dialect, limit)
            case "openai_responses":
                responses.check(body, limit)
            case "anthropic_messages":
                anthropic.check(body, dict(headers or {}), limit)
            case "google_generate":
                google.check(body, path, limit)
    except Refused as reason:
        return str(reason)
    return None
