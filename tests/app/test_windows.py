"""What a server's window really is, and what a conversation cost: from the wire to what a person reads."""

from __future__ import annotations

import json

import pytest

from panto.providers.conformance.server import Answer, Seen, json_answer
from tests.app.conftest import Panto
from tests.app.test_login import talking
from tests.e2e.faulty import configure, run
from tests.wire_check import PROTOCOLS, Protocol, Reply, WireCheck


class Llama(WireCheck):
    """A local server that tells its window as llama.cpp does."""

    def _answer(self, seen: Seen) -> Answer:
        if seen.path == "/props":
            return json_answer(json.dumps({"default_generation_settings": {"n_ctx": 4096}}).encode())
        return super()._answer(seen)


def test_a_server_with_a_smaller_window_than_configured_is_said_once_and_believed(panto: Panto) -> None:
    with Llama("openai_chat") as small, WireCheck("openai_chat") as big:
        configure(panto, {"small": small, "big": big}, "big")
        with talking(panto) as talk:
            talk.until("Model big:m")
            talk.say("/model small:m")
            said = talk.until("runs with a window of")
            assert "small:m runs with a window of 4096 tokens, not 100000" in said
            assert "the server's context size sets it" in said
            talk.say("/model big:m")
            talk.say("/model small:m")
            talk.say("hello")
            talk.until("ok")
            talk.end()
        assert talk.heard.count("runs with a window") == 1


def test_a_prompt_that_the_server_cut_is_warned_of_once_with_the_setting(panto: Panto) -> None:
    with WireCheck("openai_chat") as vendor:
        vendor.replies += [Reply("a", sent=4096), Reply("b", sent=4096)]
        configure(panto, {"vendor": vendor}, "vendor")
        ran = run(panto, "word " * 9000)
    (notice,) = ran.of("notice")
    assert "4096" in notice["text"] and "the server's context size" in notice["hint"], notice
    assert ran.code == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_cached_and_reasoning_tokens_and_the_cost_reach_the_person(panto: Panto, protocol: Protocol) -> None:
    with WireCheck(protocol) as vendor:
        vendor.replies += [Reply("One.", reasoning="hm"), Reply("Two.", reasoning="hm")]
        configure(panto, {"vendor": vendor}, "vendor")
        with talking(panto) as talk:
            talk.until("Model vendor:m")
            for word in ("One.", "Two."):
                talk.say("go")
                talk.until(word)
            talk.say("/cost")
            said = talk.until("$")
            talk.end()
    assert "200" in said and "40%" in said and "$0.0002" in said, said


def test_a_file_that_is_there_is_written_over_by_an_export_only_where_that_is_said(panto: Panto) -> None:
    (panto.cwd / "mine.md").write_text("my notes\n")
    with WireCheck("openai_chat") as vendor:
        vendor.replies.append(Reply("One."))
        configure(panto, {"vendor": vendor}, "vendor")
        with talking(panto) as talk:
            talk.until("Model vendor:m")
            talk.say("go")
            talk.until("One.")
            talk.say("/export mine.md")
            assert "/export mine.md ! writes over it" in talk.until("writes over it")
            assert (panto.cwd / "mine.md").read_text() == "my notes\n"
            talk.say("/export mine.md !")
            talk.until("written to")
            talk.end()
    assert "One." in (panto.cwd / "mine.md").read_text()
