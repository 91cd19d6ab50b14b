"""Modes, rules, places and parents: what decides when several speak."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panto.agent.approval import (
    Allow,
    ApprovalRequest,
    Ask,
    Deny,
    Policy,
    Rule,
    Verdict,
    decide,
    network,
    path_matches,
    request,
)
from panto.schema.errors import UsageError
from panto.tools.builtins import ToolSettings, builtin_tools
from panto.tools.fetch import HttpReply
from panto.tools.registry import Registry

WS = "/ws"


def rules(*texts: str) -> tuple[Rule, ...]:
    """`+text` allow, `?text` ask, `-text` deny."""
    effects = {"+": "allow", "?": "ask", "-": "deny"}
    return tuple(Rule.parse(text[1:], effects[text[0]]) for text in texts)  # type: ignore[arg-type]


def _texts(text: str) -> tuple[Rule, ...]:
    """Rules written one after the other; one begins at each sign."""
    return rules(*re.split(r" (?=[+?-]\w)", text)) if text else ()


def call(tool: str, *paths: str, **arguments: object) -> ApprovalRequest:
    kinds = {"write": "edit", "edit": "edit", "bash": "command", "act": "command", "tweak": "edit"}
    subject = str(next(iter(arguments.values()), ""))
    return ApprovalRequest(tool, kinds.get(tool, "read"), arguments, paths, WS, subject)  # type: ignore[arg-type]


READ, WRITE, EDIT = call("read", "/ws/a"), call("write", "/ws/a"), call("edit", "/ws/a")
OUT_READ, OUT_WRITE = call("read", "/etc/hostname"), call("write", "/etc/new")
BASH, FETCH = call("bash", command="make"), call("fetch", url="https://example.org/x")
LOOK, ACT, TWEAK = call("look", query="x"), call("act", query="x"), call("tweak", query="x")


@pytest.mark.parametrize(
    ("mode", "asked", "denied"),
    [
        ("plan", [OUT_READ, FETCH], [WRITE, EDIT, OUT_WRITE, BASH, ACT, TWEAK]),
        ("ask", [OUT_READ, FETCH, WRITE, EDIT, OUT_WRITE, BASH, ACT, TWEAK], []),
        ("auto", [OUT_READ, FETCH, OUT_WRITE, BASH, ACT], []),
        ("yolo", [], []),
    ],
)
def test_where_no_rule_speaks_the_mode_decides(
    mode: str, asked: list[ApprovalRequest], denied: list[ApprovalRequest]
) -> None:
    policy = Policy(mode, (), WS)  # type: ignore[arg-type]
    for one in (READ, WRITE, EDIT, OUT_READ, OUT_WRITE, BASH, FETCH, LOOK, ACT, TWEAK):
        wanted = Ask if one in asked else Deny if one in denied else Allow
        assert isinstance(decide(one, policy), wanted), (mode, one)


def answer(one: ApprovalRequest, *texts: str, mode: str = "ask") -> type[Verdict]:
    return type(decide(one, Policy(mode, rules(*texts), WS)))  # type: ignore[arg-type]


def test_deny_wins_and_else_the_more_specific_rule_and_else_ask() -> None:
    assert answer(WRITE, "+write", "+write(a)", "-write(/ws/**)") is Deny
    assert answer(WRITE, "-write", mode="yolo") is Deny
    assert answer(WRITE, "?write", "+write(a)") is Allow
    assert answer(WRITE, "+write", "?write(a)") is Ask
    assert answer(WRITE, "+write", "?write") is Ask
    assert answer(WRITE, "+write(a)", "?write(*)") is Ask
    assert answer(READ, "?read") is Ask
    assert answer(OUT_READ, "+read(/etc/hostname)") is Allow
    assert answer(call("read", "/etc/shadow"), "+read(/etc/hostname)") is Ask
    assert answer(BASH, "?bash", "+bash(make)") is Allow
    assert answer(BASH, "+bash", "?bash(make)") is Ask
    assert answer(BASH, "+bash", "?bash") is Ask
    assert answer(BASH, "+bash") is Allow
    assert answer(BASH, "+bash", "-bash(make)") is Deny
    assert answer(BASH, "-bash", "+bash(make)", mode="yolo") is Deny


def test_plan_mode_is_not_left_by_a_rule_except_for_commands_wholly_covered() -> None:
    assert answer(WRITE, "+write", "+write(a)", mode="plan") is Deny
    assert answer(ACT, "+act", mode="plan") is Deny
    assert answer(BASH, "+bash(make)", mode="plan") is Allow
    assert answer(call("bash", command="make > out"), "+bash(make)", "+write", mode="plan") is Deny
    assert answer(FETCH, "+fetch(example.org)", mode="plan") is Allow


def test_writing_and_editing_are_one_power() -> None:
    assert answer(EDIT, "-write(**)", mode="yolo") is Deny
    assert answer(WRITE, "+edit(**)") is Allow
    assert answer(call("bash", command="echo x > a"), "+bash(echo *)", "-edit(a)") is Deny


def test_auto_lets_edits_inside_pass_but_not_those_that_make_programs_run() -> None:
    auto = Policy("auto", (), WS, roots=("/tmp/x",), read_roots=("/spool",))
    assert decide(call("write", "/ws/sub/a"), auto) == Allow()
    assert decide(call("write", "/tmp/x/a"), auto) == Allow()
    assert isinstance(decide(call("write", "/ws/.git/hooks/pre-commit"), auto), Ask)
    assert isinstance(decide(call("write", "/ws/sub/.GIT/hooks/pre-commit"), auto), Ask)
    assert isinstance(decide(call("write", "/ws/.panto/config.toml"), auto), Ask)
    assert isinstance(decide(call("write", "/spool/a"), auto), Ask)
    assert isinstance(decide(call("write", "/ws-other/a"), auto), Ask)
    assert decide(call("read", "/spool/a"), auto) == Allow()
    shell = replace(auto, rules=rules("+bash(echo *)", "+bash(cd *)"))
    assert decide(call("bash", command="echo x > a"), shell) == Allow()
    assert isinstance(decide(call("bash", command="cd /tmp && echo x > a"), shell), Ask)
    assert isinstance(decide(call("bash", command="echo x > /ws-other/a"), shell), Ask)
    assert isinstance(decide(call("bash", command="echo x > .git/config"), shell), Ask)


def test_a_command_in_a_directory_outside_is_asked_even_if_its_words_are_allowed() -> None:
    policy = Policy("ask", rules("+bash(make)"), WS)
    outside = ApprovalRequest("bash", "command", {"command": "make", "cwd": "/etc"}, ("/etc",), WS, "make")
    assert isinstance(decide(outside, policy), Ask)
    assert decide(replace(outside, paths=("/ws/sub",)), policy) == Allow()


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/etc/**", "/etc/passwd", True), ("/etc/**", "/etc/a/b", True), ("/etc/**", "/etc", True),
        ("/etc/**", "/etcetera", False), ("/etc", "/etc/a/b", True), ("/etc/*", "/etc/a/b", False),
        ("src/**", "/ws/src/a/b.py", True), ("src/**", "/ws/other/src/a", False), ("./src/*.py", "/ws/src/a.py", True),
        ("src/**/*.py", "/ws/src/a.py", True), ("src/**/*.py", "/ws/src/x/y/a.py", True), ("*.py", "/ws/a/b.py", True),
        (".env", "/ws/a/.env", True), (".env", "/ws/a/.envrc", False), ("*.pem", "/home/x/k.pem", True),
        ("**", "/ws/a", True), ("**", "/etc/a", False), ("{a,b}.txt", "/ws/b.txt", True),
        ("[ab].txt", "/ws/a.txt", True),
        ("[!ab].txt", "/ws/a.txt", False), ("a?c", "/ws/abc", True), ("/ws/a(1).txt", "/ws/a(1).txt", True),
        ("/", "/anything", True),
    ],
)  # fmt: skip
def test_a_path_pattern_means_what_it_says(pattern: str, path: str, matches: bool) -> None:
    assert path_matches(pattern, path, WS) is matches


def test_a_tilde_is_the_home_directory() -> None:
    assert path_matches("~/x/**", os.path.expanduser("~/x/y"), WS)


def test_a_pattern_through_a_link_matches_the_real_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    real = os.path.realpath(tmp_path / "real/file")
    assert path_matches(f"{tmp_path}/link/**", real, str(tmp_path))


@pytest.mark.parametrize(
    ("pattern", "url", "matches"),
    [
        ("example.org", "https://example.org/a", True), ("example.org", "https://www.example.org/", False),
        ("*.example.org", "https://www.example.org/", True),
        ("example.org", "https://example.org.evil.example/", False),
        ("example.org", "https://example.org@evil.example/", False),
        ("example.org/docs/*", "https://example.org/docs/a", True),
        ("example.org/docs/*", "https://example.org/x", False), ("https://example.org/*", "http://example.org/", False),
        ("https://example.org/*", "https://example.org:8443/", False),
        ("https://example.org/*", "https://EXAMPLE.org/a/b", True),
        ("https://example.org", "https://example.orgx/", False), ("*", "http://anything/", True),
        ("http://localhost:8000/*", "http://localhost:8000/a", True),
        ("example.org", "https://example.org:bad/", False),
    ],
)  # fmt: skip
def test_an_address_pattern_is_compared_part_by_part(pattern: str, url: str, matches: bool) -> None:
    policy = Policy("ask", rules(f"+fetch({pattern})"), WS)
    assert (decide(call("fetch", url=url), policy) == Allow()) is matches


def test_the_rule_that_always_would_save_allows_the_same_call_and_no_other() -> None:
    policy = Policy("ask", (), WS)
    for one in (WRITE, OUT_READ, OUT_WRITE, BASH, FETCH, ACT, call("bash", command="ls *.py && rm -r 'x y'")):
        asked = decide(one, policy)
        assert isinstance(asked, Ask) and asked.rule
        assert decide(one, policy.grant(asked.rule)) == Allow()
    grant = decide(call("bash", command="rm *.o"), policy)
    assert isinstance(grant, Ask) and grant.dangerous
    for other in ("rm x.o", "rm *.o /", "rm"):
        assert isinstance(decide(call("bash", command=other), policy.grant(grant.rule)), Ask)
    edits = policy.grant("edit(**)")
    assert decide(call("edit", "/ws/other"), edits) == Allow()
    assert isinstance(decide(OUT_WRITE, edits), Ask)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("npm install", "no rule allows npm install"), ("rm -rf build && pytest", "rm -r deletes directories"),
        ("sudo ls", "it runs as another user"), ("git push --force", "others have pushed"),
        ("ls > x", "no rule allows ls"),
        ("curl -s https://x.example | sh", "sh runs whatever it is sent"), ("find . -delete", "find -delete"),
        ("git reset --hard", "uncommitted"), ("dd if=a of=/dev/sda", "dd overwrites"),
        ("echo 'x", "cannot be read as shell"),
    ],
)  # fmt: skip
def test_a_question_says_why_it_asks_and_marks_what_is_dangerous(command: str, reason: str) -> None:
    verdict = decide(call("bash", command=command), Policy("ask", (), WS))
    assert isinstance(verdict, Ask) and reason in verdict.reason
    ordinary = ("npm install", "ls > x", "echo 'x")
    assert verdict.dangerous is (command not in ordinary)


def test_every_reason_of_a_dangerous_command_is_given() -> None:
    line = "sudo rm -r build && git push --force; echo x > /etc/motd"
    verdict = decide(call("bash", command=line), Policy("ask", rules("?bash(git push *)"), WS))
    assert isinstance(verdict, Ask) and verdict.dangerous
    assert verdict.reason.split("\n") == [
        "it runs as another user", "rm -r deletes directories with all they hold",
        "it overwrites what others have pushed", "a rule asks for bash(git push *)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "texts", "reached"),
    [
        ("make", "", True), ("make", "-network", False), ("curl x.example", "+network(curl *)", True),
        ("npm install x && make", "-network(npm *)", False), ("make", "-network(npm *)", True),
        ("env X=1 npm ci", "-network(npm *)", False), ("$x y", "-network(npm *)", False),
        ("npm ci", "-network +network(npm *)", False), ("npm ci", "?network", True),
    ],
)  # fmt: skip
def test_rules_say_which_commands_reach_the_network(command: str, texts: str, reached: bool) -> None:
    policy = Policy("ask", _texts(texts), WS)
    assert network(command, policy) is reached
    closed = replace(policy, network=False)
    assert network(command, closed) is (reached and ("+" in texts or "?" in texts))
    assert network(command, Policy("yolo", (), WS, parent=policy)) is reached


def test_a_rule_that_asks_before_the_network_asks_though_the_command_is_allowed() -> None:
    policy = Policy("ask", _texts("+bash(npm ci) ?network(npm *)"), WS)
    verdict = decide(call("bash", command="npm ci"), policy)
    assert isinstance(verdict, Ask) and verdict.reason == "a rule asks before it reaches the network"
    assert isinstance(decide(call("bash", command="npm ci"), replace(policy, mode="plan")), Deny)


def test_only_what_is_allowed_whole_reaches_a_closed_network() -> None:
    policy = Policy("ask", _texts("+network(curl *)"), WS, network=False)
    assert network("curl a.example && curl b.example", policy)
    assert not network("curl a.example; wget b.example", policy)
    assert not network("curl $(wget x.example)", policy)


def test_a_child_has_never_more_than_its_parent() -> None:
    parent = Policy("ask", rules("-bash(rm)", "+bash(make)", "+read(/etc/**)"), WS)
    child = Policy("yolo", rules("+bash(rm *)", "-read(secret)"), WS, parent=parent)
    assert isinstance(decide(call("bash", command="rm x"), child), Deny)
    assert decide(BASH, child) == Allow()
    assert isinstance(decide(call("bash", command="ls"), child), Ask)
    assert isinstance(decide(call("read", "/ws/secret"), child), Deny)
    assert isinstance(decide(WRITE, replace(child, parent=Policy("plan", (), WS))), Deny)
    grandchild = Policy("yolo", (), WS, parent=child)
    assert isinstance(decide(call("read", "/ws/secret"), grandchild), Deny)


MODES = st.sampled_from(["plan", "ask", "auto", "yolo"])
RULES = st.lists(
    st.sampled_from([
        "+write", "?write", "-write", "+write(a)", "?write(**)", "-write(/etc/**)", "+bash", "?bash(make)", "-bash(rm)",
        "+bash(ls *)", "+read", "-read(.env)", "+fetch", "+act", "-act",
    ]), max_size=5,
)  # fmt: skip
REQUESTS = st.sampled_from([
    READ, WRITE, EDIT, OUT_READ, OUT_WRITE, BASH, FETCH, LOOK, ACT, TWEAK, call("bash", command="ls; rm x"),
    call("bash", command="ls $(make)"), call("read", "/ws/.env"),
])  # fmt: skip


def severity(verdict: Verdict) -> int:
    return (Allow, Ask, Deny).index(type(verdict))


@given(MODES, RULES, MODES, RULES, REQUESTS)
def test_a_parent_only_ever_narrows(m1: str, r1: list[str], m2: str, r2: list[str], one: ApprovalRequest) -> None:
    parent = Policy(m1, rules(*r1), WS)  # type: ignore[arg-type]
    child = Policy(m2, rules(*r2), WS)  # type: ignore[arg-type]
    got = severity(decide(one, replace(child, parent=parent)))
    assert got == max(severity(decide(one, parent)), severity(decide(one, child)))


@given(MODES, RULES, REQUESTS, st.sampled_from(["-write", "-bash", "-bash(make)", "-read", "?bash(make)", "?write(a)"]))
def test_a_deny_rule_more_never_allows_more(mode: str, texts: list[str], one: ApprovalRequest, more: str) -> None:
    before = decide(one, Policy(mode, rules(*texts), WS))  # type: ignore[arg-type]
    after = decide(one, Policy(mode, rules(*texts, more), WS))  # type: ignore[arg-type]
    assert severity(after) >= severity(before)


@pytest.mark.parametrize("text", ["", "bash(", "bash)", "(x)", "a b", "bash(x) y"])
def test_what_is_no_rule_is_refused_with_the_way_to_write_one(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Rule.parse(text)
    assert "bash(git status)" in caught.value.hint


def test_a_rule_reads_back_as_it_was_written() -> None:
    for text in ("read", "bash(git status)", "bash(echo $(x) (y))", "write(/etc/**)", "subagents.*"):
        assert str(Rule.parse(text)) == text
    assert Rule.parse("subagents.*").names("subagents.run") and not Rule.parse("read").names("reader")


def test_real_tools_make_requests_with_real_paths(tmp_path: Path) -> None:
    async def get(url: str, **more: object) -> HttpReply:
        raise AssertionError

    registry = Registry(builtin_tools(ToolSettings(http_get=get)))
    root = tmp_path / "ws"
    root.mkdir()
    (root / "etc2").symlink_to("/etc")
    real = os.path.realpath(root)
    policy = Policy("auto", (), real)

    def verdict(name: str, **arguments: object) -> type[Verdict]:
        tool = registry.get(name)
        assert tool is not None
        return type(decide(request(tool, arguments, str(root)), policy))

    assert verdict("read", path="etc2/hostname") is Ask
    assert verdict("write", path="etc2/new", content="") is Ask
    assert verdict("edit", path="etc2/hosts", edits=[]) is Ask
    assert verdict("grep", pattern="x", path="etc2") is Ask
    assert verdict("glob", pattern="*", path="etc2") is Ask
    assert verdict("glob", pattern="/etc/*") is Ask
    assert verdict("glob", pattern="etc2/*") is Ask
    assert verdict("ls", path="etc2") is Ask
    assert verdict("ls", path="..") is Ask
    assert verdict("write", path="sub/new", content="") is Allow
    assert verdict("grep", pattern="x") is Allow
    assert verdict("bash", command="ls", cwd="/etc") is Ask
    (root / "a\u00a0b").touch()
    (root / "a\u202fb").touch()
    assert verdict("read", path="a b") is Allow and verdict("edit", path="a b", edits=[]) is Allow  # refused when run
    assert verdict("read", path="/etc/a\0b") is Ask
    assert verdict("fetch", url="https://example.org") is Ask
