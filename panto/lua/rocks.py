"""Rock trees, kept by LuaRocks through its command. Without it, pure-Lua rocks still install (rock_files).

LuaRocks gets a home and a configuration of panto's own, so that nothing of the person's other trees leaks in.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from panto.lua import rock_files
from panto.schema.errors import UsageError

PUBLIC = "https://luarocks.org"
LIMIT_S = 600
NO_HEADERS = """\
#define LUA_VERSION_NUM 504
#error "the headers of Lua 5.4 are not installed: apt install liblua5.4-dev, brew install lua@5.4"
"""


@dataclass(frozen=True, slots=True)
class Rock:
    """A rock in a tree or on a server."""

    name: str
    version: str
    place: str = ""


class Rocks:
    """One tree. `servers`: where rocks come from (URLs or folders), in order; `environ` is LuaRocks' environment."""

    def __init__(self, tree: Path, environ: Mapping[str, str], servers: Sequence[str] = ()) -> None:
        self.tree = tree
        self.servers = tuple(servers) or (PUBLIC,)
        self._environ = environ

    @property
    def command(self) -> str | None:
        """The LuaRocks program, if there is one."""
        return shutil.which("luarocks", path=self._environ.get("PATH"))

    def install(self, what: str) -> str:
        """Install a rock by name, from a `.rock` or `.rockspec` file, or from a folder; what was installed, in words.

        Raises UsageError: not found, an unmet need, no network, no LuaRocks; the message says which.
        """
        path = Path(os.path.expanduser(what))
        local = path.is_dir() or path.suffix in (".rock", ".rockspec") and path.is_file()
        if local and (path.is_dir() or path.suffix == ".rock"):
            try:
                made = rock_files.install(path, self.tree, {rock.name for rock in self.list()})
            except UsageError:
                if self.command is None:
                    raise
            else:
                return f"{made.name} {made.version}"
        if not local and ("/" in what or what.endswith((".rock", ".rockspec"))):
            raise UsageError(f"there is no {what}")
        before = {(rock.name, rock.version) for rock in self.list()}
        if path.is_dir():
            self._run("make", rock_files.find_rockspec(path).name, cwd=path)
        else:
            self._run("install", *(what.split() if not local else (str(path.resolve()),)))
        new = [f"{rock.name} {rock.version}" for rock in self.list() if (rock.name, rock.version) not in before]
        return ", ".join(new) or f"{what} (already there)"

    def list(self) -> tuple[Rock, ...]:
        """The rocks of the tree, in alphabetical order."""
        own = [Rock(r.name, r.version, str(self.tree)) for r in rock_files.records(self.tree).values()]
        kept: list[Rock] = []
        if self.command is not None and (self.tree / "lib/luarocks").is_dir():
            kept = [rock for rock in _rows(self._run("list", "--porcelain")) if rock.name not in {r.name for r in own}]
        return tuple(sorted((*own, *kept), key=lambda rock: rock.name))

    def remove(self, name: str) -> None:
        """Remove a rock. Raises UsageError where it is not there, or another needs it."""
        if not rock_files.remove(name, self.tree):
            if name not in {rock.name for rock in self.list()}:
                raise UsageError(f"the rock {name} is not installed in {self.tree}", "panto rock list shows what is")
            self._run("remove", name)

    def update(self, names: Sequence[str] = ()) -> str:
        """Install the newest version of these rocks (none: all that LuaRocks keeps here); what changed, in words."""
        have = {rock.name: rock.version for rock in self.list()}
        own = rock_files.records(self.tree)
        for name in names:
            if name not in have:
                raise UsageError(f"the rock {name} is not installed in {self.tree}", "panto rock list shows what is")
            if name in own:
                raise UsageError(f"{name} was installed from a folder or file", "install it again from there")
        for name in names or [name for name in have if name not in own]:
            self._run("install", name)
        changed = [f"{r.name} {have.get(r.name)} -> {r.version}" for r in self.list() if have.get(r.name) != r.version]
        return ", ".join(changed) or "nothing newer"

    def search(self, words: str) -> tuple[Rock, ...]:
        """Rocks on the servers whose name holds the words. Raises UsageError where no server can be asked."""
        command = ("search", "--porcelain", words)
        status, out, said = self._call(command, None, headers=True)
        found = tuple(dict.fromkeys(_rows(out)))
        if status != 0 or (not found and "Failed searching manifest" in said):  # which it takes for an empty one
            raise _explained(command, out + said, self.servers)
        return found

    # --- LuaRocks ----------------------------------------------------------------------------------------------

    def _run(self, *words: str, cwd: Path | None = None) -> str:
        status, out, said = self._call(words, cwd, headers=True)
        if status != 0 and "Failed finding Lua header files" in said:  # only parts in C would need them
            status, out, said = self._call(words, cwd, headers=False)
        if status != 0:
            raise _explained(words, out + said, self.servers)
        return out

    def _call(self, words: Sequence[str], cwd: Path | None, headers: bool) -> tuple[int, str, str]:
        """Exit code, output and complaints. Without `headers`, LuaRocks is shown a lua.h that says what to install."""
        command = self.command
        if command is None:
            raise UsageError("LuaRocks is not installed on this machine", rock_files.HOW_TO_GET)
        self.tree.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="panto-rocks-") as home:
            config = Path(home, "config.lua")
            text = _config(self.tree, self.servers, home)
            if not headers:
                Path(home, "include").mkdir()
                Path(home, "include/lua.h").write_text(NO_HEADERS, encoding="utf-8")
                text += f"variables = {{ LUA_INCDIR = {_quoted(home + '/include')} }}\n"
            config.write_text(text, encoding="utf-8")
            env = {k: v for k, v in self._environ.items() if not k.startswith(("LUA_", "LUAROCKS_"))}
            env |= {"HOME": home, "LUAROCKS_CONFIG": str(config), "LC_ALL": "C.UTF-8"}
            argv = [command, "--lua-version", "5.4", "--tree", str(self.tree), *words]
            try:
                done = subprocess.run(
                    argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, text=True,
                    errors="replace",
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise UsageError(f"luarocks {words[0]} did not end within {LIMIT_S} s") from None
        return done.returncode, done.stdout, done.stderr


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _config(tree: Path, servers: Sequence[str], home: str) -> str:
    """LuaRocks' configuration: this tree only, these servers only."""
    places = ", ".join(_quoted(os.path.abspath(s) if "://" not in s else s) for s in servers)
    return (
        f"rocks_trees = {{ {{ name = 'panto', root = {_quoted(str(tree))} }} }}\n"
        f"rocks_servers = {{ {places} }}\n"
        f"local_cache = {_quoted(home + '/cache')}\n"
    )


def _rows(text: str) -> list[Rock]:
    rows = [line.split("\t") for line in text.splitlines()]
    return [Rock(row[0], row[1], row[3] if len(row) > 3 else "") for row in rows if len(row) >= 3]


def _explained(words: Sequence[str], said: str, servers: Sequence[str]) -> UsageError:
    """LuaRocks' complaint as one line and the way out. Being offline shows only in a warning before it."""
    errors = [line.partition("Error: ")[2].strip() for line in said.splitlines() if "Error: " in line]
    message = errors[-1] if errors else (said.strip().splitlines() or ["no word why"])[-1]
    unmet = re.search(r"Could not satisfy dependency:? ([^\n]*?)(?:: |\n|$)", said)
    if "Failed searching manifest" in said or "Failed downloading" in said:
        where = ", ".join(servers)
        return UsageError(f"the rock server cannot be reached: {where}", "check the network, or give --server")
    if unmet:
        return UsageError(f"{' '.join(words[1:])} needs {unmet[1].strip()}, which is not at {', '.join(servers)}")
    if "No results matching query" in message:
        return UsageError(f"there is no rock {' '.join(words[1:])} for Lua 5.4 at {', '.join(servers)}")
    if broken := re.search(r"break dependencies for: *\n(.+)", said):
        return UsageError(f"{words[1]} is needed by {broken[1].strip()}", "remove that first")
    return UsageError(f"luarocks {words[0]}: {message}")
