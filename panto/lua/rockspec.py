"""Rockspecs: small Lua files that say what a rock is. Read in a Lua state that has nothing to reach."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panto.lua.bridge import Bridge
from panto.lua.host import Host
from panto.schema.errors import UsageError


@dataclass(frozen=True, slots=True)
class Rockspec:
    """What a rock is. `modules`: module name -> source file, also of data files (those of `install.lua`); `other` says
    why it is not pure Lua ("" it is)."""

    name: str
    version: str
    summary: str = ""
    dependencies: tuple[str, ...] = ()
    modules: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    folder: str = ""
    other: str = ""


def read(path: Path) -> Rockspec:
    """A rockspec file. Raises UsageError naming the file and what is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise UsageError(f"{path} cannot be read: {e}") from None
    return parse(text, str(path))


def parse(text: str, name: str) -> Rockspec:
    """A rockspec's text; `name` is for messages."""
    host = Host(session=False)
    evaluate = host.lua.eval("function(H) return H.read_rockspec end")(host.private)
    try:
        ok, found = evaluate(text, f"@{name}")
    except host.lua54.LuaError as e:
        raise UsageError(f"{name}: {e}") from None
    if not ok:
        raise UsageError(str(found) if name in str(found) else f"{name}: {found}")
    return _rockspec(Bridge(host).to_py(found), name)


def _rockspec(table: Any, name: str) -> Rockspec:
    package, version = table.get("package"), table.get("version")
    if not isinstance(package, str) or not isinstance(version, str):
        raise UsageError(f"{name}: package and version must be text")
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", package) or not re.fullmatch(r"[\w.]+-\d+", version):
        raise UsageError(f"{name}: {package!r} {version!r}: not a name and a version like 1.0-1")
    build, source = table.get("build") or {}, table.get("source") or {}
    description = table.get("description") or {}
    kind = build.get("type", "builtin")
    modules = {k: v for k, v in (build.get("modules") or {}).items() if isinstance(v, str)}
    installed = (build.get("install") or {}).get("lua") or {}
    if isinstance(installed, dict):
        modules |= {k: v for k, v in installed.items() if isinstance(v, str)}
    other = ""
    if kind not in ("builtin", "module", "none"):
        other = f"its build type is {kind}"
    elif len(modules) != len(build.get("modules") or {}) + len(installed) or not all(
        file.endswith(".lua") for name, file in modules.items() if name not in installed
    ):
        other = "it has parts in C"
    needs = table.get("dependencies") or []
    return Rockspec(
        name=package, version=version, summary=str(description.get("summary") or ""),
        dependencies=tuple(n for n in needs if isinstance(n, str)), modules=modules,
        source=str(source.get("url") or ""), folder=str(source.get("dir") or ""), other=other,
    )  # fmt: skip
