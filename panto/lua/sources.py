"""Where extensions are found, and in which order they are loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct, field

from panto.schema.codec import canonical


class LuaSettings(Struct, frozen=True):
    """What the config says of extensions; all paths absolute.

    `shipped`: the folder of those that come with panto, and `active` the names of those to load. `rocks`: (module,
    version wish) of installed rocks. `paths`: folders of single extensions. `user`, `project`: folders of which every
    extension is loaded (`project` only where it is trusted). `trees`: LuaRocks trees, searched in order.
    `shipped_rocks`: folders of first-party rocks (module name -> folder with its Lua sources).
    `tables`: name -> its table `[extension.NAME]`. `env`: the environment without credentials. `places`: folders that
    extensions may look into for files of their own: `config_dir` and, only where it is trusted, `project`. `isolate`:
    names (with `*`) of tools that run in a worker process, also where their extension does not say so.
    """

    shipped: Path | None = None
    active: tuple[str, ...] = ()
    rocks: tuple[tuple[str, str], ...] = ()
    shipped_rocks: Mapping[str, Path] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()
    user: Path | None = None
    project: Path | None = None
    trees: tuple[Path, ...] = ()
    tables: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    isolate: tuple[str, ...] = ()

    def table(self, owner: str) -> str | None:
        """An extension's own table as JSON text."""
        table = self.tables.get(owner)
        return canonical(table).decode() if table is not None else None


class Source(Struct, frozen=True):
    """One extension to load: by a file (`main`), or as a module of a rock. `kind` says where it comes from."""

    name: str
    kind: str
    main: Path | None = None
    module: str = ""
    problem: str = ""

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return str(self.main) if self.main else f"rock {self.module}"


def _folder(path: Path, kind: str) -> Source:
    name = path.stem if path.suffix == ".lua" else path.name
    if path.suffix == ".lua" and path.is_file():
        return Source(name, kind, path)
    for main in (path / "init.lua", path / f"{name}.lua"):
        if main.is_file():
            return Source(name, kind, main)
    problem = f"{path} has no init.lua" if path.exists() else f"{path} does not exist"
    return Source(name, kind, path, problem=problem)


def _all_in(folder: Path | None, kind: str) -> Iterable[Source]:
    if folder is None:
        return
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith((".", "_")):
            continue
        if entry.suffix == ".lua" and entry.is_file() or (entry / "init.lua").is_file():
            yield _folder(entry, kind)


def find(settings: LuaSettings) -> tuple[Source, ...]:
    """The extensions in load order: shipped, rocks, paths, the user's, the project's.

    Of two with one name the later one counts (a project's own `todo` instead of the shipped one), in the later place.
    """
    found: list[Source] = []
    for name in settings.active:
        if settings.shipped is not None:
            found.append(_folder(settings.shipped / name, "shipped"))
    found += [Source(module, "rock", module=module) for module, _ in settings.rocks]
    found += [_folder(path, "path") for path in settings.paths]
    found += _all_in(settings.user, "user")
    found += _all_in(settings.project, "project")
    last = {source.name: i for i, source in enumerate(found)}
    return tuple(source for i, source in enumerate(found) if last[source.name] == i)


def main_of(source: Source, settings: LuaSettings) -> Path | None:
    """The file that makes an extension; a rock's is that of its module. None where there is none."""
    if source.main is not None:
        return source.main
    shipped, module = settings.shipped_rocks.get(source.module), source.module.replace(".", "/")
    roots = [shipped / name for name in ("init.lua", f"{source.module}.lua")] if shipped else []
    names = [f"share/lua/5.4/{name}" for name in (f"{module}.lua", f"{module}/init.lua")]
    trees = [tree / name for tree in settings.trees for name in names]
    return next((path for path in (*roots, *trees) if path.is_file()), None)
