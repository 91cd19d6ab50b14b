"""grep, glob, ls and the index for `@`."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from panto.schema.errors import ToolFailure
from panto.schema.queries import Files
from panto.tools import globs, ripgrep
from panto.tools.files import FileIndex
from panto.tools.processes import Spawner
from tests.tools.lab import lab, processes, run, until


def repository(root: Path) -> None:
    for name, text in {
        "src/main.py": "import os\nprint('hello')\n", "src/deep/er/util.py": "def hello():\n    pass\n",
        "README.md": "Hello there\n", "node_modules/x/index.js": "hello ignored\n", "build.min.js": "hello ignored\n",
        ".gitignore": "node_modules/\n*.min.js\n", ".github/ci.yml": "hello: hidden\n", "a b/c d.txt": "hello spaces\n",
        "wide.txt": "x" * 5_000 + "hello" + "y" * 5_000 + "\n",
    }.items():  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "binary.dat").write_bytes(b"hello\0\1\2")
    (root / "utf16.txt").write_bytes(b"\xff\xfe" + "hello wide\n".encode("utf-16-le"))
    (root / ".git").mkdir()
    (root / ".git/config").write_text("hello git\n")


def test_grep_gives_matches_by_file_and_leaves_out_what_is_ignored(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            repository(work.cwd)
            reply = await work.call("grep", pattern="hello")
            assert reply.outcome.parts[0].text.split("\n") == [  # type: ignore[union-attr]
                ".github/ci.yml", "1:hello: hidden", "a b/c d.txt", "1:hello spaces",
                "src/deep/er/util.py", "1:def hello():", "src/main.py", "2:print('hello')", "utf16.txt", "1:hello wide",
                "wide.txt", f"1:…{'x' * 133}hello{'y' * 262}…",
            ]  # fmt: skip
            assert reply.outcome.fact == "6 matches in 6 files"
            assert await work.text("grep", pattern="hello", path="src", glob="*.py", context=1) == (
                "src/deep/er/util.py\n1:def hello():\n2-    pass\nsrc/main.py\n1-import os\n2:print('hello')"
            )
            assert await work.text("grep", pattern="HELLO there", ignore_case=True) == "README.md\n1:Hello there"
            assert await work.text("grep", pattern="nowhere") == "no match"
            assert (await work.text("grep", pattern="hello", limit=2)).endswith("pattern or path, or set limit)")
            assert await work.text("grep", pattern="--files") == "no match"

    run(check())


def test_grep_shows_lines_that_are_not_utf8_as_read_does(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            (work.cwd / "old").write_bytes("caf\xe9 cr\xe8me\n".encode("latin-1"))
            (work.cwd / "odd").write_bytes("crème ".encode() * 100 + b"caf\xe9\n")
            assert await work.text("grep", pattern="^caf") == "old\n1:café crème"
            assert "crème" in await work.text("grep", pattern="caf", path="odd")

    run(check())


def test_a_wrong_pattern_or_path_fails_in_ripgreps_words(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            (work.cwd / "f").touch()
            assert "unclosed group" in (await work.failure("grep", pattern="(")).message
            assert (await work.failure("grep", pattern="x", path="nowhere")).cls == "not_found"
            assert "not a directory" in (await work.failure("glob", pattern="*", path="f")).message

    run(check())


def test_a_search_in_a_pipe_or_device_is_refused_without_waiting(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            os.mkfifo(work.cwd / "pipe")
            assert "a pipe" in (await work.failure("grep", pattern="x", path="pipe")).message
            assert "a device" in (await work.failure("grep", pattern="x", path="/dev/zero")).message
            assert await work.text("grep", pattern="x") == "no match"

    run(check())


def test_escape_ends_a_search_that_has_nothing_to_say_yet(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            with open(work.cwd / "zeros", "wb") as file:
                file.truncate(1 << 40)  # takes no room, and hours to read
            context = work.context()
            options = ["--text", "--no-mmap", "--regexp=x", "--", str(work.cwd / "zeros")]
            search = ripgrep.run(options, str(work.cwd), work.settings.spawner, context.cancelled)
            waiting = asyncio.ensure_future(anext(search))
            await until(lambda: processes(str(work.cwd / "zeros")))
            context.cancelled.set()
            with pytest.raises(ToolFailure) as stopped:
                await waiting
            assert stopped.value.cls == "cancelled"
            await until(lambda: not processes(str(work.cwd / "zeros")))

    run(check())


def test_glob_finds_by_name_at_any_depth_or_by_path_from_the_root(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            repository(work.cwd)
            assert await work.text("glob", pattern="*.py") == "src/deep/er/util.py\nsrc/main.py"
            assert await work.text("glob", pattern="src/*.py") == "src/main.py"
            assert await work.text("glob", pattern="src/**/*.py") == "src/deep/er/util.py\nsrc/main.py"
            assert await work.text("glob", pattern="*.py", path="src/deep") == "src/deep/er/util.py"
            assert await work.text("glob", pattern=f"{work.cwd}/src/*.py") == "src/main.py"
            assert await work.text("glob", pattern="*.{js,md}") == "README.md"
            assert await work.text("glob", pattern="*.nothing") == "no file matches"
            assert "5 more" in await work.text("glob", pattern="*", limit=4)

    run(check())


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.py", "a/b.py", True), ("*.py", "a.pyc", False), ("a/*.py", "a/b/c.py", False), ("a/**", "a/b/c", True),
        ("**/x", "x", True), ("**/x", "a/b/x", True), ("a/**/b", "a/b", True), ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "ab", False), ("{a,b}/*.c", "b/x.c", True), ("[!a]*", "b", True), ("[!a]*", "a", False),
        ("a[", "a[", True), ("a{b", "a{b", True), ("\\*", "*", True), ("\\*", "x", False), ("x?z", "xyz", True),
        ("./x", "x", True), ("./x", "a/x", False), ("*", "a/b", True), ("**", "a/b", True), (".*", ".x", True),
    ],
)  # fmt: skip
def test_name_patterns(pattern: str, path: str, matches: bool) -> None:
    assert globs.matches(pattern, path) is matches


def test_ls_shows_a_tree_to_a_depth_and_names_links_without_following_them(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            (work.cwd / "a/b/c").mkdir(parents=True)
            (work.cwd / "a/f").touch()
            (work.cwd / "loop").symlink_to("..")
            (work.cwd / ".git/objects").mkdir(parents=True)
            os.mkfifo(work.cwd / "pipe")
            assert await work.text("ls") == ".git/\na/\nloop -> ..\npipe (not a file)"
            assert await work.text("ls", depth=3) == ".git/\na/\n  b/\n    c/\n  f\nloop -> ..\npipe (not a file)"
            (work.cwd / "empty").mkdir()
            assert await work.text("ls", path="empty") == "(empty)"
            for n in range(600):
                (work.cwd / f"empty/{n}").touch()
            assert (await work.text("ls", path="empty")).endswith("(100 more)")

    run(check())


async def found(index: FileIndex, text: str, limit: int = 8) -> list[str]:
    deadline = time.monotonic() + 20
    while not (answer := await index.search(text, limit)).complete:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    return [row.path for row in answer.rows]


def test_the_index_ranks_names_before_paths_and_knows_directories(tmp_path: Path) -> None:
    async def check() -> None:
        repository(tmp_path)
        (tmp_path / "loop").symlink_to("..")
        spawner = Spawner()
        index = FileIndex(str(tmp_path), spawner)
        try:
            assert (await found(index, "main"))[0] == "src/main.py"
            assert await found(index, "util.py") == ["src/deep/er/util.py"]
            assert (await found(index, "src"))[0] == "src/"
            assert await found(index, "sdu.py") == ["src/deep/er/util.py"]
            assert await found(index, "README") == ["README.md"]
            assert not [path for path in await found(index, "", 100) if "node_modules" in path or ".git/" in path]
            assert "loop/" not in await found(index, "loop")
            assert await found(index, "zzz") == []
            assert (await found(index, "/etc/host"))[0].startswith("/etc/host")
            (tmp_path / "src/brand_new.py").touch()
            deadline = time.monotonic() + 20
            while not await found(index, "brand_new"):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.1)
        finally:
            index.close()
            spawner.close()

    run(check())


def test_the_index_of_a_large_tree_never_holds_the_loop_and_answers_while_it_reads(tmp_path: Path) -> None:
    for folder in range(40):
        (tmp_path / f"dir{folder}").mkdir()
        for n in range(100):
            os.close(os.open(tmp_path / f"dir{folder}/file{n}.txt", os.O_CREAT))

    async def check() -> None:
        spawner = Spawner()
        index = FileIndex(str(tmp_path), spawner)
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0)

        beating = asyncio.ensure_future(beat())
        try:
            answers: list[Files] = []
            while not answers or not answers[-1].complete:
                answers.append(await index.search("file19"))
            assert answers[-1].total == 4_040 and len(answers[-1].rows) == 8
            assert beats > len(answers)  # it answers, and others have their turns, while it reads
        finally:
            beating.cancel()
            index.close()
            spawner.close()

    run(check())
