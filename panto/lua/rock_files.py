"""Installing a pure-Lua rock without LuaRocks: from a folder or a `.rock` file, into the same kind of tree.

A record of what was put where stands in the tree, so that it can be listed and removed again.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from panto.lua import rockspec
from panto.lua.rockspec import Rockspec
from panto.schema.errors import UsageError

RECORD = "panto-rocks.json"
LARGEST = 64 << 20


@dataclass(frozen=True, slots=True)
class Installed:
    """A rock in a tree. `files` are relative to the tree; `digest` is over their contents."""

    name: str
    version: str
    files: tuple[str, ...] = ()
    digest: str = ""


def records(tree: Path) -> dict[str, Installed]:
    """What was installed here without LuaRocks, by name."""
    try:
        table = json.loads((tree / RECORD).read_text(encoding="utf-8"))
        return {n: Installed(n, str(r["version"]), tuple(r["files"]), str(r["digest"])) for n, r in table.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _write_records(tree: Path, found: dict[str, Installed]) -> None:
    table = {r.name: {"version": r.version, "files": list(r.files), "digest": r.digest} for r in found.values()}
    tree.mkdir(parents=True, exist_ok=True)
    (tree / RECORD).write_text(json.dumps(table, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def find_rockspec(folder: Path) -> Path:
    """The one rockspec of a folder; the newest name where there are several. Raises UsageError."""
    found = sorted(folder.glob("*.rockspec")) or sorted(folder.glob("rockspec"))
    if not found:
        raise UsageError(f"{folder} has no rockspec", "panto rock new NAME makes a rock to start from")
    return found[-1]


def install(path: Path, tree: Path, have: Iterable[str] = ()) -> Installed:
    """Install a folder or a `.rock` file. `have`: rocks that are there already. Raises UsageError."""
    if path.is_dir():
        return _install_from(rockspec.read(find_rockspec(path)), path, tree, have)
    if path.suffix != ".rock":
        raise UsageError(f"{path} is neither a folder nor a .rock file")
    with tempfile.TemporaryDirectory(prefix="panto-rock-") as temporary:
        folder = Path(temporary)
        _unpack(path, folder)
        spec = rockspec.read(find_rockspec(folder))
        return _install_from(spec, _sources(spec, folder), tree, have)


def _install_from(spec: Rockspec, folder: Path, tree: Path, have: Iterable[str]) -> Installed:
    if spec.other:
        raise UsageError(f"{spec.name} needs LuaRocks: {spec.other}", HOW_TO_GET)
    known = records(tree)
    missing = [need for need in spec.dependencies if not _met(need, {*known, *have})]
    if missing:
        raise UsageError(
            f"{spec.name} needs {', '.join(missing)}", "install that first, or get LuaRocks, which finds it"
        )
    target, files, digest = tree / "share/lua/5.4", [], hashlib.sha256()
    packed = (folder / "lua").is_dir() and not all((folder / f).is_file() for f in spec.modules.values())
    for module, file in sorted(spec.modules.items()):
        source = (folder / "lua" / (module.replace(".", "/") + ".lua")) if packed else folder / file
        if packed and not source.is_file():
            source = folder / "lua" / module.replace(".", "/") / "init.lua"
        data = _read(source, folder)
        name = module.replace(".", "/")
        place = target / name / "init.lua" if Path(file).name == "init.lua" else target / f"{name}.lua"
        if not file.endswith(".lua"):  # data: in the module's folder under its own name
            place = (target / name).parent / Path(file).name
        _place(place, target)
        place.write_bytes(data)
        files.append(place.relative_to(tree).as_posix())
        digest.update(f"{module}\0{len(data)}\0".encode() + data)
    made = Installed(spec.name, spec.version, tuple(files), digest.hexdigest())
    old = known.get(spec.name)
    for gone in set(old.files if old else ()) - set(files):
        (tree / gone).unlink(missing_ok=True)
    _write_records(tree, {**known, spec.name: made})
    return made


def _read(source: Path, folder: Path) -> bytes:
    try:
        if not source.resolve().is_relative_to(folder.resolve()):
            raise UsageError(f"{source} lies outside the rock")
        return source.read_bytes()
    except OSError as e:
        raise UsageError(f"{source.relative_to(folder)} of the rock cannot be read: {e.strerror}") from None


def _place(place: Path, target: Path) -> None:
    if ".." in place.relative_to(target).parts:
        raise UsageError(f"{place} lies outside the tree")
    place.parent.mkdir(parents=True, exist_ok=True)


def _met(need: str, have: set[str]) -> bool:
    name = re.split(r"[\s<>=~]", need.strip(), maxsplit=1)[0]
    return name == "lua" or name in have


def _unpack(path: Path, folder: Path) -> None:
    """A zip file, without letting anything out of the folder."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > LARGEST:
                raise UsageError(f"{path} unpacks to more than {LARGEST >> 20} MiB")
            for entry in archive.infolist():
                if entry.filename.startswith("/") or ".." in Path(entry.filename).parts:
                    raise UsageError(f"{path} names a place outside itself: {entry.filename}")
            archive.extractall(folder)
    except (zipfile.BadZipFile, OSError) as e:
        raise UsageError(f"{path} is not a rock: {e}") from None


def _sources(spec: Rockspec, folder: Path) -> Path:
    """Where an unpacked rock's sources are: beside the rockspec, or in the archive that lies there."""
    for archive in (*folder.glob("*.tar.gz"), *folder.glob("*.tgz"), *folder.glob("*.zip")):
        inside = folder / "sources"
        inside.mkdir()
        if archive.suffix == ".zip":
            _unpack(archive, inside)
        else:
            _untar(archive, inside)
        folders = [entry for entry in inside.iterdir() if entry.is_dir()]
        return inside / spec.folder if spec.folder else folders[0] if len(folders) == 1 else inside
    folders = [entry for entry in folder.iterdir() if entry.is_dir() and entry.name not in ("lua", "doc")]
    return folders[0] if len(folders) == 1 and not (folder / "lua").is_dir() else folder


def _untar(path: Path, folder: Path) -> None:
    """Files and folders of an archive; links and places outside the folder are refused."""
    try:
        with tarfile.open(path) as archive:
            size = 0
            for entry in archive:
                size += entry.size
                if size > LARGEST:
                    raise UsageError(f"{path.name} unpacks to more than {LARGEST >> 20} MiB")
                place = Path(entry.name)
                if place.is_absolute() or ".." in place.parts or not (entry.isfile() or entry.isdir()):
                    raise UsageError(f"{path.name} holds a link, or a place outside itself: {entry.name}")
                target = folder / place
                if entry.isdir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                content = archive.extractfile(entry)
                assert content is not None
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
    except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error) as e:
        raise UsageError(f"{path.name} cannot be unpacked: {e}") from None


def remove(name: str, tree: Path) -> bool:
    """Remove a rock that was installed here without LuaRocks; False if there is none of that name."""
    known = records(tree)
    gone = known.pop(name, None)
    if gone is None:
        return False
    for file in gone.files:
        (tree / file).unlink(missing_ok=True)
        for parent in (tree / file).parents:
            if parent == tree or not parent.is_dir() or any(parent.iterdir()):
                break
            shutil.rmtree(parent)
    _write_records(tree, known)
    return True


HOW_TO_GET = "LuaRocks comes with most systems: apt install luarocks, brew install luarocks, or luarocks.org"
