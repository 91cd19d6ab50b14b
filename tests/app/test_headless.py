"""The program without a screen: answers, records, exit codes, signals, pipes. A real model server answers."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.app.conftest import Panto
from tests.fake_model import FakeModel, Reply

CANARY = "canary-77ab01"


@pytest.fixture
def fake(panto: Panto, fake_model: FakeModel) -> FakeModel:
    """The model server, configured."""
    panto.config.write_text(
        f"""
model = "fake:small"
[providers.fake]
protocol = "openai_chat"
base_url = "{fake_model.url}"
api_key_env = "FAKE_KEY"
[providers.fake.models.small]
id = "small-1"
context = 131072
price = {{ input = 1.0, output = 2.0 }}
"""
    )
    panto.env["FAKE_KEY"] = CANARY
    return fake_model


def records(text: str) -> list[dict[str, Any]]:
    """Every line is one record."""
    return [json.loads(line) for line in text.splitlines()]


def wait_for(condition: Callable[[], object], what: str) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.01)


@contextmanager
def running(panto: Panto, *words: str, stdin: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[bytes]]:
    """The program while it runs; killed at the end if it still does."""
    process = subprocess.Popen(
        panto.argv(*words), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=panto.cwd,
        env=panto.environ(),
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_answer_goes_to_stdout_and_nothing_else_does(panto: Panto, fake: FakeModel) -> None:
    fake.replies.append(Reply("The answer.", reasoning="hm"))
    done = panto("-p", "a question")
    assert (done.returncode, done.stdout, done.stderr) == (0, "The answer.\n", "")
    assert fake.requests[0].headers["authorization"] == f"Bearer {CANARY}"
    assert fake.refusals == []


def test_piped_text_follows_the_prompt(panto: Panto, fake: FakeModel) -> None:
    panto("-p", "what is this", stdin="line one\nline two\n")
    assert fake.requests[0].body["messages"][-1]["content"] == "what is this\n\nline one\nline two"
    panto("-p", stdin="only this\n")
    assert fake.requests[1].body["messages"][-1]["content"] == "only this"


def test_stream_json_tells_a_turn_with_tools_in_order(panto: Panto, fake: FakeModel) -> None:
    (panto.cwd / "a.txt").write_text("alpha\n")
    fake.replies += [Reply("Reading.", calls=[("read", {"path": "a.txt"})]), Reply(["It says ", "alpha."])]
    done = panto("-p", "read a.txt", "--output", "stream-json")
    assert (done.returncode, done.stderr) == (0, "")
    told = records(done.stdout)
    assert told[0]["type"] == "session"
    assert told[0]["cwd"] == str(panto.cwd)
    assert told[0]["model"] == "fake:small"
    wanted = ("turn_started", "message", "tool_call", "tool_result", "turn_ended")
    assert [r["type"] for r in told if r["type"] in wanted] == [
        "turn_started", "message", "message", "tool_call", "tool_result", "message", "turn_ended",
    ]  # fmt: skip
    (call,) = [r for r in told if r["type"] == "tool_call"]
    (result,) = [r for r in told if r["type"] == "tool_result"]
    assert (call["name"], call["arguments"]) == ("read", {"path": "a.txt"})
    assert (result["id"], result["status"]) == (call["id"], "ok")
    assert "alpha" in result["text"]
    assert "".join(r["text"] for r in told if r["type"] == "text_delta") == "Reading.It says alpha."
    end = told[-1]
    assert (end["type"], end["status"], end["error"]) == ("turn_ended", "completed", None)
    assert end["text"] == "It says alpha."
    assert end["session"] == told[0]["id"]
    assert set(end["usage"]) == {"input", "output", "cache_read", "cache_write", "reasoning"}
    assert end["cost"] > 0


def test_json_prints_the_last_record_only(panto: Panto, fake: FakeModel) -> None:
    done = panto("-p", "hi", "--output", "json")
    (end,) = records(done.stdout)
    assert end["type"] == "turn_ended"


@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
@pytest.mark.parametrize(
    ("reply", "kind", "code"),
    [
        (Reply(status=401), "auth", 4),
        (Reply(status=404), "not_found", 4),
        (Reply(status=400), "invalid_request", 4),
    ],
)
def test_a_failed_model_call_is_told_in_every_format(
    panto: Panto, fake: FakeModel, output: str, reply: Reply, kind: str, code: int
) -> None:
    fake.replies.append(reply)
    done = panto("-p", "hi", "--output", output)
    assert done.returncode == code
    assert done.stderr.startswith("panto: failed: ")
    if output == "text":
        assert done.stdout == ""
    else:
        end = records(done.stdout)[-1]
        assert (end["type"], end["status"], end["error"]["kind"]) == ("turn_ended", "failed", kind)
        assert end["error"]["message"]
    assert CANARY not in done.stdout + done.stderr


def test_an_unreachable_server_exits_with_4_and_is_named(panto: Panto, fake: FakeModel) -> None:
    panto.config.write_text(panto.config.read_text().replace(fake.url, "http://127.0.0.1:9/v1"))
    done = panto("-p", "hi")
    assert done.returncode == 4
    assert "127.0.0.1:9" in done.stderr


def test_an_unknown_model_exits_with_2_and_the_nearest_name(panto: Panto, fake: FakeModel) -> None:
    done = panto("-p", "hi", "--model", "fake:smal", "--output", "stream-json")
    assert done.returncode == 2
    assert "fake:small" in done.stderr
    end = records(done.stdout)[-1]
    assert (end["type"], end["error"]["kind"]) == ("turn_ended", "usage")
    assert fake.requests == []


def test_no_model_at_all_exits_with_2_and_the_way_out(panto: Panto) -> None:
    done = panto("-p", "hi")
    assert done.returncode == 2
    assert "panto login" in done.stderr


def test_a_broken_config_line_is_a_warning_only(panto: Panto, fake: FakeModel) -> None:
    panto.config.write_text(panto.config.read_text() + "\n[limits]\nstps = 3\n")
    done = panto("-p", "hi")
    assert done.returncode == 0
    assert "did you mean steps?" in done.stderr


def test_an_untrusted_project_runs_without_its_extras_and_says_so(panto: Panto, fake: FakeModel) -> None:
    (panto.cwd / ".panto").mkdir()
    (panto.cwd / ".panto/config.toml").write_text('mode = "yolo"\n[providers.fake]\nkey_command = "touch PWNED"\n')
    done = panto("-p", "hi", "--output", "stream-json")
    assert done.returncode == 0
    assert any(r["type"] == "notice" and "not trusted" in r["text"] for r in records(done.stdout))
    assert not (panto.cwd / "PWNED").exists()


def test_a_call_that_nobody_can_allow_is_denied_and_exits_with_3(panto: Panto, fake: FakeModel) -> None:
    fake.replies += [Reply(calls=[("write", {"path": "x", "content": "y"})]), Reply("I could not.")]
    done = panto("-p", "write x", "--output", "stream-json")
    assert done.returncode == 3
    told = records(done.stdout)
    assert [r["status"] for r in told if r["type"] == "tool_result"] == ["denied"]
    assert (told[-1]["status"], told[-1]["text"]) == ("refused", "I could not.")
    refused = "write x: no rule allows write, and nobody is here to ask; the rule write(**) would allow it"
    assert told[-1]["error"] == {"kind": "permission", "message": refused}
    assert done.stderr.startswith(f"panto: refused: {refused}\n       ") and "--mode auto" in done.stderr
    assert not (panto.cwd / "x").exists()


def test_a_rule_or_a_mode_allows_it(panto: Panto, fake: FakeModel) -> None:
    for words, name in ((("--mode", "auto"), "x"), ((), "z")):
        fake.replies += [Reply(calls=[("write", {"path": name, "content": "y"})]), Reply("Done.")]
        assert panto("-p", "write", *words).returncode == (0 if words else 3)
    panto.config.write_text('permissions.allow = ["write"]\n' + panto.config.read_text())
    fake.replies += [Reply(calls=[("write", {"path": "z", "content": "y"})]), Reply("Done.")]
    assert panto("-p", "write").returncode == 0
    assert (panto.cwd / "x").read_text() == (panto.cwd / "z").read_text() == "y"


def test_a_rule_of_config_that_denies_does_not_change_the_exit(panto: Panto, fake: FakeModel) -> None:
    panto.config.write_text('permissions.deny = ["read"]\n' + panto.config.read_text())
    fake.replies += [Reply(calls=[("read", {"path": "a"})]), Reply("No.")]
    done = panto("-p", "read", "--output", "stream-json")
    assert [r["status"] for r in records(done.stdout) if r["type"] == "tool_result"] == ["denied"]
    assert done.returncode == 0


def test_the_step_limit_ends_a_turn_as_limited(panto: Panto, fake: FakeModel) -> None:
    (panto.cwd / "a.txt").write_text("alpha\n")
    panto.config.write_text(panto.config.read_text() + "\n[limits]\nsteps = 2\n")
    fake.replies += [Reply(calls=[("read", {"path": "a.txt", "offset": n})]) for n in (1, 1, 1)]
    done = panto("-p", "go", "--output", "json")
    assert done.returncode == 1
    assert records(done.stdout)[-1]["status"] == "limited"


def test_the_scripted_protocol_answers_from_the_config_or_a_file_beside_it(panto: Panto) -> None:
    panto.config.write_text(
        """
[providers.play]
protocol = "scripted"
replies = [{ text = "From the config." }]
[providers.play.models.a]
[providers.file]
protocol = "scripted"
script = "replies.json"
[providers.file.models.a]
"""
    )
    panto.config.with_name("replies.json").write_text('[{"text": "From a file."}]')
    assert panto("-p", "hi", "--model", "play:a").stdout == "From the config.\n"
    assert panto("-p", "hi", "--model", "file:a").stdout == "From a file.\n"


# ---------------------------------------------------------------- signals and pipes


def test_sigint_is_escape(panto: Panto, fake: FakeModel) -> None:
    fake.replies.append(Reply(["one ", "two ", "three"], rate=0.05))
    with running(panto, "-p", "count", "--output", "stream-json") as process:
        assert process.stdout
        seen = b""
        while b"text_delta" not in seen:
            seen += process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=30)
    told = records((seen + rest).decode())
    assert (process.returncode, told[-1]["status"]) == (130, "interrupted")
    assert told[-1]["text"].startswith("one")
    going_on = f"panto: interrupted\n       panto --resume {told[-1]['session'][:8]} goes on with this session\n"
    assert err.decode() == going_on


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_term_and_hup_park_the_turn_and_resume_goes_on_with_it(
    panto: Panto, fake: FakeModel, number: signal.Signals
) -> None:
    fake.replies += [Reply(calls=[("bash", {"command": "sleep 60"})])]
    with running(panto, "-p", "wait", "--mode", "yolo", "--output", "stream-json") as process:
        assert process.stdout
        seen = b""
        while b'"tool_call"' not in seen:
            seen += process.stdout.readline()
        time.sleep(0.1)
        process.send_signal(number)
        rest, err = process.communicate(timeout=30)
    told = records((seen + rest).decode())
    assert (process.returncode, told[-1]["status"]) == (130, "interrupted")
    assert err.count(b"interrupted") == 1 and f"panto --resume {told[-1]['session'][:8]}".encode() in err
    fake.replies.append(Reply("Here I am again."))
    done = panto("-p", "--resume", told[-1]["session"], "--output", "stream-json")
    assert done.returncode == 0, done.stderr
    again = records(done.stdout)
    assert again[0]["id"] == told[-1]["session"]
    assert [r["type"] for r in again if r["type"] in ("turn_started", "turn_ended")] == ["turn_started", "turn_ended"]
    assert again[-1]["text"] == "Here I am again."
    assert fake.refusals == []


def test_kill_and_resume_with_a_prompt_is_accepted_by_a_strict_server(panto: Panto, fake: FakeModel) -> None:
    fake.replies += [Reply(calls=[("bash", {"command": "sleep 60"}), ("read", {"path": "nothing"})])]
    with running(panto, "-p", "wait", "--mode", "yolo", "--output", "stream-json") as process:
        assert process.stdout
        first = json.loads(process.stdout.readline())
        seen = b""
        while b'"tool_call"' not in seen:
            seen += process.stdout.readline()
        time.sleep(0.2)
        process.kill()
        process.wait()
    fake.replies.append(Reply("Going on."))
    done = panto("-p", "go on", "--resume", first["id"][:12])
    assert (done.returncode, done.stdout) == (0, "Going on.\n"), done.stderr
    assert fake.refusals == []


def test_nothing_to_continue_is_said(panto: Panto, fake: FakeModel) -> None:
    session = records(panto("-p", "hi", "--output", "json").stdout)[-1]["session"]
    done = panto("-p", "--resume", session)
    assert done.returncode == 2
    assert "nothing in this session is waiting" in done.stderr


def test_continue_takes_the_last_session_of_this_directory(panto: Panto, fake: FakeModel) -> None:
    assert panto("-p", "hi", "--continue").returncode == 2
    first = records(panto("-p", "one", "--output", "json").stdout)[-1]["session"]
    assert records(panto("-p", "two", "--continue", "--output", "json").stdout)[-1]["session"] == first
    texts = [m["content"] for m in fake.requests[-1].body["messages"] if m["role"] == "user"]
    assert texts == ["one", "two"]


def test_a_fork_shares_the_history_and_leaves_the_first_alone(panto: Panto, fake: FakeModel) -> None:
    first = records(panto("-p", "one", "--output", "json").stdout)[-1]["session"]
    forked = records(panto("-p", "two", "--fork", first, "--output", "json").stdout)[-1]["session"]
    assert forked != first
    assert [m["content"] for m in fake.requests[-1].body["messages"] if m["role"] == "user"] == ["one", "two"]


@pytest.mark.parametrize("name", ["ffff", "zzzz", "ab"])
def test_an_unknown_session_exits_with_2(panto: Panto, fake: FakeModel, name: str) -> None:
    done = panto("-p", "hi", "--resume", name, "--output", "stream-json")
    assert done.returncode == 2
    assert name in done.stderr
    assert records(done.stdout)[-1]["error"]["kind"] == "usage"


def test_a_session_that_runs_elsewhere_exits_with_2_and_says_who_holds_it(panto: Panto, fake: FakeModel) -> None:
    fake.replies.append(Reply("slow", delay_s=30))
    with running(panto, "-p", "wait", "--output", "stream-json") as process:
        assert process.stdout
        first = json.loads(process.stdout.readline())
        wait_for(lambda: fake.requests, "the request")
        done = panto("-p", "hi", "--resume", first["id"])
        assert done.returncode == 2
        assert str(process.pid) in done.stderr


def test_a_reader_that_goes_away_ends_it_quietly(panto: Panto, fake: FakeModel) -> None:
    command = '"$@" -p FAKE\\(flood:3000\\) --output stream-json | head -1'
    done = subprocess.run(
        ["bash", "-c", command, "bash", *panto.argv()], capture_output=True, cwd=panto.cwd, env=panto.environ(),
        stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    assert done.stderr == b""
    assert json.loads(done.stdout)["type"] == "session"


def test_a_full_disk_behind_stdout_is_said(panto: Panto, fake: FakeModel) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            panto.argv("-p", "hi"), stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=panto.cwd,
            env=panto.environ(), timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    assert b"cannot write to standard output: No space left" in done.stderr


def test_without_a_terminal_and_without_p_it_says_so_and_does_not_hang(panto: Panto) -> None:
    done = panto("hi")
    assert done.returncode == 2
    assert "no terminal" in done.stderr
    assert "-p" in done.stderr


def test_p_without_anything_to_do_is_a_usage_error(panto: Panto, fake: FakeModel) -> None:
    assert panto("-p").returncode == 2
    assert "no prompt" in panto("-p").stderr


def test_binary_and_endless_stdin_are_refused(panto: Panto, fake: FakeModel) -> None:
    assert "is binary" in panto("-p", "what", stdin="a\0b").stderr
    with open("/dev/zero", "rb") as zeros:
        done = subprocess.run(
            panto.argv("-p", "what"), stdin=zeros, capture_output=True, cwd=panto.cwd, env=panto.environ(), timeout=60
        )
    assert done.returncode == 2
    assert b"MiB" in done.stderr
    assert fake.requests == []


def test_a_closed_stdin_is_no_obstacle(panto: Panto, fake: FakeModel) -> None:
    done = subprocess.run(
        ["bash", "-c", '"$@" <&-', "bash", *panto.argv("-p", "hi")], capture_output=True, cwd=panto.cwd,
        env=panto.environ(), timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- surroundings


@pytest.mark.parametrize("locale", ["C", "POSIX", "ru_RU.KOI8-R"])
def test_every_locale_completes_a_turn_in_utf_8(panto: Panto, fake: FakeModel, locale: str) -> None:
    command = "printf '\\xff\\xfe\\xe9'; touch ö"
    fake.replies += [Reply(calls=[("bash", {"command": command})]), Reply("é漢 \U0001f600")]
    done = panto("-p", "é漢", "--mode", "yolo", LC_ALL=locale)
    assert (done.returncode, done.stdout) == (0, "é漢 \U0001f600\n"), done.stderr
    assert fake.requests[0].body["messages"][-1]["content"] == "é漢"
    assert os.fsencode("ö") in [os.fsencode(name) for name in os.listdir(panto.cwd)]


def test_a_locale_that_cannot_name_a_file_names_it_all_the_same(panto: Panto, fake: FakeModel) -> None:
    calls: list[tuple[str, dict[str, Any] | str]] = [
        ("write", {"path": "漢.txt", "content": "é漢 ж\n"}),
        ("read", {"path": "имя.txt"}),
        ("grep", {"pattern": "вот"}),
        ("bash", {"command": "echo $LC_ALL ж; cat имя.txt"}),
    ]
    (panto.cwd / "имя.txt").write_text("вот é漢\n", encoding="utf-8")
    fake.replies += [Reply(calls=calls), Reply("Done.")]
    strict = {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}  # Python then takes the locale at its word, as it does KOI8-R
    done = panto("-p", "é漢", "--mode", "yolo", "--output", "stream-json", **strict)
    results = {r["id"]: r["text"] for r in records(done.stdout) if r["type"] == "tool_result"}
    told = [results[r["id"]] for r in records(done.stdout) if r["type"] == "tool_call"]
    assert told == ["made 漢.txt: 1 line", "1\tвот é漢", "имя.txt\n1:вот é漢", "POSIX ж\nвот é漢\n"]
    assert "漢.txt".encode() in os.listdir(os.fsencode(panto.cwd))


def test_a_folder_whose_name_is_not_utf8_is_worked_in_and_gone_on_in(panto: Panto, fake: FakeModel) -> None:
    place = Path(os.fsdecode(os.fsencode(panto.cwd) + b"/b\xffd"))
    try:
        place.mkdir()
    except OSError:
        pytest.skip("this file system has no such names")
    (place / "AGENTS.md").write_text("Be brief.")
    (place / ".panto").mkdir()
    (place / ".panto/config.toml").write_text('mode = "auto"')
    there = dataclasses.replace(panto, cwd=place)
    assert there("trust", "--yes").returncode == 0
    fake.replies += [Reply(calls=[("write", {"path": "a", "content": "1"}), ("ls", {})]), Reply("Done.")]
    done = there("-p", "hi", "--output", "stream-json")
    assert done.returncode == 0, done.stderr
    assert records(done.stdout)[0]["cwd"].endswith(r"/b\xffd")
    assert (place / "a").read_text() == "1"
    assert there("-p", "go on", "--continue").returncode == 0
    assert [m["role"] for m in fake.requests[-1].body["messages"]][-2:] == ["assistant", "user"]
    assert "hi" in there("session", "list").stdout


@pytest.mark.parametrize("name", [".panto/config.toml", ".git/HEAD", ".git", "AGENTS.md"])
def test_pipes_and_files_without_end_in_a_project_hold_nobody_up(panto: Panto, fake: FakeModel, name: str) -> None:
    place = panto.cwd / name
    place.parent.mkdir(exist_ok=True)
    os.mkfifo(place)
    assert panto("-p", "hi").returncode == 0
    place.unlink()
    place.symlink_to("/dev/zero")
    assert panto("-p", "hi").returncode == 0
    assert panto("trust", "--yes").returncode in (0, 2)
    assert panto("-p", "hi").returncode == 0


def test_a_home_that_cannot_be_written_runs_in_memory_with_one_notice(panto: Panto, fake: FakeModel) -> None:
    (panto.home / "file").write_text("")
    done = panto("-p", "hi", "--output", "stream-json", PANTO_SESSION_DIR=str(panto.home / "file/x"))
    assert done.returncode == 0, done.stderr
    notices = [r["text"] for r in records(done.stdout) if r["type"] == "notice"]
    assert len(notices) == 1
    assert "memory" in notices[0]


def test_no_home_at_all_completes_a_turn(panto: Panto, fake: FakeModel) -> None:
    gone = dict.fromkeys(
        ("HOME", "PANTO_SESSION_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"), ""
    )
    assert panto("-p", "hi", **gone).returncode == 0


def test_keys_reach_no_child_no_record_no_ledger_and_no_log(panto: Panto, fake: FakeModel) -> None:
    panto.env["OPENAI_API_KEY"] = "canary-openai-1"
    look = "env; cat /proc/$PPID/environ | tr '\\0' '\\n'; true"
    fake.replies += [Reply(calls=[("bash", {"command": look})]), Reply(f"The key is {CANARY}.")]
    done = panto("-p", "look", "--mode", "yolo", "--output", "stream-json", "--debug")
    assert done.returncode == 0
    (result,) = [r for r in records(done.stdout) if r["type"] == "tool_result"]
    assert "canary" not in result["text"]
    assert "canary" not in json.dumps(fake.requests[1].body)
    for folder, _, names in os.walk(panto.home):
        for name in names:
            if "sessions" not in folder:
                with open(os.path.join(folder, name), "rb") as file:
                    assert b"canary" not in file.read(), name


PEEK = """
local panto = require('panto')
panto.ext.register_tool {
  name = 'peek', description = 'x', approval = 'read', schema = { type = 'object' },
  handler = function(args)
    local text = panto.fs.read('notes')
    if args.fail then error(text) end
    return { content = text, title = text, fact = text, details = { type = 'text', text = text } }
  end,
}
"""


def test_a_key_that_a_tool_finds_is_written_nowhere(panto: Panto, fake: FakeModel) -> None:
    (panto.config.parent / "extensions/peek").mkdir(parents=True)
    (panto.config.parent / "extensions/peek/init.lua").write_text(PEEK)
    (panto.cwd / "notes").write_text(f"export FAKE_KEY={CANARY}\n")
    many = "for i in $(seq 4000); do echo $i padding padding padding padding padding padding padding padding; done"
    calls: list[tuple[str, dict[str, Any] | str]] = [
        ("read", {"path": "notes"}),
        ("grep", {"pattern": "canary"}),
        ("bash", {"command": f"cat notes; {many}; cat notes >&2"}),
        ("bash", {"command": "cat notes nowhere"}),
        ("peek", {}),
        ("peek", {"fail": True}),
        ("edit", {"path": "notes", "edits": [{"old": "export", "new": "set"}]}),
    ]
    fake.replies += [Reply(calls=calls), Reply("Done.")]
    done = panto("-p", "look", "--mode", "yolo", "--output", "stream-json", "--debug")
    told = [r["text"] for r in records(done.stdout) if r["type"] == "tool_result"]
    assert (len(told), len([text for text in told if "[secret]" in text])) == (len(calls), len(calls) - 1), told
    assert CANARY not in done.stdout + done.stderr + json.dumps([r.body for r in fake.requests])
    files = [path for path in panto.home.rglob("*") if path.is_file()]
    assert any("outputs" in path.parts for path in files)
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []
    assert (panto.cwd / "notes").read_text() == f"set FAKE_KEY={CANARY}\n"


@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGTERM])
def test_a_reader_that_takes_nothing_does_not_keep_a_run_alive_that_was_told_to_end(
    panto: Panto, fake: FakeModel, told: signal.Signals
) -> None:
    words = ("-p", "FAKE(flood:20000)", "--output", "stream-json")
    with running(panto, *words) as process:
        assert process.stdout is not None
        assert process.stdout.read(1)
        deadline = time.monotonic() + 30
        while not (fake.requests and fake.requests[-1].ended) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(told)
        assert process.wait(30) is not None


def test_keys_of_providers_that_are_gone_secret_headers_and_passwords_in_addresses_are_masked(
    panto: Panto, fake: FakeModel
) -> None:
    keys = {name: f"{name}-4711-abc" for name in ("gone", "header", "address", "proxy")}
    with panto.config.open("a") as config:
        config.write(f"""
[providers.other]
base_url = "http://me:{keys['address']}@127.0.0.1:9/v1"
headers = {{ Authorization = "Bearer {keys['header']}", x-team = "tools-4711" }}
""")
    (panto.config.parent / "credentials.toml").write_text(f'[gone]\nkey = "{keys["gone"]}"\n')
    (panto.config.parent / "credentials.toml").chmod(0o600)
    (panto.cwd / "notes").write_text("\n".join(keys.values()) + "\ntools-4711\n")
    fake.replies += [Reply(calls=[("read", {"path": "notes"})]), Reply("Done.")]
    done = panto("-p", "look", "--output", "stream-json", HTTPS_PROXY=f"http://me:{keys['proxy']}@127.0.0.1:9")
    (told,) = [r["text"] for r in records(done.stdout) if r["type"] == "tool_result"]
    assert told == "1\t[secret]\n2\t[secret]\n3\t[secret]\n4\t[secret]\n5\ttools-4711"


# ---------------------------------------------------------------- a conversation


def test_a_program_holds_a_conversation_and_answers_questions(panto: Panto, fake: FakeModel) -> None:
    fake.replies += [Reply(calls=[("write", {"path": "x", "content": "y"})]), Reply("Written."), Reply("Bye.")]
    with running(panto, "--input", "stream-json", "--output", "stream-json", stdin=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout

        def say(**record: object) -> None:
            assert process.stdin
            process.stdin.write(json.dumps(record).encode() + b"\n")
            process.stdin.flush()

        def until(kind: str) -> dict[str, Any]:
            assert process.stdout
            for line in process.stdout:
                record: dict[str, Any] = json.loads(line)
                if record["type"] == kind:
                    return record
            raise AssertionError(f"no {kind} came")

        say(type="prompt", text="write x")
        question = until("question")
        assert (question["kind"], question["tool"]) == ("approval", "write")
        assert question["arguments"] == {"path": "x", "content": "y"}
        assert not (panto.cwd / "x").exists()
        say(type="nonsense")
        assert "nonsense" in until("notice")["text"]
        say(type="answer", id=question["id"], decision="once")
        assert until("approved")["id"] == question["id"]
        assert until("tool_result")["status"] == "ok"
        assert until("turn_ended")["status"] == "completed"
        assert (panto.cwd / "x").read_text() == "y"
        say(type="prompt", text="bye")
        assert until("turn_ended")["text"] == "Bye."
        process.stdin.close()
        process.stdin = None
        rest, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        assert rest == b""


def test_when_the_program_stops_listening_an_open_question_is_refused(panto: Panto, fake: FakeModel) -> None:
    fake.replies += [Reply(calls=[("write", {"path": "x", "content": "y"})]), Reply("I could not.")]
    said = '{"type":"prompt","text":"write x"}\n'
    done = panto("--input", "stream-json", "--output", "stream-json", stdin=said)
    assert done.returncode == 3
    assert records(done.stdout)[-1]["status"] == "refused"
    assert not (panto.cwd / "x").exists()


def test_without_records_a_question_is_put_on_stderr_with_what_answers_it(panto: Panto, fake: FakeModel) -> None:
    fake.replies += [Reply(calls=[("write", {"path": "x", "content": "y"})]), Reply("Done.")]
    with running(panto, "--input", "stream-json", stdin=subprocess.PIPE) as process:
        assert process.stdin and process.stderr
        process.stdin.write(b'{"type":"prompt","text":"write x"}\n')
        process.stdin.flush()
        assert process.stderr.readline() == b'panto: allow write {"content":"y","path":"x"}? (no rule allows write)\n'
        answer, _, rest = process.stderr.readline().decode().strip().partition(" on stdin")
        assert rest == " answers"
        process.stdin.write(answer.replace("once|session|no", "once").encode() + b"\n")
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, b"Done.\n", b"")
    assert (panto.cwd / "x").read_text() == "y"


def test_several_turns_end_each_and_the_last_decides(panto: Panto, fake: FakeModel) -> None:
    fake.replies += [Reply("one"), Reply(status=401)]
    said = '{"type":"prompt","text":"a"}\n{"type":"queue","text":"b"}\n'
    done = panto("--input", "stream-json", "--output", "stream-json", stdin=said)
    ends = [r for r in records(done.stdout) if r["type"] == "turn_ended"]
    assert [r["status"] for r in ends] == ["completed", "failed"]
    assert records(done.stdout)[-1] == ends[-1]
    assert done.returncode == 4


def test_an_empty_conversation_is_a_usage_error(panto: Panto, fake: FakeModel) -> None:
    done = panto("--input", "stream-json", "--output", "stream-json")
    assert done.returncode == 2
    assert records(done.stdout)[-1]["error"]["kind"] == "usage"


def test_a_mode_from_the_command_line_is_of_that_run_only(panto: Panto, fake: FakeModel) -> None:
    fake.replies += [Reply(calls=[("write", {"path": "x", "content": "y"})]), Reply("Done.")]
    assert panto("-p", "write", "--mode", "yolo").returncode == 0
    fake.replies += [Reply(calls=[("write", {"path": "z", "content": "y"})]), Reply("I could not.")]
    assert panto("-p", "write", "--continue").returncode == 3
    assert (panto.cwd / "x").exists() and not (panto.cwd / "z").exists()
