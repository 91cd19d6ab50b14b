"""read, write and edit: freshness, paths, kinds of files, serialisation, undo."""

from __future__ import annotations

import asyncio
import os
import stat
import unicodedata
from pathlib import Path

import pytest

from panto.schema.errors import Missing, ToolFailure
from panto.schema.events import FileChange
from panto.schema.view import DiffView, Hunk
from panto.tools import paths
from panto.tools.restore import Restored, restore
from tests.tools.lab import lab, run, text_of


def test_a_write_to_a_file_that_somebody_changed_is_refused_and_the_disk_untouched(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            path = work.cwd / "f"
            path.write_text("one\n")
            await work.call("read", path="f")
            path.write_text("one\ntwo\n")
            for name, given in (("write", {"content": "x"}), ("edit", {"edits": [{"old": "one", "new": "1"}]})):
                failure = await work.failure(name, path="f", **given)
                assert failure.cls == "conflict" and "read it again" in failure.message
            assert path.read_text() == "one\ntwo\n"

    run(check())


def test_touching_a_file_or_writing_it_oneself_does_not_make_it_stale(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            path = work.cwd / "f"
            await work.call("write", path="f", content="new\n")
            await work.call("write", path="f", content="newer\n")
            os.utime(path, (1, 1))
            await work.call("write", path="f", content="newest\n")
            assert path.read_text() == "newest\n"

    run(check())


def test_an_existing_file_must_be_read_before_it_is_written_over(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            (work.cwd / "f").write_text("precious")
            assert "read it first" in (await work.failure("write", path="f", content="x")).message
            assert (work.cwd / "f").read_text() == "precious"

    run(check())


def test_freshness_outlives_the_process_since_it_is_handed_in(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as first:
            (first.cwd / "f").write_text("one\n")
            await first.call("read", path="f")
        async with lab(tmp_path / "ws", fresh=first.fresh, session="resumed") as second:
            await second.call("write", path="f", content="two\n")
            assert (second.cwd / "f").read_text() == "two\n"

    run(check())


def test_parallel_edits_of_one_file_under_several_spellings_are_all_kept(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            path = work.cwd / "numbers"
            path.write_text("".join(f"<{n}>\n" for n in range(200)))
            (work.cwd / "link").symlink_to("numbers")
            await work.call("read", path="numbers")
            context = work.context(fresh=dict(work.fresh))
            names = ["numbers", "./numbers", "link", str(path)]
            await asyncio.gather(*(
                work.call("edit", context, path=names[n % 4], edits=[{"old": f"<{n}>", "new": f"<{n}!>"}])
                for n in range(0, 200, 5)
            ))  # fmt: skip
            wanted = "".join(f"<{n}!>\n" if n % 5 == 0 else f"<{n}>\n" for n in range(200))
            assert path.read_text() == wanted

    run(check())


def test_of_two_agents_that_read_the_same_content_the_later_writer_is_told(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as one, lab(tmp_path / "ws", session="s2") as other:
            (one.cwd / "f").write_text("a b\n")
            await one.call("read", path="f")
            await other.call("read", path="f")
            await one.call("edit", path="f", edits=[{"old": "a", "new": "A"}])
            assert (await other.failure("edit", path="f", edits=[{"old": "b", "new": "B"}])).cls == "conflict"
            assert (one.cwd / "f").read_text() == "A b\n"

    run(check())


def test_new_files_get_line_feeds_missing_directories_and_the_usual_mode(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            reply = await work.call("write", path="a/b/c.txt", content="x\ny\n")
            assert (work.cwd / "a/b/c.txt").read_bytes() == b"x\ny\n"
            mask = os.umask(0)
            os.umask(mask)
            assert stat.S_IMODE((work.cwd / "a/b/c.txt").stat().st_mode) == 0o666 & ~mask
            assert reply.outcome.title == "a/b/c.txt" and reply.outcome.fact == "+2"
            assert reply.files[0].before is None and reply.bodies == ()

    run(check())


def test_a_read_only_file_and_a_directory_are_refused(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            (work.cwd / "f").write_text("x")
            (work.cwd / "f").chmod(0o444)
            await work.call("read", path="f")
            assert "read-only" in (await work.failure("write", path="f", content="y")).message
            assert "directory" in (await work.failure("write", path=".", content="y")).message
            assert "use ls" in (await work.failure("read", path=".")).message

    run(check())


def test_reading_gives_numbered_lines_ranges_and_where_to_go_on(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            (work.cwd / "f").write_bytes(b"".join(b"line %d\r\n" % n for n in range(1, 5_001)))
            reply = await work.call("read", path="f")
            assert text_of(reply).startswith("1\tline 1\n2\tline 2\n")
            assert reply.outcome.fact == "2,000 lines"
            assert text_of(reply).endswith("(lines 1 to 2000 of 5000; the next: offset 2001)")
            assert await work.text("read", path="f", offset=4_999, limit=10) == "4999\tline 4999\n5000\tline 5000"
            assert "has 5,000 lines" in (await work.failure("read", path="f", offset=5_001)).message
            (work.cwd / "empty").touch()
            assert await work.text("read", path="empty") == "(the file is empty)"
            (work.cwd / "wide").write_text("x" * 100_000)
            assert len(await work.text("read", path="wide")) < 3_000

    run(check())


def test_a_huge_file_is_read_in_pieces_and_can_then_be_named_fresh(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            with (work.cwd / "huge").open("wb") as file:
                for start in range(0, 7_000_000, 1_000_000):
                    file.write(b"".join(b"%010d\n" % n for n in range(start, start + 1_000_000)))
            assert await work.text("read", path="huge", offset=6_500_001, limit=1) == (
                "6500001\t0006500000\n(lines 6500001 to 6500001 of 7000000; the next: offset 6500002)"
            )
            assert (await work.failure("edit", path="huge", edits=[{"old": "1", "new": "2"}])).cls == "invalid_input"

    run(check())


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("nul", b"text" * 1_250 + b"\0" + b"text" * 3_750, "unknown kind"),
        ("db.sqlite", b"SQLite format 3\0" + b"\x10\x00\x01\x01" * 50, "SQLite"),
        ("pdf", b"%PDF-1.7\nabc", "PDF"),
        ("zip", b"PK\x03\x04\x14\0\0\0", "zip"),
        ("elf", b"\x7fELF\2\1\1\0", "ELF"),
    ],
)
def test_a_binary_file_is_named_and_none_of_it_shown(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            (work.cwd / name).write_bytes(data)
            failure = await work.failure("read", path=name)
            assert "binary" in failure.message and said in failure.message and len(failure.message) < 200

    run(check())


def test_text_in_other_encodings_is_decoded_and_named(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            (work.cwd / "wide").write_bytes(b"\xff\xfe" + "Grüße 漢\n".encode("utf-16-le"))
            assert await work.text("read", path="wide") == "1\tGrüße 漢\n(decoded from utf-16-le)"
            (work.cwd / "old").write_bytes("Grüße\n".encode("latin-1"))
            assert await work.text("read", path="old") == "1\tGrüße\n(decoded from latin-1)"
            (work.cwd / "odd").write_bytes("ñ漢字 ok ".encode() + b"\xff\xfe\xe9\n")
            assert "ñ漢字 ok \ufffd" in await work.text("read", path="odd")

    run(check())


def test_pipes_devices_and_sockets_are_refused_without_waiting(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            os.mkfifo(work.cwd / "pipe")
            assert "a pipe" in (await work.failure("read", path="pipe")).message
            assert "a device" in (await work.failure("read", path="/dev/zero")).message
            assert "cannot be read" in (await work.failure("read", path="/proc/self/mem")).message
            assert "a pipe" in (await work.failure("edit", path="pipe", edits=[{"old": "a", "new": "b"}])).message

    run(check())


def test_a_name_that_looks_the_same_is_taken_if_it_is_the_only_one(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            name = "Shot 1.00\u202fPM.txt"
            (work.cwd / name).write_text("narrow")
            assert await work.text("read", path="Shot 1.00 PM.txt") == "1\tnarrow"
            (work.cwd / "Shot 1.00 PM.txt").write_text("plain")
            assert await work.text("read", path="Shot 1.00 PM.txt") == "1\tplain"
            (work.cwd / "Shot 1.00 PM.txt").rename(work.cwd / "Shot 1.00\u00a0PM.txt")
            failure = await work.failure("read", path="Shot 1.00 PM.txt")
            assert "\\u202f" in failure.message and "\\xa0" in failure.message
            accent = unicodedata.normalize("NFD", "café.txt")
            (work.cwd / accent).write_text("x")
            await work.call("edit", path=unicodedata.normalize("NFC", "café.txt"), edits=[{"old": "x", "new": "y"}])
            assert (work.cwd / accent).read_text() == "y"

    run(check())


def test_a_name_that_is_not_utf8_or_holds_escapes_is_listed_and_opened_by_what_was_listed(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            for raw in (b"caf\xe9.txt", b"two\nlines", b"red\x1b[31m"):
                Path(os.fsdecode(os.path.join(os.fsencode(work.cwd), raw))).write_bytes(b"inside " + raw[:3])
            listed = await work.text("ls")
            assert listed.split("\n") == ["caf\\xe9.txt", "red\\x1b[31m", "two\\nlines"]
            assert set((await work.text("glob", pattern="*")).split("\n")) == set(listed.split("\n"))
            for line in listed.split("\n"):
                assert await work.text("read", path=line) == f"1\tinside {line[:3]}"
            assert "inside" in await work.text("grep", pattern="inside")
            await work.call("edit", path="caf\\xe9.txt", edits=[{"old": "inside", "new": "within"}])
            assert Path(os.fsdecode(os.path.join(os.fsencode(work.cwd), b"caf\xe9.txt"))).read_bytes() == b"within caf"

    run(check())


def test_a_path_is_resolved_through_links_and_the_deepest_existing_parent(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    outside = tmp_path / "ws-other"
    root.mkdir()
    outside.mkdir()
    (root / "out").symlink_to(outside)
    (root / "in").symlink_to("sub")
    (root / "sub").mkdir()
    base = os.path.realpath(root)
    assert paths.real("out/new/file", str(root), new=True) == os.path.join(os.path.realpath(outside), "new/file")
    assert not paths.inside(paths.real("out/new", str(root), new=True), base)
    assert not paths.inside(paths.real("../ws-other/x", str(root)), base)
    assert not paths.inside(paths.real("sub/../../ws-other", str(root)), base)
    assert paths.inside(paths.real("in/x", str(root), new=True), base)
    assert paths.inside(paths.real(".", str(root)), base)


def test_a_missing_path_names_what_is_like_it(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            (work.cwd / "settings.py").touch()
            assert "there are settings.py" in (await work.failure("read", path="setings.py")).message
            failure = await work.failure("edit", path="nowhere/x", edits=[{"old": "a", "new": "b"}])
            assert failure.cls == "not_found" and "nor does its directory" in failure.message

    run(check())


def test_a_diff_has_true_line_numbers(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            (work.cwd / "f").write_text("".join(f"{n}\n" for n in range(1, 101)))
            reply = await work.call(
                "edit", path="f", edits=[{"old": "20\n", "new": ""}, {"old": "80\n", "new": "eighty\nplus\n"}]
            )
            view = reply.outcome.view
            assert isinstance(view, DiffView)
            assert (view.added, view.removed, reply.outcome.fact) == (2, 2, "+2 −2")
            first, second = view.hunks
            assert (first.old_start, first.new_start, second.old_start, second.new_start) == (17, 17, 77, 76)
            assert [kind + text for kind, text in first.lines] == [" 17", " 18", " 19", "-20", " 21", " 22", " 23"]
            assert second.lines[3:6] == (("-", "80"), ("+", "eighty"), ("+", "plus"))
            assert await work.tool("edit").preview(
                {"path": "f", "edits": [{"old": "50\n", "new": "fifty\n"}]}, work.context()
            ) == DiffView("f", view_hunk(), 1, 1)

    def view_hunk() -> tuple[Hunk, ...]:
        before = tuple((" ", str(n)) for n in (47, 48, 49))
        after = tuple((" ", str(n)) for n in (51, 52, 53))
        return (Hunk(46, 46, (*before, ("-", "50"), ("+", "fifty"), *after)),)

    run(check())


def test_what_a_turn_did_to_files_is_undone_from_the_record_alone(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            changes: list[FileChange] = []

            async def call(name: str, **given: object) -> None:
                changes.extend((await work.call(name, **given)).files)

            (work.cwd / "kept").write_bytes(b"old\r\n")
            (work.cwd / "kept").chmod(0o755)
            (work.cwd / "moved").write_text("1\n")
            await call("edit", path="kept", edits=[{"old": "old", "new": "new"}])
            await call("read", path="kept")
            await call("edit", path="kept", edits=[{"old": "new", "new": "newer"}])
            await call("write", path="made/here", content="x")
            await call("edit", path="moved", edits=[{"old": "1", "new": "2"}])
            (work.cwd / "moved").write_text("3\n")

            async def body(name: str) -> bytes:
                return work.bodies[name]

            result = await restore(changes, body)
            assert [os.path.basename(path) for path in result.restored] == ["kept"]
            assert [os.path.basename(path) for path in result.removed] == ["here"]
            assert result.left == ((str(work.cwd / "moved"), "was changed since, by a command or by you"),)
            assert (work.cwd / "kept").read_bytes() == b"old\r\n"
            assert stat.S_IMODE((work.cwd / "kept").stat().st_mode) == 0o755
            assert not (work.cwd / "made/here").exists()
            assert (work.cwd / "moved").read_text() == "3\n"

    run(check())


def test_undoing_goes_on_where_an_earlier_undoing_stopped(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            changes: list[FileChange] = []

            async def edit(old: str, new: str) -> None:
                changes.extend((await work.call("edit", path="f", edits=[{"old": old, "new": new}])).files)

            async def body(name: str) -> bytes:
                return work.bodies[name]

            file = work.cwd / "f"
            file.write_text("1\n")
            await work.call("read", path="f")
            await edit("1", "2")
            await edit("2", "3")
            assert (await restore(changes[1:], body)).restored == (str(file),)
            assert file.read_text() == "2\n"
            assert (await restore(changes, body)).restored == (str(file),)
            assert file.read_text() == "1\n"
            assert await restore(changes, body) == Restored((), ())  # nothing is left to do
            await work.call("read", path="f")
            await edit("1", "4")
            assert (await restore(changes, body)).restored == (str(file),)
            assert file.read_text() == "1\n"

    run(check())


def test_a_content_that_holds_a_key_is_not_kept_and_that_is_said_when_it_should_be_undone(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws", mask=("canary-1234",)) as work:
            (work.cwd / ".env").write_text("KEY=canary-1234\n")
            reply = await work.call("edit", path=".env", edits=[{"old": "KEY", "new": "TOKEN"}])
            assert reply.bodies == ()

            async def body(name: str) -> bytes:
                raise Missing(name)

            result = await restore(reply.files, body)
            assert result.restored == ()
            assert [path for path, why in result.left if "secret" in why] == [str(work.cwd / ".env")]
            assert (work.cwd / ".env").read_text() == "TOKEN=canary-1234\n"

    run(check())


def test_nothing_half_written_is_left_when_the_disk_is_full(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            (work.cwd / "f").write_bytes(b"old")
            await work.call("read", path="f")
            import resource
            import signal

            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
            try:
                failure = await work.failure("write", path="f", content="x" * 200_000)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
                signal.signal(signal.SIGXFSZ, heard)
            assert "could not be written" in failure.message
            assert (work.cwd / "f").read_bytes() == b"old"
            assert [path.name for path in work.cwd.iterdir()] == ["f"]

    run(check())


def test_half_a_character_from_a_model_is_refused_in_words(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            assert "half a character" in (await work.failure("write", path="f", content="\ud83d")).message
            assert not (work.cwd / "f").exists()

    run(check())


def test_a_nul_in_a_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolFailure, match="NUL"):
        paths.real("a\0b", str(tmp_path))


def test_more_folders_in_one_another_than_can_be_made_is_a_known_failure(tmp_path: Path) -> None:
    async def scene() -> None:
        async with lab(tmp_path) as it:
            failure = await it.failure("write", path="x/" * 1800 + "y", content="z")
            assert "could not be written: too many folders" in str(failure)
        assert not (tmp_path / "x").exists()

    run(scene())
