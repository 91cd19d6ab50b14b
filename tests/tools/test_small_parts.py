"""Arguments, specs and their size, the registry, masks, plain text, project rules, the sandbox."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panto.schema.errors import ToolFailure, UsageError
from panto.schema.messages import ToolSpec
from panto.tools import arguments, instructions
from panto.tools.builtins import ToolSettings, builtin_tools
from panto.tools.fetch import HttpReply
from panto.tools.masks import HIDDEN, Masker, masked, masked_value
from panto.tools.registry import Registry
from panto.tools.sandbox import Sandbox
from panto.tools.text import both_ends, count, encoding_of, one_line, plain, shown, size
from panto.tools.tool import ToolReply
from tests.tools.lab import lab, run, text_of

SCHEMA = json.dumps({
    "type": "object", "required": ["path", "edits"], "additionalProperties": False,
    "properties": {
        "path": {"type": "string", "minLength": 1}, "limit": {"type": "integer", "minimum": 1, "maximum": 9},
        "mode": {"enum": ["a", "b"]}, "flag": {"type": "boolean"},
        "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "edits": {"type": "array", "minItems": 1, "items": {
            "type": "object", "required": ["old"], "properties": {"old": {"type": "string"}},
            "additionalProperties": False,
        }},
    },
})  # fmt: skip
SPEC = ToolSpec("tool", "", SCHEMA)
GOOD = {"path": "x", "edits": [{"old": "a"}]}


async def no_get(url: str, **more: object) -> HttpReply:
    raise AssertionError


def registry() -> Registry:
    return Registry(builtin_tools(ToolSettings(http_get=no_get)))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "path is missing (string); edits is missing (array)"), ([1], "arguments must be object, not an array"),
        (None, "arguments must be object, not null"), ("x", "arguments must be object, not a string"),
        (GOOD | {"path": 5}, "path must be string, not a number"), (GOOD | {"path": ""}, "path must not be empty"),
        (GOOD | {"edits": []}, "edits must not be empty"), (GOOD | {"edits": [{}]}, "edits[0].old is missing (string)"),
        (GOOD | {"edits": [{"old": "a", "x": 1}]}, "edits[0].x is not an argument; there are old"),
        (GOOD | {"limit": 0}, "limit must be at least 1"), (GOOD | {"limit": 10}, "limit must be at most 9"),
        (GOOD | {"limit": True}, "limit must be integer, not a boolean"), (GOOD | {"limit": 1.5},
        "limit must be integer"),
        (GOOD | {"mode": "c"}, 'mode must be one of "a", "b"'), (GOOD | {"flag": 1},
        "flag must be boolean, not a number"),
        (GOOD | {"other": 1}, "other is not an argument; there are path, limit"), (GOOD | {"either": 3},
        "either must be string"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named_with_what_is_expected(given: object, said: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        arguments.check(SPEC, given)
    assert caught.value.cls == "invalid_input" and said in caught.value.message


def test_right_arguments_pass_and_harmless_habits_of_models_are_met() -> None:
    assert arguments.check(SPEC, GOOD | {"limit": 3.0}) == GOOD | {"limit": 3}
    assert arguments.check(SPEC, GOOD | {"limit": None}) == GOOD
    assert arguments.check(SPEC, GOOD | {"either": None}) == GOOD | {"either": None}
    assert arguments.parse(ToolSpec("t", "", '{"type":"object"}'), "  ") == {}
    with pytest.raises(ToolFailure, match="not JSON: .* position 18"):
        arguments.parse(SPEC, '{"command": "ls", description": 1}')


NAMES = st.sampled_from(["path", "content", "edits", "old", "new", "command", "pattern", "limit", "x"])


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)))  # fmt: skip
def test_no_arguments_whatever_break_the_check(value: object) -> None:
    for tool in builtin_tools(ToolSettings(http_get=no_get)):
        try:
            arguments.check(tool.spec, value)
        except ToolFailure as failure:
            assert failure.message.startswith(tool.spec.name)


def test_all_built_in_tools_together_are_small() -> None:
    specs = registry().specs()
    assert [spec.name for spec in specs] == [
        "read", "write", "edit", "bash", "bash_output", "bash_kill", "grep", "glob", "ls", "ask", "fetch",
    ]  # fmt: skip
    sent = [{"name": s.name, "description": s.description, "input_schema": json.loads(s.schema)} for s in specs]
    assert len(json.dumps(sent, separators=(",", ":"))) < 4_300
    for spec in specs:
        schema = json.loads(spec.schema)
        assert schema["additionalProperties"] is False and spec.description.endswith((".", ")"))


def test_every_tool_says_whether_it_changes_things() -> None:
    declared = {t.spec.name: (t.mutates, t.replay, t.external, t.approval) for t in builtin_tools(ToolSettings())}
    assert declared["bash"] == (True, False, False, "command")
    assert declared["write"] == declared["edit"] == (True, False, False, "edit")
    assert declared["ask"] == (False, False, True, "read")
    assert all(declared[name] == (False, True, False, "read") for name in ("read", "grep", "glob", "ls", "bash_output"))


def test_the_registry_keeps_order_and_takes_an_owners_tools_away_together() -> None:
    tools = registry()
    extra = builtin_tools(ToolSettings())[0]
    with pytest.raises(UsageError, match="built in"):
        tools.add(extra, "mine")
    assert tools.remove("mine") == () and tools.get("nothing") is None
    own = Registry()
    own.add(extra, "mine")
    assert own.owner("read") == "mine" and own.names() == ("read",) and own.remove("mine") == ("read",)
    assert [spec.name for spec in tools.specs(["ls", "read", "nothing"])] == ["read", "ls"]


def test_a_title_is_one_bounded_printable_line() -> None:
    bash = registry().get("bash")
    assert bash is not None
    title = bash.title({"command": "echo a\n\x1b]0;x\x07\n" + "b" * 900})
    assert "\n" not in title and "\x1b" not in title and len(title) <= 200


WORDS = st.sampled_from(["secret-1234", "abc-secret-", "abcabcabd", "x", "abcabc", "é"])


@given(st.lists(WORDS, max_size=8), st.integers(1, 5))
def test_a_secret_is_hidden_wherever_the_stream_is_cut(words: list[str], step: int) -> None:
    mask = ("secret-1234", "abcabcabd", "short"[:3])
    data = "".join(words).encode()
    masker = Masker(mask)
    pieces = [masker.feed(data[at : at + step]) for at in range(0, len(data), step)]
    out = b"".join((*pieces, masker.end())).decode()
    assert out == masked("".join(words), mask)
    assert "secret-1234" not in out and "abcabcabd" not in out


def test_an_outcome_is_masked_in_every_part_of_it(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            (work.cwd / "f").write_text('a quo"ted-123 b plain-secret\n')
            reply = await work.call("read", path="f")
            clean = masked_value(reply.outcome, ('quo"ted-123', "plain-secret"))
            assert text_of(ToolReply(clean)) == f"1\ta {HIDDEN} b {HIDDEN}"
            assert "secret-" not in repr(clean) and 'quo"ted' not in repr(clean)
            same = masked_value(reply.outcome, ("nowhere-123",))
            assert same is reply.outcome

    run(check())


def test_a_stream_that_cannot_be_a_secret_is_not_held_back() -> None:
    masker = Masker(("secret-1234",))
    assert masker.feed(b"hello sec") == b"hello " and masker.feed(b"ond") == b"second"
    assert masker.feed(b"secret-1234") == HIDDEN.encode() and masker.end() == b""


def test_plain_text_holds_no_escapes_and_no_controls() -> None:
    evil = "a\x1b]52;c;QUJD\x07b\x1b[2J\x1b[?1049hc\x9b31md\x1bPq\x1b\\e\x1b[31mf\x1b[0m\x00\x07\x85g\x1b"
    assert plain(evil) == "abcdefg"
    assert plain("a\r\nb\n10%\r20%\r30%\nend\r") == "a\nb\n30%\nend"
    assert plain("tabs\tand é漢\n") == "tabs\tand é漢\n"


@given(st.text(alphabet=st.characters(min_codepoint=0, max_codepoint=0x9F), max_size=60))
def test_plain_never_lets_a_control_character_through(text: str) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", plain(text))


@given(st.text(max_size=30))
def test_what_is_shown_of_a_name_is_one_printable_line_that_can_be_stored(name: str) -> None:
    for text in (shown(name), one_line(name)):
        text.encode("utf-8")
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", text)


def test_cutting_keeps_both_ends_and_says_how_much_is_gone() -> None:
    text = "".join(f"{n}\n" for n in range(10_000))
    cut = both_ends(text, 1_000)
    assert cut.startswith("0\n1\n") and cut.endswith("9998\n9999\n")
    assert len(cut) < 1_100 and "characters left out" in cut
    assert (count(1, "line"), count(2, "match"), count(3, "entry"), count(0, "process")) == (
        "1 line", "2 matches", "3 entries", "0 processes",
    )  # fmt: skip
    assert (size(12), size(1_500), size(2_500_000), size(3 * 10**9)) == ("12 bytes", "1.5 kB", "2.5 MB", "3.0 GB")


def test_every_encoding_gives_back_its_bytes() -> None:
    marks = (("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"))
    for name, mark in marks:
        data = mark + "Grüße 漢\n".encode(name)
        found = encoding_of(data)
        assert found is not None and found.bom + found.encode(found.decode(data)) == data
    assert encoding_of(random.Random(0).randbytes(4_000)) is None
    assert encoding_of(b"") is not None


# --- project rules -----------------------------------------------------------------------------------------------


def test_rules_are_found_from_the_repository_root_down_outermost_first(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("outside the repository")
    root = tmp_path / "repo"
    (root / "a/b").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "AGENTS.md").write_text("root rules\x1b[2J")
    (root / "a/CLAUDE.md").write_text("middle")
    (root / "a/b/AGENTS.md").write_text("near")
    (root / "a/b/CLAUDE.md").symlink_to("AGENTS.md")
    found = instructions.find(str(root / "a/b"))
    assert [(os.path.relpath(path, root), text) for path, text in found] == [
        ("AGENTS.md", "root rules"), ("a/CLAUDE.md", "middle"), ("a/b/AGENTS.md", "near"),
    ]  # fmt: skip
    assert instructions.repository(str(root / "a/b")) == os.path.realpath(root)


def test_rules_that_lead_out_are_binary_or_a_pipe_are_left_out_and_long_ones_cut(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    for name in ("a", "b", "c", "d"):
        (root / name).mkdir(parents=True)
    (root / ".git").mkdir()
    (tmp_path / "private").write_text("a secret of the person")
    (root / "AGENTS.md").symlink_to("../private")
    (root / "a/AGENTS.md").write_bytes(b"\0\1")
    os.mkfifo(root / "b/AGENTS.md")
    (root / "c/AGENTS.md").write_text("x" * 50_000)
    assert instructions.find(str(root / "a")) == () == instructions.find(str(root / "b"))
    ((_, text),) = instructions.find(str(root / "c"))
    assert len(text) < 33_000 and text.endswith("(cut: the file is longer)")
    assert instructions.find(str(tmp_path / "nowhere")) == ()


# --- sandbox -----------------------------------------------------------------------------------------------------


def test_in_the_sandbox_only_the_workspace_can_be_written_and_credentials_are_hidden(tmp_path: Path) -> None:
    home = Path(os.path.expanduser("~"))
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id").write_text("key")
    (home / ".netrc").write_text("password")
    (home / "credentials.toml").write_text("token")

    async def check() -> None:
        sandbox = Sandbox("require", hidden=(str(home / "credentials.toml"),), network=False)
        async with lab(home / "ws", settings=ToolSettings(sandbox=sandbox)) as work:
            assert await work.text("bash", command="echo x > f && cat f; cd; pwd") == f"x\n{home}\n"
            assert (await work.text("bash", command="cat ~/.ssh/id ~/.netrc ~/credentials.toml")).count("token") == 0
            refused = await work.call("bash", command="echo x > /usr/x; echo x > /etc/x")
            assert "Read-only file system" in text_of(refused) and "the sandbox lets" in text_of(refused)
            assert await work.text("bash", command="cat /proc/1/comm") == "bwrap\n"
            assert "canary" not in await work.text("bash", command="cat /proc/*/environ | tr '\\0' '\\n'")
            assert await work.text("bash", command="grep -c : /proc/net/dev") == "1\n"  # the loopback alone
            assert sandbox.words() == "sandbox: no network, writes only here"
            assert (work.cwd / "f").read_text() == "x\n"

    run(check())


def test_a_call_that_may_not_reach_the_network_is_kept_from_it_or_does_not_run(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws", settings=ToolSettings(sandbox=Sandbox("require"))) as work:
            cut, bash = work.context(network=lambda command: "open" in command), work.tool("bash")
            assert await work.text("bash", cut, command="grep -c : /proc/net/dev") == "1\n"
            many = await work.text("bash", cut, command="cat /proc/net/dev # open")
            assert many == Path("/proc/net/dev").read_text() or many.count("\n") >= 3
            failed = await work.call("bash", cut, command="bash -c 'echo > /dev/tcp/192.0.2.1/80'")
            assert "keeps this from the network" in text_of(failed)
            assert await bash.limits({"command": "x"}, cut) == "sandbox: no network, writes only here · up to 120 s"
            assert await bash.limits({"command": "open", "timeout": 7}, cut) == "sandbox: writes only here · up to 7 s"
        async with lab(tmp_path / "ws", settings=ToolSettings(sandbox=Sandbox("off"))) as work:
            cut, bash = work.context(network=lambda command: False), work.tool("bash")
            failure = await work.failure("bash", cut, command="touch f")
            assert "keep it from the network" in failure.message and not (work.cwd / "f").exists()
            assert await bash.limits({"command": "x", "background": True}, work.context()) == (
                "no sandbox · in the background, without a time limit"
            )

    run(check())


def test_where_the_sandbox_is_required_and_missing_nothing_runs(tmp_path: Path) -> None:
    async def check() -> None:
        path = os.environ["PATH"]
        async with lab(tmp_path / "ws", settings=ToolSettings(sandbox=Sandbox("require"))) as work:
            os.environ["PATH"] = str(tmp_path)
            try:
                failure = await work.failure("bash", command="touch f")
            finally:
                os.environ["PATH"] = path
            assert failure.cls == "unavailable" and not (work.cwd / "f").exists()

    run(check())
