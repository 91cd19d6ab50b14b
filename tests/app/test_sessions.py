"""`panto session ...` over sessions that real runs have left."""

import asyncio
import json
import re
import sqlite3
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from panto.session import Store
from panto.session.commands import ChangeTitle, GrantApproval
from tests.app.conftest import Panto
from tests.app.test_headless import fake, records, running  # noqa: F401 - a fixture
from tests.fake_model import FakeModel, Reply

Ask = Callable[..., str]


@pytest.fixture
def ask(panto: Panto, fake: FakeModel) -> Ask:  # noqa: F811
    """Runs a prompt; gives the session's id."""

    def run(prompt: str, *words: str, reply: Reply | None = None) -> str:
        if reply:
            fake.replies.append(reply)
        session: str = records(panto("-p", prompt, "--output", "json", *words).stdout)[-1]["session"]
        return session

    return run


def rows(panto: Panto, *words: str) -> list[dict[str, Any]]:
    return records(panto("session", "list", "--json", *words).stdout)


def test_sessions_of_this_directory_are_listed_and_all_with_all(panto: Panto, ask: Ask) -> None:
    first, second = ask("one thing"), ask("another thing")
    (panto.cwd / "sub").mkdir()
    third = ask("elsewhere", "--cwd", "sub")
    assert [row["id"] for row in rows(panto)] == [second, first]
    assert {row["id"] for row in rows(panto, "--all")} == {first, second, third}
    text = panto("session", "list").stdout
    assert "one thing" in text
    assert "1 turn" in text
    assert first[:4] in text
    assert str(panto.cwd / "sub") in panto("session", "list", "--all").stdout
    panto("session", "rename", first, "漢字 and more")
    lines = panto("session", "list", "--all").stdout.splitlines()
    ends = {sum(2 if unicodedata.east_asian_width(c) == "W" else 1 for c in line.split("/")[0]) for line in lines}
    assert len(ends) == 1, lines


def test_a_directory_without_sessions_says_so(panto: Panto) -> None:
    done = panto("session", "list")
    assert (done.returncode, done.stdout.startswith("No sessions")) == (0, True)
    assert panto("session", "list", "--json").stdout == ""


def test_show_tells_the_story_without_escape_codes(panto: Panto, ask: Ask) -> None:
    (panto.cwd / "a.txt").write_text("alpha\n")
    session = ask("read it", reply=Reply("Looking.\x1b[2J", calls=[("read", {"path": "a.txt"})]))
    text = panto("session", "show", session[:6]).stdout
    assert "> read it" in text
    assert "read a.txt" in text
    assert "\x1b" not in text
    kinds = [r["type"] for r in records(panto("session", "show", session, "--json").stdout)]
    assert "tool_result" in kinds
    assert kinds[-1] == "turn_ended"


def test_words_are_searched_in_titles_and_messages(panto: Panto, ask: Ask) -> None:
    session = ask("find the zebra", reply=Reply("It is in the quagga."))
    ask("something else")
    assert session[:4] in panto("session", "search", "quagga").stdout
    assert [r["session"] for r in records(panto("session", "search", "zebra", "--json").stdout)][:1] == [session]
    assert "Nothing" in panto("session", "search", "okapi").stdout


def test_rename_and_delete_take_any_unique_prefix(panto: Panto, ask: Ask) -> None:
    session, other = ask("one"), ask("two")
    done = panto("session", "rename", session[:10], "a", "new", "title")
    assert (done.returncode, done.stdout) == (0, f"{session[:8]} is now called: a new title\n")
    assert {row["title"] for row in rows(panto)} == {"a new title", "two"}
    assert panto("session", "delete", session[:10], "zzzz").returncode == 2
    assert len(rows(panto)) == 2
    assert panto("session", "delete", session[:10]).returncode == 0
    assert [row["id"] for row in rows(panto)] == [other]


def test_an_unknown_id_exits_with_2_and_names_it(panto: Panto, ask: Ask) -> None:
    ask("one")
    for words in (("show", "zzzz"), ("delete", "zzzz"), ("fork", "zzzz"), ("export", "zzzz"), ("verify", "zzzz")):
        done = panto("session", *words)
        assert done.returncode == 2
        assert "zzzz" in done.stderr


def test_an_ambiguous_id_lists_the_candidates(panto: Panto) -> None:
    async def fill() -> list[str]:
        store = await Store.open(panto.home / "sessions")
        made = [await store.create(cwd=str(panto.cwd)) for _ in range(17)]  # more than there are first digits
        for session in made:
            await session.commit(ChangeTitle(title="x"))  # without a word in it none would be kept
        await store.close()
        return [session.id for session in made]

    sessions = asyncio.run(fill())
    first = next(s[0] for s in sessions if sum(t[0] == s[0] for t in sessions) > 1)
    done = panto("session", "show", first)
    assert done.returncode == 2
    assert sum(s[:4] in done.stderr for s in sessions) >= 2


def test_a_fork_is_a_session_of_its_own_with_the_same_history(panto: Panto, ask: Ask) -> None:
    session = ask("one")
    forked = panto("session", "fork", session).stdout.strip()
    assert forked != session
    assert "> one" in panto("session", "show", forked).stdout
    listed = panto("session", "list").stdout.splitlines()
    assert [line.startswith(forked[:4]) for line in listed if "Fork of: one" in line] == [True]


def test_a_turn_is_named_by_its_number_or_the_beginning_of_its_id(panto: Panto, ask: Ask) -> None:
    session = ask("one")
    for prompt in ("two", "three"):
        assert panto("-p", prompt, "--resume", session).returncode == 0
    shown = panto("session", "show", session).stdout
    assert shown.startswith("one · fake:small · 20") and f" · {session[:8]} · {panto.cwd}\n" in shown
    turns = re.findall(r"^── turn (\d) · [-\d]+ [:\d]+ · (\w+)$", shown, re.MULTILINE)
    assert [number for number, _ in turns] == ["1", "2", "3"]
    for named in ("2", turns[1][1]):
        forked = panto("session", "fork", session, "--at", named)
        assert forked.returncode == 0, forked.stderr
        assert re.findall("^> (.*)$", panto("session", "show", forked.stdout.strip()).stdout, re.MULTILINE) == ["one"]
    done = panto("session", "fork", session, "--at", "4")
    assert done.returncode == 2
    assert f"has no turn 4\n       panto session show {session[:8]} numbers them" in done.stderr


def test_calls_that_a_parked_turn_left_open_are_shown_and_it_can_be_forked(
    panto: Panto, fake: FakeModel  # noqa: F811
) -> None:
    fake.replies += [Reply(calls=[("bash", {"command": "sleep 61"}), ("write", {"path": "x", "content": ""})])]
    said = '{"type":"prompt","text":"wait"}\n'
    panto.config.write_text(panto.config.read_text() + '[permissions]\nallow = ["bash"]\n')
    with running(panto, "--input", "stream-json", "--output", "stream-json", stdin=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        process.stdin.write(said.encode())
        process.stdin.flush()
        seen = b""
        while b'"question"' not in seen:
            seen += process.stdout.readline()
        process.kill()
        process.wait()
    session = records(seen.decode())[0]["id"]
    shown = panto("session", "show", session).stdout
    assert "  bash sleep 61: has not ended" in shown
    assert "  write x: waits for an answer" in shown
    forked = panto("session", "fork", session)
    assert forked.returncode == 0, forked.stderr


def test_a_session_goes_out_as_lines_and_comes_back_the_same(panto: Panto, ask: Ask, tmp_path: Path) -> None:
    session = ask("one")
    file = tmp_path / "out.jsonl"
    assert panto("session", "export", session, str(file)).returncode == 0
    assert panto("session", "export", session).stdout.encode() == file.read_bytes()
    assert all(isinstance(json.loads(line), dict) for line in file.read_text().splitlines())
    panto.env["PANTO_SESSION_DIR"] = str(tmp_path / "other")
    done = panto("session", "import", str(file))
    assert (done.returncode, done.stdout.strip()) == (0, session), done.stderr
    assert "> one" in panto("session", "show", session).stdout
    assert panto("session", "verify").returncode == 0
    assert panto("session", "import", str(tmp_path / "nothing")).returncode == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("one", "two", 1), "cannot be used (body"),
        (lambda text: re.sub(r'\{"type":"body".*\n', "", text, count=1), "is not in the store"),
        (lambda text: text[: len(text) // 2], "the file ends before its last commit"),
    ],
)
def test_a_changed_file_is_imported_as_far_as_it_proves_and_exits_with_1(
    panto: Panto, ask: Ask, tmp_path: Path, change: Callable[[str], str], said: str
) -> None:
    file = tmp_path / "out.jsonl"
    panto("session", "export", ask("one"), str(file))
    file.write_text(change(file.read_text()))
    panto.env["PANTO_SESSION_DIR"] = str(tmp_path / "other")
    done = panto("session", "import", str(file))
    assert done.returncode == 1
    assert said in done.stderr
    assert f"{file} is not as it was written: " in done.stderr
    assert f"are session {done.stdout[:8]}" in done.stderr
    assert panto("session", "show", done.stdout.strip()).returncode == 0


def test_the_ending_of_the_file_chooses_the_format(panto: Panto, ask: Ask) -> None:
    session = ask("one")
    for name, begins in (("o.md", "*one"), ("o.HTML", "<!doctype html>"), ("o.txt", "{"), ("o", "{")):
        assert panto("session", "export", session, name).returncode == 0
        assert (panto.cwd / name).read_text().startswith(begins)
    panto("session", "export", session, "o.md", "--format", "jsonl")
    assert (panto.cwd / "o.md").read_text().startswith("{")


def test_markdown_and_html_hold_what_was_said_and_no_markup_of_others(panto: Panto, ask: Ask) -> None:
    session = ask("<script>alert(1)</script>", reply=Reply("**bold** ```` four"))
    text = panto("session", "export", session, "--format", "markdown").stdout
    assert "**bold** ```` four" in text
    page = panto("session", "export", session, "--format", "html").stdout
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert page.startswith("<!doctype html>")


def test_damage_is_found_named_and_repaired(panto: Panto, ask: Ask) -> None:
    session, good = ask("one"), ask("two")
    done = panto("session", "verify")
    assert (done.returncode, done.stdout.count("  intact: ")) == (0, 2)
    with sqlite3.connect(panto.home / "sessions/sessions.db") as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f'DROP TRIGGER "{name}"')
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        table = next(f'"{name}"' for name in ("commits", "commit_row", "commit") if name in tables)
        db.execute(f"UPDATE {table} SET time = time + 1 WHERE segment = ? AND seq = 2", (session,))
    db.close()
    done = panto("session", "verify", session)
    assert done.returncode == 1
    assert "NOT intact: commit 2" in done.stdout
    assert panto("session", "verify", good).returncode == 0
    done = panto("session", "repair", session)
    assert done.returncode == 0
    assert "lost: commit 2" in done.stdout
    mended = done.stdout.splitlines()[-1].split()[0]
    assert panto("session", "verify", mended).returncode == 0


def test_going_on_with_what_a_damaged_store_held_names_the_damage_and_the_way_out(panto: Panto, ask: Ask) -> None:
    session = ask("one thing")
    file = next(panto.home.rglob("sessions.db"))
    file.write_bytes(b"\0" * 4096 + file.read_bytes()[4096:])
    for words in (("--continue",), ("--resume", session), ("--fork", session)):
        done = panto("-p", "go on", *words)
        assert done.returncode == 1
        assert "damaged" in done.stderr
        assert "panto session repair store" in done.stderr
    assert panto("-p", "another thing", "--cwd", str(panto.home)).returncode == 0
    done = panto("-p", "go on", "--continue")
    assert done.returncode == 2
    assert "lies aside" in done.stderr
    assert panto("session", "repair", "store").returncode == 0
    assert panto("-p", "go on", "--continue").returncode == 0


def test_approvals_in_an_imported_file_are_nobodys_here(
    panto: Panto, ask: Ask, fake: FakeModel, tmp_path: Path  # noqa: F811
) -> None:
    session, root = ask("one thing"), next(panto.home.rglob("sessions.db")).parent

    async def grant() -> None:
        store = await Store.open(root)
        there = await store.open_session(session)
        await there.commit(GrantApproval(grant="a" * 32, rule="bash"))
        await there.close()
        await store.close()

    asyncio.run(grant())
    assert panto("session", "export", session, str(tmp_path / "file")).returncode == 0
    elsewhere = {"PANTO_SESSION_DIR": str(tmp_path / "elsewhere")}
    assert panto("session", "import", str(tmp_path / "file"), **elsewhere).returncode == 0
    for env, code in (({}, 0), (elsewhere, 3)):
        fake.replies += [Reply(calls=[("bash", {"command": "touch RAN"})]), Reply("Done.")]
        assert panto("-p", "go", "--resume", session, **env).returncode == code
        assert (panto.cwd / "RAN").exists() == (code == 0)
        (panto.cwd / "RAN").unlink(missing_ok=True)


def test_a_file_that_is_no_store_is_not_taken_for_an_empty_one(panto: Panto) -> None:
    (panto.home / "sessions").mkdir()
    (panto.home / "sessions/sessions.db").write_bytes(b"no database " * 100)
    for words in (("list",), ("verify",), ("search", "x")):
        assert "damaged" in panto("session", *words).stderr
    assert (panto.home / "sessions/sessions.db").read_bytes() == b"no database " * 100


def test_what_is_not_understood_is_said_with_the_nearest_word(panto: Panto) -> None:
    assert "did you mean list?" in panto("session", "lst").stderr
    assert "something is missing" in panto("session", "rename", "abcd").stderr
    assert panto("session").returncode == 2


def test_what_cannot_be_written_is_read_and_said_in_a_sentence(panto: Panto, ask: Ask, tmp_path: Path) -> None:
    session = ask("one")
    file = tmp_path / "out.jsonl"
    panto("session", "export", session, str(file))
    panto.env["PANTO_SESSION_DIR"] = "/proc/nowhere"
    for words in (("rename", session, "x"), ("import", str(file)), ("delete", session), ("repair", session)):
        done = panto("session", *words)
        assert (done.returncode, done.stdout) == (1, "")
        assert "PANTO_SESSION_DIR" in done.stderr
    assert panto("session", "list").returncode == 0
    del panto.env["PANTO_SESSION_DIR"]
    done = panto("session", "export", session, "/proc/nowhere/x.md")
    assert (done.returncode, "/proc/nowhere/x.md: cannot be written" in done.stderr) == (1, True)


def test_a_damaged_store_is_brought_back_as_far_as_it_can_be_read(panto: Panto, ask: Ask) -> None:
    ask("one")
    file = panto.home / "sessions/sessions.db"
    file.write_bytes(b"garbage " + file.read_bytes()[8:])
    for words in (("list",), ("verify",), ("rename", "a", "b")):
        done = panto("session", *words)
        assert done.returncode == 1
        assert "damaged" in done.stderr and "panto session repair store brings back" in done.stderr
    done = panto("session", "repair", "store")
    assert done.returncode == 0
    assert "found: the database file was damaged" in done.stdout
    assert panto("session", "repair", "store").stdout == "the store is whole, nothing to repair\n"
    assert panto("session", "list").returncode == 0


@pytest.mark.parametrize("verb", ["show", "export"])
def test_a_reader_that_has_had_enough_is_no_trouble_of_the_store(panto: Panto, ask: Ask, verb: str) -> None:
    id = ask("hi", reply=Reply("\n".join(f"line {at}" for at in range(30_000))))
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -c 10', "bash", *panto.argv("session", verb, id)], capture_output=True,
        cwd=panto.cwd, env=panto.environ(), stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    assert done.stderr == b"" and len(done.stdout) == 10
