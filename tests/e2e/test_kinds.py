"""Failures that people report of programs like this one, tried on the whole program over every protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.killed import configure, panto, records
from tests.wire_check import PROTOCOLS, Reply, WireCheck
from tests.wire_check.replies import Protocol

CUT: dict[Protocol, tuple[str, ...]] = {
    "openai_chat": ("length", "max_tokens"),
    "openai_responses": ("max_output_tokens", "a reason of tomorrow"),
    "anthropic_messages": ("max_tokens", "model_context_window_exceeded"),
    "google_generate": ("MAX_TOKENS",),
}


def results(done: str) -> list[dict[str, Any]]:
    return [r for r in records(done) if r["type"] == "tool_result"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_call_of_a_reply_that_was_cut_off_runs_however_the_vendor_says_so(
    home: Path, place: Path, protocol: Protocol
) -> None:
    (place / "f").write_text("as it was")
    with WireCheck(protocol) as vendor:
        configure(home, protocol, vendor.base_url)
        write = [("write", {"path": "f", "content": "cut mid wo"})]
        vendor.replies += [Reply(calls=[("read", {"path": "f"})])]
        vendor.replies += [Reply(calls=write, finish=word) for word in CUT[protocol]]
        done = panto(home, place, "-p", "go", "--output", "stream-json")
        told = [r["text"] for r in results(done.stdout)][1:]
        assert [("output limit" in text, "smaller" in text) for text in told] == [(True, True)] * len(CUT[protocol])
        assert (done.returncode, vendor.refusals) == (0, [])
    assert (place / "f").read_text() == "as it was"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ids_that_a_server_leaves_empty_or_uses_twice_are_replaced_for_good(
    home: Path, place: Path, protocol: Protocol
) -> None:
    def echo(*words: str) -> list[tuple[str, dict[str, Any] | str]]:
        return [("bash", {"command": f"echo {word}"}) for word in words]

    with WireCheck(protocol) as vendor:
        configure(home, protocol, vendor.base_url)
        vendor.replies += [
            Reply(calls=echo("a", "b"), ids=["", ""]),
            Reply(calls=echo("c"), ids=["call_0"]),
            Reply(calls=echo("d", "e"), ids=["call_0", "call_0"]),
        ]
        done = panto(home, place, "-p", "go", "--output", "stream-json")
        assert sorted(r["text"] for r in results(done.stdout)) == ["a\n", "b\n", "c\n", "d\n", "e\n"]
        assert len({r["id"] for r in results(done.stdout)}) == 5
        assert panto(home, place, "-p", "more", "--continue").returncode == 0
        assert vendor.refusals == []
        key = {"openai_responses": "input", "google_generate": "contents"}.get(protocol, "messages")
        before, after = (request.body[key] for request in vendor.requests[-2:])
        again = json.dumps(after[: len(before)]).replace(', "cache_control": {"type": "ephemeral"}', "")
        assert again == json.dumps(before).replace(', "cache_control": {"type": "ephemeral"}', "")


def test_a_server_that_reads_far_less_than_was_sent_is_named_once_with_the_setting(home: Path, place: Path) -> None:
    with WireCheck("openai_chat") as vendor:
        configure(home, "openai_chat", vendor.base_url)
        vendor.replies += [Reply("Short.", sent=4096), Reply("Short again.", sent=4096)]
        done = panto(home, place, "-p", "word " * 9000)
        assert (done.returncode, done.stdout) == (0, "Short.\n")
        assert done.stderr.count("the server read 4096 tokens of a prompt of about") == 1
        assert "set context of fake:m" in done.stderr
