"""kill -9 at the worst moments, then --resume: nothing decided is lost, nothing is done twice, the vendor accepts."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.killed import configure, panto, records, session_id, started, until
from tests.session.processes import Other
from tests.wire_check import PROTOCOLS, Fault, Reply, WireCheck
from tests.wire_check.replies import Protocol


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def killed_at(home: Path, place: Path, mark: Path, vendor: WireCheck, requests: int) -> str:
    """Start a prompt, wait for the mark (or the requests), kill -9; the session's id."""
    with started(home, place, "-p", "go", "--output", "stream-json") as process:
        until(lambda: mark.exists() if mark.name else len(vendor.requests) >= requests)
        process.send_signal(signal.SIGKILL)
        process.wait()
    return session_id(home, place)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_killed_while_the_model_streams_the_same_run_goes_on(home: Path, place: Path, protocol: Protocol) -> None:
    with WireCheck(protocol) as vendor:
        configure(home, protocol, vendor.base_url)
        vendor.replies += [Fault(silent_s=60, after=2)]
        name = killed_at(home, place, Path(), vendor, 1)
        vendor.replies[:] = [Reply("Here I am.")]
        done = panto(home, place, "-p", "--resume", name[:8], "--output", "stream-json")
        assert done.returncode == 0, done.stderr
        assert records(done.stdout)[-1]["text"] == "Here I am."
        assert not vendor.refusals
        assert panto(home, place, "session", "verify", name).returncode == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_killed_between_two_of_three_calls_each_says_what_is_known(home: Path, place: Path, protocol: Protocol) -> None:
    calls = [
        ("bash", {"command": "echo one >> ran; echo first"}),
        ("bash", {"command": "echo two >> ran; until [ -e never ]; do sleep 0.1; done"}),
        ("bash", {"command": "echo three >> ran; while :; do [ $(wc -l <ran) = 3 ] && touch mark; sleep 0.1; done"}),
    ]
    with WireCheck(protocol) as vendor:
        configure(home, protocol, vendor.base_url)
        vendor.replies += [Reply(calls=calls)]
        name = killed_at(home, place, place / "mark", vendor, 0)
        vendor.replies[:] = [Reply("I check first.")]
        done = panto(home, place, "-p", "go on", "--resume", name[:8], "--output", "stream-json")
        assert done.returncode == 0, done.stderr
        assert not vendor.refusals
        assert sorted((place / "ran").read_text().split()) == ["one", "three", "two"]
        shown = panto(home, place, "session", "show", name).stdout
        assert "unknown" in shown
        assert panto(home, place, "session", "verify", name).returncode == 0


def test_a_killed_panto_leaves_no_process_behind(home: Path, place: Path) -> None:
    with WireCheck("openai_chat") as vendor:
        configure(home, "openai_chat", vendor.base_url)
        stubborn = f"touch mark; trap '' TERM HUP; while :; do sleep 1; done # {place}"
        vendor.replies += [Reply(calls=[("bash", {"command": stubborn})])]
        killed_at(home, place, place / "mark", vendor, 0)
        until(lambda: not running_with(str(place)))


def test_a_session_that_a_live_process_writes_is_refused_with_who_and_the_ways_out_until_it_is_dead(
    home: Path, place: Path
) -> None:
    with WireCheck("openai_chat") as vendor:
        configure(home, "openai_chat", vendor.base_url)
        vendor.replies += [Reply("One."), Fault(silent_s=120, after=2)]
        assert panto(home, place, "-p", "first").returncode == 0
        name = session_id(home, place)
        with started(home, place, "-p", "second", "--resume", name) as holder:
            until(lambda: len(vendor.requests) == 2)
            for words in (("--resume", name), ("--continue",)):
                refused = panto(home, place, "-p", "third", *words, "--output", "json")
                end = records(refused.stdout)[-1]
                assert (refused.returncode, end["status"], end["error"]["kind"]) == (2, "failed", "usage")
                assert f"is open in process {holder.pid} on {socket.gethostname()}" in end["error"]["message"]
                assert f"panto --fork {name[:8]}" in refused.stderr and "take it over" in refused.stderr
            vendor.replies[:] = [Reply("In a fork."), Reply("Four.")]
            forked = panto(home, place, "-p", "go on", "--fork", name, "--output", "json")
            assert (forked.returncode, records(forked.stdout)[-1]["text"]) == (0, "In a fork.")
            assert holder.poll() is None
            holder.send_signal(signal.SIGKILL)
            holder.wait()
        done = panto(home, place, "-p", "fourth", "--resume", name, "--output", "json")
        assert (done.returncode, records(done.stdout)[-1]["text"]) == (0, "Four.")
        assert not vendor.refusals
        assert panto(home, place, "session", "verify").returncode == 0


def test_a_run_whose_session_another_process_takes_over_ends_as_that_and_writes_nothing_more(
    home: Path, place: Path
) -> None:
    with WireCheck("openai_chat") as vendor:
        configure(home, "openai_chat", vendor.base_url)
        vendor.replies += [Reply(calls=[("bash", {"command": "touch mark; until [ -e go ]; do sleep 0.05; done"})])]
        with started(home, place, "-p", "first", "--output", "json") as process:
            until(lambda: (place / "mark").exists())
            thief = Other(
                home / "sessions",
                """
                (row,) = await store.list()
                session = await store.open_session(row.id, take_over=True)
                say(len(session.state.run.unfinished))
                await hear()
                """,
            )
            assert thief.hear() == "1"
            (place / "go").touch()
            assert process.stdout is not None
            (end,) = records(process.stdout.read().decode())
            assert (process.wait(30), end["status"], end["error"]["kind"]) == (1, "failed", "ownership_lost")
            assert "taken over by another process" in end["error"]["message"]
        thief.tell("")
        assert thief.end() == 0
        vendor.replies[:] = [Reply("I look first.")]
        name = session_id(home, place)
        done = panto(home, place, "-p", "--resume", name, "--output", "json")
        assert (done.returncode, records(done.stdout)[-1]["text"]) == (0, "I look first.")
        assert panto(home, place, "session", "verify", name).returncode == 0


def running_with(text: str) -> list[str]:
    """Processes whose command line holds a text."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text.encode() in line.read_bytes():
                found.append(line.parent.name)
    return found


CRASHES = 300


def _story(dice: random.Random) -> list[Reply]:
    """A session's worth of replies: calls that each write their line once, text in between."""
    out = []
    for step in range(40):
        lines = [f"s{step}c{call}" for call in range(dice.randint(1, 4))]
        commands = [f"echo {name} >> ran; sleep 0.0{dice.randint(1, 9)}" for name in lines]
        out.append(Reply(f"step {step}", calls=[("bash", {"command": command}) for command in commands]))
    return out


def say(process: subprocess.Popen[bytes], kind: str, text: str) -> None:
    """A line to a program that reads records, unless it has ended."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps({"type": kind, "text": text}).encode() + b"\n")
        process.stdin.flush()


def told(process: subprocess.Popen[bytes]) -> set[str]:
    """The prompts that a killed process has told it took in: each was durable by then."""
    assert process.stdout is not None
    whole = process.stdout.read().rpartition(b"\n")[0].decode()
    return {r["text"] for r in records(whole) if r["type"] == "message" and r["role"] == "user"}


@pytest.mark.long(sample=1)
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(CRASHES // 10))
def test_ten_kills_at_random_moments_lose_nothing_and_repeat_nothing(home: Path, place: Path, seed: int) -> None:
    dice = random.Random(seed)
    with WireCheck(dice.choice(PROTOCOLS)) as vendor:
        configure(home, vendor.protocol, vendor.base_url, context=dice.choice((3_000, 200_000)))
        said, accepted = ["prompt-0"], set[str]()
        arguments: tuple[str, ...] = ("-p", said[0])
        vendor.replies += _story(dice)
        name = ""
        for kill in range(10):
            asked = len(vendor.requests)
            early = bool(name) and dice.random() < 0.3  # also while it starts
            talks = arguments[1] if arguments[1] in said and dice.random() < 0.5 else ""
            if talks:  # steered while it works
                arguments = ("--input", "stream-json", *arguments[2:])
            stdin = subprocess.PIPE if talks else subprocess.DEVNULL
            with started(home, place, *arguments, "--output", "stream-json", stdin=stdin) as process:
                if talks:
                    say(process, "prompt", talks)
                until(lambda: early or len(vendor.requests) > asked or process.poll() is not None)  # noqa: B023
                for _ in range(dice.randint(0, 3) if talks else 0):
                    said.append(f"steer-{len(said)}")
                    say(process, dice.choice(("steer", "queue")), said[-1])
                    time.sleep(dice.random() * 0.2)
                time.sleep(dice.random() * 0.8)
                process.kill()
                process.wait()
                accepted |= told(process)
            name = name or session_id(home, place)
            verified = panto(home, place, "session", "verify")
            assert verified.returncode == 0, verified.stdout + verified.stderr
            if kill == 4:
                forked = panto(home, place, "session", "fork", name)
                assert forked.returncode in (0, 1, 2), forked.stderr
            if dice.random() < 0.5:
                arguments = ("-p", "--resume", name)
            else:
                said.append(f"prompt-{kill + 1}")
                arguments = ("-p", said[-1], "--resume", name)
        vendor.replies[:] = [Reply("The end.")] * 30
        done = panto(home, place, "-p", "the last", "--resume", name, "--output", "json")
        assert done.returncode == 0, done.stderr
        assert not vendor.refusals, vendor.refusals[:2]
        ran = (place / "ran").read_text().split() if (place / "ran").exists() else []
        assert len(ran) == len(set(ran)), "a call ran twice"
        exported = panto(home, place, "session", "export", name).stdout
        assert said[0] in accepted and accepted <= set(said)
        lost = [text for text in accepted if f'"{text}"' not in exported]
        assert not lost, "what was told as taken in is not there"
        shutil.rmtree(place)
