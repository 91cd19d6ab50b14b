"""Source archives inside rocks: only files and folders come out of them, and only into their place."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from panto.lua import rock_files
from panto.schema.errors import UsageError
from tests.lua.test_rocks import write_rock

Member = tuple[tarfile.TarInfo, bytes]


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b"") -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size, info.mode = kind, link, len(data), 0o4777
    return info, data


def tar(path: Path, members: Sequence[Member]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return path


def test_files_and_folders_come_out_without_their_rights(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    path = tar(tmp_path / "x.tar.gz", [member("a/b", tarfile.DIRTYPE), member("c/d/e.lua", data=b"return 1")])
    rock_files._untar(path, inside)
    assert (inside / "a/b").is_dir() and (inside / "c/d/e.lua").read_bytes() == b"return 1"
    assert (inside / "c/d/e.lua").stat().st_mode & 0o7111 == 0


@pytest.mark.parametrize("name", ["../out", "/tmp/out-of-a-rock", "a/../../out", ".."])
def test_a_member_that_names_a_place_outside_is_refused(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(UsageError, match="place outside itself"):
        rock_files._untar(tar(tmp_path / "x.tar.gz", [member(name, data=b"x")]), inside)
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "home") == ["inside", "x.tar.gz"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused_and_nothing_is_written_through_them(tmp_path: Path, kind: bytes) -> None:
    inside, victim = tmp_path / "inside", tmp_path / "victim"
    inside.mkdir()
    victim.mkdir()
    members = [member("way", kind, link=str(victim)), member("way/in.lua", data=b"x")]
    with pytest.raises(UsageError, match="holds a link"):
        rock_files._untar(tar(tmp_path / "x.tar.gz", members), inside)
    assert not list(victim.iterdir()) and not list(inside.iterdir())


def test_what_is_broken_or_too_large_is_told_in_words(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    whole = tar(tmp_path / "x.tar.gz", [member("a.lua", data=bytes(range(256)) * 4_000)]).read_bytes()
    for data in (b"", b"no tar", whole[: len(whole) // 2], whole[:40] + b"\xff" * 40 + whole[80:]):
        (tmp_path / "bad.tar.gz").write_bytes(data)
        with pytest.raises(UsageError, match="cannot be unpacked"):
            rock_files._untar(tmp_path / "bad.tar.gz", inside)
    huge = tar(tmp_path / "huge.tar.gz", [member("zeros", data=bytes(rock_files.LARGEST + 1))])
    with pytest.raises(UsageError, match="64 MiB"):
        rock_files._untar(huge, inside)
    assert not (inside / "zeros").exists()


def test_a_rock_whose_sources_are_an_archive_installs(tmp_path: Path) -> None:
    folder = tmp_path / "rock"
    spec = write_rock(folder, "packed")
    files = [member(f"packed/{name}", data=(folder / name).read_bytes()) for name in ("packed.lua", "inner.lua")]
    rock = tmp_path / "packed-1.0-1.src.rock"
    with zipfile.ZipFile(rock, "w") as archive:
        archive.write(spec, spec.name)
        archive.write(tar(tmp_path / "packed.tar.gz", files), "packed.tar.gz")
    assert rock_files.install(rock, tmp_path / "tree").name == "packed"
    assert (tmp_path / "tree/share/lua/5.4/packed/inner.lua").read_text() == "return 'packed.inner'"
