"""What a server's refusal means: status, body and headers in, one ProviderError out, for every vendor's wording."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from msgspec import Struct

from panto.schema.errors import ProviderError, ProviderErrorKind


class Failure(ProviderError):
    """A ProviderError with what this room alone needs.

    `again`: the server's own word on retrying (None: by kind). `detail`: the vendor's text, for what adapts a request.
    """

    def __init__(
        self,
        kind: ProviderErrorKind,
        message: str,
        *,
        status: int = 0,
        retry_after: float | None = None,
        hint: str = "",
        again: bool | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(kind, message, status=status, retry_after=retry_after, hint=hint)
        self.again = again
        self.detail = detail


class Place(Struct, frozen=True):
    """Who was asked: for messages and hints."""

    provider: str
    host: str
    model: str = ""


class Refusal(Struct):
    """An error body, whatever its shape: the text, and every code and type word in it."""

    text: str = ""
    words: set[str] = set()
    retry_s: float | None = None

    @property
    def everything(self) -> str:
        return f"{self.text} {' '.join(sorted(self.words))}"


# Compiled when first needed: most processes never see a refusal.
_THROTTLE = r"too many requests|rate[ _-]?limit|throttl"
_OVERFLOW = (
    r"prompt is too long|exceed(s|ed)? context limit|model_context_window_exceeded|context_length_exceeded"
    r"|exceeds? the context window|maximum context length|exceed_context_size|exceeds the available context size"
    r"|exceeds model's maximum context|maximum (number of tokens|prompt length)|input token count|exceeded max context"
    r"|prompt too long|prompt exceeds max length|greater than the context length|reduce the length of the "
    r"(messages|prompt)"
    r"|too large for model with \d+ maximum context|exceeded model token limit|context window exceed"
    r"|contextwindowexceeded"
    r"|exceeds the maximum allowed input length|longer than the model's context length|range of input length should be"
    r"|input is too long|request_too_large|context size has been exceeded"
)
_QUOTA = (
    r"insufficient[_ ](quota|balance|funds|credits?)|billing|exceeded your current quota|quota exceeded for"
    r"|credit balance|out of credits|usage[ _]limit|spend(ing)? limit|plan limit|per ?day"
    r"|payment required|requires more credits"
)
_FILTER = r"content_filter|content_policy|policy_violation|invalid_prompt|bio_policy|moderation"
_OVERLOAD = r"overloaded|over capacity|slow down|high demand|no available|unavailable"
_KEY = r"api[ _-]?key (not valid|invalid|expired)|api_key_invalid|invalid[ _-](x-)?api[ _-]key"
_ZAI = {
    "1113": "quota",
    "1308": "quota",
    "1261": "overflow",
    "1302": "rate_limited",
    "1303": "rate_limited",
    "1305": "overloaded",
}
_BY_STATUS: dict[int, ProviderErrorKind] = {
    400: "invalid_request", 401: "auth", 402: "quota", 403: "permission", 404: "not_found", 405: "not_found",
    408: "timeout", 409: "server", 410: "not_found", 413: "overflow", 415: "invalid_request", 422: "invalid_request",
    429: "rate_limited", 499: "cancelled", 503: "overloaded", 504: "timeout", 529: "overloaded",
}  # fmt: skip


def read_refusal(body: bytes) -> Refusal:
    """The text and code words of an error body of any shape: JSON of any vendor, HTML, plain text, nothing."""
    out = Refusal()
    try:
        value = json.loads(body)
    except ValueError:
        text = re.sub(
            r"<(script|style).*?</\1>|<[^>]+>", " ", body.decode("utf-8", "replace"), flags=re.DOTALL | re.IGNORECASE
        )
        out.text = " ".join(text.split())[:400]
        return out
    texts: list[str] = []
    _gather(value, "", texts, out, 0)
    out.text = " ".join(dict.fromkeys(t for t in texts if t))[:2000]
    return out


def _gather(value: object, key: str, texts: list[str], out: Refusal, depth: int) -> None:
    if depth > 6:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            _gather(item, str(name), texts, out, depth + 1)
    elif isinstance(value, list):
        for item in value[:20]:
            _gather(item, key, texts, out, depth + 1)
    elif isinstance(value, str):
        if key in ("message", "error", "detail", "msg", "raw", "failed_generation"):
            texts.append(value[:1500])
        elif key == "retryDelay" and (seconds := re.fullmatch(r"([\d.]+)s", value)):
            out.retry_s = float(seconds[1])
        elif key in ("code", "type", "status", "reason", "error_code", "quotaId", "param", "loc"):
            out.words.add(value[:120])
    elif isinstance(value, int) and key == "code":
        out.words.add(str(value))


def _says(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def kind_of(status: int, refusal: Refusal) -> ProviderErrorKind:
    """The kind, from the vendor's words first and the status second."""
    text = refusal.everything
    for word in refusal.words:
        if word in _ZAI:
            return _ZAI[word]  # type: ignore[return-value]
    if "tool_use_failed" in refusal.words:  # the model wrote a bad call: another try writes another
        return "malformed"
    if _says(_QUOTA, text) and status in (0, 400, 402, 403, 429):
        return "quota"
    if status == 413:
        return "overflow"
    if _says(_THROTTLE, text) and status in (0, 200, 400, 429, 503):
        return "rate_limited"
    if _says(_OVERFLOW, text) and status not in (401, 403, 404):
        return "overflow"
    if _says(_KEY, text) and status in (0, 200, 400):
        return "auth"
    if _says(_FILTER, text) and status in (0, 200, 400, 403):
        return "content_filter"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if _says(_OVERLOAD, text):
        return "overloaded"
    if status >= 500 or status < 300:
        return "server"
    return "invalid_request"


_ADVICE: dict[ProviderErrorKind, str] = {
    "auth": "Check the key of provider {provider} (its api_key_env, key_command, or `panto login {provider}`).",
    "permission": "The account behind this key may not use {model}; choose another model or ask its owner.",
    "not_found": "Check the model's id and base_url of provider {provider}.",
    "quota": "The account's credit or quota is used up; top it up or choose another provider.",
    "rate_limited": "Wait a moment, or choose another model.",
    "overflow": "The conversation no longer fits the model's context; compact it (/compact) or start anew.",
}


def explain(
    place: Place, status: int, refusal: Refusal, *, retry_after: float | None = None, again: bool | None = None
) -> Failure:
    """The error a person sees: host, model, status, the vendor's words, and the way out."""
    kind = kind_of(status, refusal)
    said = refusal.text[:600] or ", ".join(sorted(refusal.words)) or "no reason given"
    about = f" for {place.model}" if place.model else ""
    number = f" answered {status}" if status >= 300 else " broke the reply off"
    return Failure(
        kind,
        f"{place.host}{number}{about}: {said}",
        status=status if status >= 300 else 0,
        retry_after=retry_after if retry_after is not None else refusal.retry_s,
        hint=_ADVICE.get(kind, "").format(provider=place.provider, model=place.model or "this model"),
        again=again,
        detail=refusal.everything,
    )


def wait_wish(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the headers ask to wait (`retry-after-ms`, `retry-after` in seconds or as a date); None if none.

    `now` is the wall clock in UTC seconds; header names in lower case.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if not value:
            continue
        try:
            return max(0.0, float(value) * unit)
        except ValueError:
            pass
        from email.utils import parsedate_to_datetime  # only where a date came

        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - now)
        except (ValueError, TypeError):
            continue
    return None


def server_word(headers: Mapping[str, str]) -> bool | None:
    """`x-should-retry`, where the server said it."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").lower())
