"""edit and write against a naive reference over generated files: bytes, modes, links."""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panto.schema.errors import ToolFailure
from panto.tools.edit import Replacement, apply
from tests.tools.lab import Lab, lab, run

BLOCK = 500
TRAPS = "$& $1 $$ \\1 \\g<0> %1 %% \\n{} ${x} \\0"
WORDS = ["a", "b", "aa", "foo", "bar()", "\t", "é", "x = 1", "{", "}", TRAPS, ".*", "^$", "[a]", "(?i)", "\\", "ÿ"]
MARKS = {"utf-8": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff", "utf-32-le": b"\xff\xfe\0\0"}


class Sample:
    """A generated file: its text, how it is written, and its bytes."""

    def __init__(self, dice: random.Random) -> None:
        self.encoding = dice.choice(["utf-8", "utf-8", "utf-8", "utf-16-le", "utf-16-be", "latin-1", "utf-32-le"])
        self.mark = MARKS.get(self.encoding, b"") if self.encoding != "utf-8" or dice.random() < 0.3 else b""
        style = dice.choice(["\n", "\r\n", "mixed"])
        lines = ["".join(dice.choice(WORDS) for _ in range(dice.randint(0, 4))) for _ in range(dice.randint(1, 8))]
        if self.encoding == "latin-1":
            lines.append("caf\xe9 ol\xe9")
        self.text = ""
        for index, line in enumerate(lines):
            last = index == len(lines) - 1
            end = dice.choice(["\n", "\r\n"]) if style == "mixed" else style
            self.text += line + ("" if last and dice.random() < 0.5 else end)
        self.data = self.mark + self.text.encode(self.encoding)

    def write(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding)


def places(text: str, old: str, loose: bool) -> list[tuple[int, int]]:
    """Every place where `old` stands, overlapping ones too, letter by letter; loose: \\n also matches \\r\\n."""
    found = []
    for start in range(len(text)):
        at = start
        for char in old:
            if loose and char == "\n" and text.startswith("\r\n", at):
                at += 2
            elif text.startswith(char, at):
                at += 1
            else:
                break
        else:
            found.append((start, at))
    return found


def reference(text: str, edits: list[Replacement]) -> str | None:
    """What the text must become; None: the edits must be refused."""
    spans: list[tuple[int, int, str]] = []
    for edit in edits:
        found = places(text, edit.old, loose=False)
        if not found and "\n" in edit.old and "\r" not in edit.old:
            found = places(text, edit.old, loose=True)
        if not found or edit.old == edit.new or (len(found) > 1 and not edit.everywhere):
            return None
        after = 0
        for start, end in found:
            if start < after:
                continue
            after = end
            feed = text.find("\n", start)
            feed = feed if feed >= 0 else text.rfind("\n", 0, start)
            crlf = feed > 0 and text[feed - 1] == "\r"
            new = edit.new.replace("\n", "\r\n") if crlf and "\r" not in edit.new else edit.new
            spans.append((start, end, new))
    spans.sort()
    if any(other[0] < one[1] for one, other in zip(spans, spans[1:], strict=False)):
        return None
    for start, end, new in reversed(spans):
        text = text[:start] + new + text[end:]
    return text


def edits_for(dice: random.Random, sample: Sample) -> list[Replacement]:
    out = []
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        start = dice.randrange(len(sample.text) + 1)
        old = sample.text[start : start + dice.randint(1, 12)]
        if dice.random() < 0.7:
            old = old.replace("\r\n", "\n")
        if dice.random() < 0.1:
            old += "nowhere"
        new = "".join(dice.choice([*WORDS, "\n", "\nB2\n"]) for _ in range(dice.randint(0, 4)))
        if sample.encoding == "latin-1":
            new = new.encode("latin-1", "replace").decode("latin-1")
        out.append(Replacement(old or "a", new, dice.random() < 0.3))
    return out


async def one_edit(dice: random.Random, folder: Path, work: Lab) -> None:
    sample = Sample(dice)
    edits = edits_for(dice, sample)
    path = folder / "file"
    work.fresh.clear()  # another file, as far as this session knows
    path.write_bytes(sample.data)
    mode = dice.choice([0o644, 0o755, 0o600, 0o640, 0o4755])
    path.chmod(mode)
    name, kind = "file", dice.choice(["plain", "link", "hard", "link to link"])
    if kind == "hard":
        os.link(path, folder / "other")
    elif kind != "plain":
        (folder / "link").symlink_to("file")
        name = "link"
        if kind == "link to link":
            (folder / "link2").symlink_to(folder / "link")
            name = "link2"
    wanted = reference(sample.text, edits)
    given = [{"old": e.old, "new": e.new, "all": e.everywhere} for e in edits]
    try:
        await work.call("edit", path=name, edits=given)
        done = True
    except ToolFailure as failure:
        assert failure.effects == "none"
        done = False
    story = f"{sample.data!r} {edits!r}"
    assert done == (wanted is not None), story
    assert path.read_bytes() == (sample.write(wanted) if wanted is not None else sample.data), story
    assert stat.S_IMODE(path.stat().st_mode) == mode
    if kind == "hard":
        assert (folder / "other").samefile(path)
    elif kind != "plain":
        assert os.readlink(folder / "link") == "file"
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        {"plain": ["file"], "hard": ["file", "other"], "link": ["file", "link"]}.get(kind, ["file", "link", "link2"])
    )
    for extra in folder.iterdir():
        extra.unlink()


@pytest.mark.long(sample=1)
@pytest.mark.parametrize("block", range(80))
def test_an_edit_does_to_a_file_what_the_naive_reference_does_and_nothing_else(block: int, tmp_path: Path) -> None:
    async def check() -> None:
        dice = random.Random(block)
        async with lab(tmp_path / "ws") as work:
            for _ in range(BLOCK):
                await one_edit(dice, work.cwd, work)

    run(check())


@pytest.mark.long(sample=1)
@pytest.mark.parametrize("block", range(20))
def test_a_write_keeps_the_form_of_the_file_it_replaces(block: int, tmp_path: Path) -> None:
    async def check() -> None:
        dice = random.Random(1_000 + block)
        async with lab(tmp_path / "ws") as work:
            for _ in range(BLOCK):
                sample = Sample(dice)
                path = work.cwd / "file"
                path.write_bytes(sample.data)
                path.chmod(0o750)
                await work.call("read", path="file")
                words = WORDS if sample.encoding != "latin-1" else ["a"]
                text = "".join(dice.choice(words) + "\n" for _ in "12")
                await work.call("write", path="file", content=text)
                crlf = "\n" in sample.text and sample.text.count("\n") == sample.text.count("\r\n")
                assert path.read_bytes() == sample.write(text.replace("\n", "\r\n") if crlf else text), sample.data
                assert stat.S_IMODE(path.stat().st_mode) == 0o750

    run(check())


@given(st.binary(max_size=60), st.text(min_size=1, max_size=3), st.text(max_size=5))
def test_bytes_outside_the_replaced_span_never_change(data: bytes, old: str, new: str) -> None:
    try:
        out = apply(data, [Replacement(old, new)])
    except ToolFailure:
        return
    start = next(i for i in range(len(data) + 1) if data[:i] != out[:i] or i == len(data))
    tail = next(i for i in range(len(data) + 1) if i and data[-i:] != out[-i:] or i == len(data))
    assert data[: start - 1] == out[: start - 1] if start else True
    assert tail >= 0


def test_a_crlf_file_with_a_mark_and_no_final_newline_keeps_them_and_new_lines_get_crlf() -> None:
    data = bytes.fromhex("EFBBBF610D0A09620D0A63")
    assert apply(data, [Replacement("b", "B\nB2")]) == bytes.fromhex("EFBBBF610D0A09420D0A42320D0A63")


def test_replacement_text_lands_verbatim() -> None:
    assert apply(b"-x-", [Replacement("x", TRAPS)]) == b"-" + TRAPS.encode() + b"-"


def test_lf_text_matches_a_crlf_file_across_lines() -> None:
    assert apply(b"one\r\ntwo\r\nthree\r\n", [Replacement("one\ntwo", "1\n2")]) == b"1\r\n2\r\nthree\r\n"


def test_bytes_that_are_no_text_stay_as_they_are_around_an_edit() -> None:
    assert apply("naïve café ".encode() + b"\xff\xfe x\n", [Replacement("x", "y")])[-5:] == b"\xff\xfe y\n"


def test_all_edits_of_a_call_are_made_or_none(tmp_path: Path) -> None:
    async def check() -> None:
        async with lab(tmp_path / "ws") as work:
            (work.cwd / "f").write_bytes(b"one two three")
            failure = await work.failure(
                "edit", path="f", edits=[{"old": "one", "new": "1"}, {"old": "four", "new": "4"}]
            )
            assert "edits[1]" in failure.message
            assert (work.cwd / "f").read_bytes() == b"one two three"
            await work.call("edit", path="f", edits=[{"old": "three", "new": "3"}, {"old": "one", "new": "1"}])
            assert (work.cwd / "f").read_bytes() == b"1 two 3"

    run(check())


def message(data: bytes, *edits: Mapping[str, object]) -> str:
    try:
        apply(data, [Replacement(str(e["old"]), str(e["new"]), bool(e.get("all"))) for e in edits])
    except ToolFailure as failure:
        return failure.message
    raise AssertionError("it was done")


def test_a_miss_says_why() -> None:
    text = b"def total(self):\n    t = 0\n    for i in self.items:\n        t += i\n    return t\n"
    assert "2 times (lines 2, 5" in message(b"a\nt = 0\nb\nc\nt = 0\n", {"old": "t = 0", "new": "x"})
    assert "line 2 differs only in white space" in message(text, {"old": "def total(self):\n\tt = 0", "new": "x"})
    missed = message(text, {"old": "def total(self):\n    t = 0\n    for i in items:", "new": "x"})
    assert "it matches from line 1, but at line 3" in missed and "self.items" in missed
    near = message(text, {"old": "    retrun t", "new": "x"})
    assert "Nearest lines" in near and "5\t    return t" in near
    assert "nor anything like it" in message(text, {"old": "zzzzzzzzzzzzzz", "new": "x"})
    assert "overlap" in message(b"abcdef", {"old": "abc", "new": "x"}, {"old": "cde", "new": "y"})
    assert "are the same" in message(b"abc", {"old": "abc", "new": "abc"})
    assert "binary" in message(b"\0\1\2abc", {"old": "abc", "new": "x"})
    assert "latin-1" in message("caf\xe9 ol\xe9\n".encode("latin-1"), {"old": "ol", "new": "漢"})
