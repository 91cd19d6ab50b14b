"""What vendors say when they refuse, and the kind it becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from panto.providers.failure import Place, explain, read_refusal, server_word, wait_wish
from panto.providers.retry import RetryPolicy, retryable
from panto.schema.errors import ProviderErrorKind


def openai(message: str, code: str = "", type_: str = "") -> dict[str, Any]:
    return {"error": {"message": message, "type": type_ or None, "param": None, "code": code or None}}


def claude(type_: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": type_, "message": message}, "request_id": "req_1"}


def gemini(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


# ruff: noqa: E501 - one case a line
CASES: list[tuple[int, Any, ProviderErrorKind, bool]] = [
    (400, claude("invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"), "overflow", False),
    (400, claude("invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 3"), "overflow", False),
    (401, claude("authentication_error", "invalid x-api-key"), "auth", False),
    (402, claude("billing_error", "Your credit balance is too low"), "quota", False),
    (400, claude("invalid_request_error", "Your credit balance is too low to access the API"), "quota", False),
    (403, claude("permission_error", "not allowed"), "permission", False),
    (404, claude("not_found_error", "model: nope"), "not_found", False),
    (413, b"<html><title>413</title><body>Request Entity Too Large</body></html>", "overflow", False),
    (429, claude("rate_limit_error", "Number of requests has exceeded your rate limit"), "rate_limited", True),
    (500, claude("api_error", "Internal server error"), "server", True),
    (529, claude("overloaded_error", "Overloaded"), "overloaded", True),
    (504, claude("timeout_error", "took too long"), "timeout", True),
    (400, openai("too long", "context_length_exceeded"), "overflow", False),
    (400, openai("This model's maximum context length is 8192 tokens. However"), "overflow", False),
    (400, openai("Your input exceeds the context window of this model."), "overflow", False),
    (400, openai("x", "unsupported_parameter", "invalid_request_error"), "invalid_request", False),
    (400, openai("flagged", "content_policy_violation"), "content_filter", False),
    (401, openai("Incorrect API key provided", "invalid_api_key"), "auth", False),
    (404, openai("The model does not exist", "model_not_found"), "not_found", False),
    (429, openai("Rate limit reached for requests", "rate_limit_exceeded", "requests"), "rate_limited", True),
    (429, openai("You exceeded your current quota", "insufficient_quota"), "quota", False),
    (503, openai("Slow Down"), "overloaded", True),
    (400, gemini(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), "auth", False),
    (400, gemini(400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8)."),
     "overflow", False),
    (402, gemini(402, "RESOURCE_EXHAUSTED", "prepaid credit used up"), "quota", False),
    (403, gemini(403, "PERMISSION_DENIED", "no"), "permission", False),
    (429, gemini(429, "RESOURCE_EXHAUSTED", "slow", {"@type": "RetryInfo", "retryDelay": "27s"}), "rate_limited", True),
    (429, gemini(429, "RESOURCE_EXHAUSTED", "slow", {"violations": [{"quotaId": "RequestsPerDayPerProject"}]}), "quota", False),
    (503, gemini(503, "UNAVAILABLE", "The model is overloaded."), "overloaded", True),
    (500, [gemini(500, "INTERNAL", "An internal error has occurred.")], "server", True),
    (400, {"error": {"code": 400, "message": "the request exceeds the available context size", "n_ctx": 512,
                     "type": "exceed_context_size_error"}}, "overflow", False),
    (503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, "overloaded", True),
    (400, {"object": "error", "message": "Input length (9) exceeds model's maximum context length (8)."}, "overflow", False),
    (404, {"error": "model 'x' not found, try pulling it first"}, "not_found", False),
    (400, {"error": "The number of tokens is greater than the context length"}, "overflow", False),
    (400, {"code": "invalid", "error": "This model's maximum prompt length is 131072"}, "overflow", False),
    (400, openai("Please reduce the length of the messages or completion."), "overflow", False),
    (422, {"detail": [{"type": "extra_forbidden", "msg": "Extra inputs are not permitted", "loc": ["body", "x"]}]},
     "invalid_request", False),
    (402, openai("Insufficient Balance"), "quota", False),
    (429, {"error": {"code": "1308", "message": "Usage limit reached for 5 hour"}}, "quota", False),
    (400, {"error": {"code": "1261", "message": "Prompt too long"}}, "overflow", False),
    (429, {"error": {"code": "1302", "message": "x"}}, "rate_limited", True),
    (400, openai("litellm.ContextWindowExceededError: x"), "overflow", False),
    (400, openai("Too many requests, too many tokens: slow down. prompt too long"), "rate_limited", True),
    (403, {"error": {"code": 403, "message": "Your input was flagged", "metadata": {"reasons": ["x"]}}}, "permission", False),
    (502, b"Bad Gateway", "server", True),
    (520, b"", "server", True),
    (400, b"", "invalid_request", False),
    (418, b"teapot", "invalid_request", False),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind", "again"), CASES, ids=lambda value: str(value)[:40])
def test_each_vendor_wording_becomes_its_kind(status: int, body: Any, kind: ProviderErrorKind, again: bool) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    failure = explain(Place("p", "api.example", "m"), status, read_refusal(data))
    assert (failure.kind, retryable(failure)) == (kind, again)
    assert failure.status == status
    assert "api.example" in failure.message and str(status) in failure.message and "m" in failure.message


def test_an_error_inside_a_stream_is_judged_by_its_words() -> None:
    place = Place("p", "api.example", "m")
    for body, kind in [
        (claude("overloaded_error", "Overloaded"), "overloaded"),
        (claude("api_error", "oops"), "server"),
        (openai("x", "server_error"), "server"),
        (openai("x", "context_length_exceeded"), "overflow"),
        (openai("x", "insufficient_quota"), "quota"),
        (openai("Provider returned error", "502"), "server"),
    ]:
        assert explain(place, 0, read_refusal(json.dumps(body).encode())).kind == kind


def test_a_gemini_retry_delay_and_the_headers_are_waited_for() -> None:
    body = json.dumps(gemini(429, "RESOURCE_EXHAUSTED", "slow", {"retryDelay": "27.5s"})).encode()
    assert explain(Place("p", "h"), 429, read_refusal(body)).retry_after == 27.5
    assert explain(Place("p", "h"), 429, read_refusal(body), retry_after=3).retry_after == 3
    assert wait_wish({"retry-after": "2"}, 0) == 2
    assert wait_wish({"retry-after": "1.5", "retry-after-ms": "250"}, 0) == 0.25
    assert wait_wish({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 70) == 30
    assert wait_wish({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 200) == 0
    assert wait_wish({"retry-after": "soon"}, 0) is None
    assert wait_wish({}, 0) is None


def test_the_server_word_on_retrying_wins_except_over_quota() -> None:
    place = Place("p", "h")
    assert server_word({"x-should-retry": "false"}) is False and server_word({}) is None
    assert not retryable(explain(place, 500, read_refusal(b"x"), again=False))
    assert retryable(explain(place, 400, read_refusal(b"x"), again=True))
    assert not retryable(explain(place, 429, read_refusal(b'{"error":{"code":"insufficient_quota"}}'), again=True))


def test_waits_double_with_jitter_up_to_a_limit_and_a_wish_counts() -> None:
    steady = RetryPolicy(first_s=1, longest_s=8, dice=lambda: 0.0)
    assert [steady.wait(n, None) for n in (1, 2, 3, 4, 5)] == [1, 2, 4, 8, 8]
    assert RetryPolicy(first_s=1, dice=lambda: 1.0).wait(1, None) == 0.75
    assert steady.wait(1, 100) == 100 and steady.wait(1, 121) is None
