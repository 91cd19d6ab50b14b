"""Where things lie: the person's folders, the project's, and what is shipped with panto.

Nothing here creates anything. A folder that cannot be known (no home) is None; whoever needs it says so or goes on
in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
PROJECT_FOLDER = ".panto"
OTHERS = (".claude/agents", ".agents/agents")
"""Where other programs keep profiles of agents, beside `.panto`."""


def shipped_extensions() -> Path:
    """The folder of extensions that come with panto."""
    return _shipped("extensions")


def shipped_rocks() -> Path:
    """The folder of first-party rocks that come with panto."""
    return _shipped("rocks")


def _shipped(name: str) -> Path:
    installed = _PACKAGE / "_shipped" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def repository_root(cwd: Path) -> Path:
    """The nearest folder at or above `cwd` that holds `.git`, else `cwd` itself."""
    for folder in (cwd, *cwd.parents):
        if os.path.lexists(folder / ".git"):
            return folder
    return cwd


def project_folder(cwd: Path, root: Path) -> Path | None:
    """The nearest `.panto` from `cwd` up to the repository root, or None."""
    for folder in (cwd, *cwd.parents):
        found = folder / PROJECT_FOLDER
        if found.is_dir():
            return found
        if folder == root:
            break
    return None


def _absolute(path: str) -> Path | None:
    """platformdirs gives `~/...` unexpanded when there is no home: such a folder does not exist."""
    return Path(path) if os.path.isabs(path) else None


@dataclass(frozen=True)
class Paths:
    """Every place panto reads or writes, worked out when first asked for. All are absolute, or None if unknown."""

    cwd: Path
    environ: Mapping[str, str]

    def anew(self) -> Paths:
        """The same places, with the disk looked at again: a project may have got its folder meanwhile."""
        return Paths(self.cwd, self.environ)

    @cached_property
    def root(self) -> Path:
        """The repository root, or the working directory outside a repository."""
        return repository_root(self.cwd)

    @cached_property
    def project(self) -> Path | None:
        """The project's `.panto` folder; nothing in it may be used before it is trusted."""
        found = project_folder(self.cwd, self.root)
        return None if found is not None and found == self.config_dir else found

    @property
    def project_root(self) -> Path:
        """The folder the project's own things lie in: the one that holds `.panto`, else the repository's root."""
        return self.project.parent if self.project else self.root

    @cached_property
    def brought(self) -> tuple[Path, ...]:
        """The project's folders from which something would run or be read as an agent's instructions."""
        home = self.environ.get("HOME", "")
        if home and os.path.realpath(home) == os.path.realpath(self.project_root):
            others: list[Path] = []  # they are the person's own
        else:
            others = [folder for name in OTHERS if (folder := self.project_root / name).is_dir()]
        return (*((self.project,) if self.project else ()), *others)

    @cached_property
    def config_dir(self) -> Path | None:
        return self._place("PANTO_CONFIG_DIR", _config_dir)

    @cached_property
    def sessions(self) -> Path | None:
        """The store root."""
        data = None if self.environ.get("PANTO_SESSION_DIR") else self.data_dir
        return data / "sessions" if data else self._place("PANTO_SESSION_DIR", None)

    @cached_property
    def data_dir(self) -> Path | None:
        return self._place("", _data_dir)

    @cached_property
    def log_file(self) -> Path | None:
        folder = self._place("", _log_dir)
        return folder / "panto.log" if folder else None

    @property
    def user_config(self) -> Path | None:
        return self.config_dir / "config.toml" if self.config_dir else None

    @property
    def project_config(self) -> Path | None:
        return self.project / "config.toml" if self.project else None

    @property
    def credentials(self) -> Path | None:
        return self.config_dir / "credentials.toml" if self.config_dir else None

    @property
    def trust(self) -> Path | None:
        return self.config_dir / "trust.toml" if self.config_dir else None

    def _place(self, variable: str, otherwise: Callable[[], str] | None) -> Path | None:
        said = self.environ.get(variable, "") if variable else ""
        if said:
            return Path(os.path.abspath(os.path.expanduser(said)))
        return _absolute(otherwise()) if otherwise else None


# platformdirs costs 10 ms: it is imported only where the environment does not say the place.


def _config_dir() -> str:
    import platformdirs

    return platformdirs.user_config_dir("panto", appauthor=False)


def _data_dir() -> str:
    import platformdirs

    return platformdirs.user_data_dir("panto", appauthor=False)


def _log_dir() -> str:
    import platformdirs

    return platformdirs.user_log_dir("panto", appauthor=False)
