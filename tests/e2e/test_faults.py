"""Every fault over every protocol, in the real program: outcome, records, what is stored, exit code, and going on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.app.conftest import Panto, panto
from tests.e2e.faulty import IDLE_S, Ran, configure, run, stored
from tests.wire_check import PROTOCOLS, Fault, Protocol, Reply, WireCheck

assert panto  # a fixture
MALFORMED = '{"path": "a.txt", path": 1}'
LOST = ("first I", "one two")
"""What the vendor has sent, of its thought or its text, before it breaks off."""
AFTER = {"openai_chat": 4, "openai_responses": 6, "anthropic_messages": 5, "google_generate": 4}
"""Events until something of that has been sent."""
Replies = Callable[[Protocol], list[Reply | Fault]]


@dataclass(frozen=True)
class Case:
    """`replies` of the vendor, how often it is asked, how the turn ends, and what is said and kept of it.

    `retries`: the status of each. `result`: what the one call's result says. `takes_s`: what the vendor asked to wait.
    """

    replies: Replies
    requests: int
    status: str = "completed"
    code: int = 0
    kind: str = ""
    retries: tuple[int, ...] = ()
    resets: int = 0
    result: str = ""
    told: str = ""
    takes_s: float = 0.0
    not_for: frozenset[str] = field(default_factory=frozenset)


def fails(status: int, **more: object) -> Replies:
    return lambda protocol: [Fault(status, **more), Reply("good")]  # type: ignore[arg-type]


def wanted_by_date(protocol: Protocol) -> list[Reply | Fault]:
    return [Fault(429, headers={"retry-after": formatdate(time.time() + 3, usegmt=True)}), Reply("good")]


def calls(name: str, arguments: dict[str, object] | str) -> Replies:
    return lambda protocol: [Reply(calls=[(name, arguments)]), Reply("good")]


TOO_LONG = Fault(400, "prompt is too long: 250000 tokens > 100000 maximum")
NO_MONEY = "You exceeded your current quota, please check your plan and billing details."
FAULTS = {
    "429": Case(fails(429, headers={"retry-after": "1"}), 2, retries=(429,), takes_s=1.0),
    "429_date": Case(wanted_by_date, 2, retries=(429,), takes_s=2.0),
    "500": Case(fails(500), 2, retries=(500,)),
    "503": Case(fails(503), 2, retries=(503,)),
    "529": Case(fails(529), 2, retries=(529,)),
    "midcut": Case(lambda protocol: [Fault(after=AFTER[protocol]), Reply("good")], 2, retries=(0,), resets=1),
    "midcut_for_ever": Case(
        lambda protocol: [Fault(after=AFTER[protocol])] * 3,
        3,
        "failed",
        4,
        "connection",
        (0, 0),
        2,
        told="in the middle",
    ),
    "stall": Case(
        lambda protocol: [Fault(after=AFTER[protocol], silent_s=20), Reply("good")], 2, retries=(0,), resets=1
    ),
    "badjson": Case(calls("read", MALFORMED), 2, result="not a JSON object", not_for=frozenset(("google_generate",))),
    "badtool": Case(calls("no_such_tool", {}), 2, result="There is no tool named 'no_such_tool'"),
    "badargs": Case(calls("read", {}), 2, result="path is missing"),
    "auth": Case(lambda protocol: [Fault(401, "invalid key")], 1, "failed", 4, "auth", told="panto login vendor"),
    "quota": Case(lambda protocol: [Fault(429, NO_MONEY)], 1, "failed", 4, "quota", told="top it up"),
    "overflow": Case(lambda protocol: [TOO_LONG] * 9, 3, "failed", 1, "overflow", told="/compact"),
    "refused": Case(
        lambda protocol: [Fault(400, "no such field")], 1, "failed", 4, "invalid_request", told="no such field"
    ),
}
ALL = [(p, name) for p in PROTOCOLS for name, case in FAULTS.items() if p not in case.not_for]


@pytest.mark.long(sample=8)
@pytest.mark.parametrize(("protocol", "fault"), ALL)
def test_a_fault_is_told_kept_out_of_the_record_and_gone_on_from(
    panto: Panto, tmp_path: Path, protocol: Protocol, fault: str
) -> None:
    case = FAULTS[fault]
    (panto.cwd / "a.txt").write_text("alpha\n")
    with WireCheck(protocol) as vendor:
        vendor.replies += case.replies(protocol)
        configure(panto, {"vendor": vendor}, "vendor")
        began = time.time()
        ran = run(panto, "please")
        assert time.time() - began >= case.takes_s
        assert len(vendor.requests) == case.requests, ran
        _told(ran, case)
        _kept(panto, tmp_path, ran, case)
        vendor.replies[:] = [Reply("went on")]
        again = run(panto, "go on", "--continue")
        assert (again.code, again.end["text"]) == (0, "went on")
        assert vendor.refusals == []


def _told(ran: Ran, case: Case) -> None:
    """The records, stderr and the exit code."""
    assert (ran.end["status"], ran.code) == (case.status, case.code), ran
    error = ran.end["error"]
    assert (error["kind"] if error else "") == case.kind, ran
    retries = ran.of("retry")
    assert tuple(r["status"] for r in retries) == case.retries, ran
    assert all("127.0.0.1" in r["cause"] and r["wait_s"] <= 3 for r in retries), retries
    assert len(ran.of("reset")) == case.resets, ran
    if case.status == "completed":
        assert ran.end["text"] == "good"
        assert ran.errors == ""
    else:
        assert case.told in ran.errors, ran.errors
        assert ran.errors.startswith("panto: failed: "), ran.errors
    for result in ran.of("tool_result"):
        assert result["status"] == "error" and case.result in result["text"], result
    assert len(ran.of("tool_result")) == bool(case.result)


def _kept(panto: Panto, folder: Path, ran: Ran, case: Case) -> None:
    """The ledger: no attempt that failed, each reply once, arguments as they came."""
    lines = stored(panto, ran.end["session"], folder)
    text = json.dumps(lines)
    replies = [line["json"]["result"] for line in lines if line["type"] == "body" and "result" in line.get("json", {})]
    assert not any(piece in text for piece in LOST)
    assert len(replies) == (0 if case.status == "failed" else 1 + bool(case.result)), replies
    if case.result == "not a JSON object":
        assert MALFORMED in json.dumps(replies[0]).replace("\\", "").replace('""', '"')
    shown = panto("session", "show", ran.end["session"])
    assert shown.returncode == 0
    assert "please" in shown.stdout
    assert ("good" in shown.stdout) == (case.status == "completed")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_without_records_a_person_reads_of_each_wait_on_stderr(panto: Panto, protocol: Protocol) -> None:
    with WireCheck(protocol) as vendor:
        vendor.replies += [Fault(529), Fault(after=3, silent_s=20), Reply("good")]
        configure(panto, {"vendor": vendor}, "vendor")
        done = panto("-p", "please")
    assert (done.returncode, done.stdout) == (0, "good\n")
    waits = done.stderr.splitlines()
    assert len(waits) == 2, waits
    assert "answered 529 for m" in waits[0] and "trying again in 0." in waits[0]
    assert f"was silent for {IDLE_S:g} s" in waits[1]


SMALL = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=900k none "$PANTO_SESSION_DIR" && exec "$@"', "sh")
"""Runs a program with a disk of its own, and a small one, for the sessions."""


def small_disk(panto: Panto, *words: str) -> Ran:
    """One prompt whose commands say more than the disk holds."""
    with WireCheck("openai_chat") as vendor:
        vendor.replies += [Reply(calls=[("bash", {"command": f"seq {n} 6000"})]) for n in range(30)]
        configure(panto, {"vendor": vendor}, "vendor")
        done = subprocess.run(
            [*SMALL, *panto.argv("-p", "go", *words)], cwd=panto.cwd, env=panto.environ(), capture_output=True,
            text=True, timeout=60, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    records = [json.loads(line) for line in done.stdout.splitlines()] if words else []
    return Ran(done.returncode, records, done.stderr)


@pytest.mark.skipif(sys.platform != "linux", reason="a disk of one's own is a matter of Linux's namespaces")
def test_a_full_disk_is_told_once_with_the_way_out_and_ends_as_a_failure_of_storage(panto: Panto) -> None:
    sessions = panto.home / "small"
    sessions.mkdir()
    panto.env["PANTO_SESSION_DIR"] = str(sessions)
    if subprocess.run([*SMALL, "true"], env=panto.environ(), capture_output=True).returncode:
        pytest.skip("no disk of one's own to be had here")
    ran = small_disk(panto, "--output", "stream-json")
    assert (ran.code, ran.end["status"], ran.end["error"]["kind"]) == (1, "failed", "storage"), ran.end
    said = ran.end["error"]["message"]
    assert "the disk is full" in said and "free some space" in said
    assert f"panto --resume {ran.end['session'][:8]}" in said and "Enter" not in said
    assert not [r for r in ran.of("notice") if "full" in r["text"]]
    for errors in (ran.errors, small_disk(panto).errors):
        assert errors.count("the disk is full") == 1, errors
