"""The Lua state: made once for a session or a script, on the thread that owns it.

lupa has memory-safety holes that a natural design hits at once. The rules kept here and in `driver`:

- Lua code sees no Python callable. It yields tagged requests, or leaves messages that are read when the entry ends.
- Coroutines and functions live in Lua tables; Python keeps numbers and the few main-state functions named below.
- Lua values reach Python only as results of those functions, and are converted at once (`bridge`).
- Whatever Lua may ask synchronously of Python (`Asks`) takes and gives scalars, and is held by the prelude alone.
- Tables that an extension owns are never written or iterated from Python.
"""

from __future__ import annotations

import codecs
import ctypes
import hashlib
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from panto.schema.errors import PantoError

if TYPE_CHECKING:
    from typing_extensions import Buffer

LuaFunction = Callable[..., Any]
Asks = Mapping[str, Callable[..., Any]]
"""Synchronous questions of the prelude: name -> function of scalars giving scalars (or a tuple of them)."""

PRELUDE = (
    "values", "tasks", "json", "digest", "standard", "modules", "luv", "surface", "agents", "extension", "wire",
    "entries",
)  # fmt: skip

_FOLDER = Path(__file__).with_name("prelude")
_CODEC = "utf8lua"


def _encode(text: str, errors: str = "strict") -> tuple[bytes, int]:
    return codecs.utf_8_encode(text, "surrogateescape")


def _decode(data: Buffer, errors: str = "strict") -> tuple[str, int]:
    return codecs.utf_8_decode(data, "surrogateescape", True)


def _find_codec(name: str) -> codecs.CodecInfo | None:
    return codecs.CodecInfo(_encode, _decode, name=_CODEC) if name == _CODEC else None


codecs.register(_find_codec)


def _deny(obj: object, name: object, *value: object) -> NoReturn:
    raise AttributeError("opaque")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(_CODEC)).hexdigest()


def load_lua54() -> Any:
    """The module lupa.lua54 with its symbols visible to C modules, whoever imported it first.

    Raises PantoError where lupa is missing or its Lua is not 5.4.
    """
    try:
        import lupa

        with lupa.allow_lua_module_loading():
            from lupa import lua54
        if hasattr(os, "RTLD_NOLOAD"):  # after another import the symbols are still private: make them global
            ctypes.CDLL(lua54.__file__, os.RTLD_NOW | os.RTLD_GLOBAL | os.RTLD_NOLOAD)
    except (ImportError, OSError) as e:
        raise PantoError(f"extensions need lupa with Lua 5.4: {e}", "pip install 'lupa>=2.8'") from None
    return lua54


def _read_prelude(name: str) -> str:
    return (_FOLDER / f"{name}.lua").read_text(encoding="utf-8")


class Host:
    """One Lua state and the main-state functions that Python may call, all from the owner thread."""

    def __init__(self, *, session: bool = True, env: Mapping[str, str] | None = None, asks: Asks | None = None) -> None:
        """`session`: inside panto (else a script's state: real streams, uv.run works, no `ext`).

        `env` is what os.getenv sees. `asks` are the prelude's synchronous questions.
        """
        self.lua54 = load_lua54()
        self.before_ask: Callable[[], None] = lambda: None
        self.thread = threading.get_ident()
        self.lua = self.lua54.LuaRuntime(
            encoding=_CODEC,
            source_encoding="utf-8",
            unpack_returned_tuples=True,
            register_eval=False,
            register_builtins=False,
            attribute_handlers=(_deny, _deny),
            max_memory=0,  # none, but one can be set: see guard
        )
        version = self.lua.globals()["_VERSION"]
        if version != "Lua 5.4":
            raise PantoError(f"extensions need Lua 5.4, this is {version}")
        self.is_table = self._table_test()
        self._load_prelude(session, env or {}, asks or {})

    def _table_test(self) -> Callable[[object], bool]:
        kind = self.lua54.lua_type
        return lambda value: kind(value) == "table"

    def _load_prelude(self, session: bool, env: Mapping[str, str], asks: Asks) -> None:
        # The `python` table goes first of all; what the prelude still needs is in its private table `H`.
        self.lua.execute("python = nil; package.loaded.python = nil")
        private = self.lua.execute("local H = { stock_require = require }; return H")
        self.private = private
        private["options"] = self.lua.table_from({"session": session, "env": self.lua.table_from(dict(env))})
        questions = {"sha256": _sha256, **asks}
        private["asks"] = self.lua.table_from({name: self._question(ask) for name, ask in questions.items()})
        run = self.lua.execute(
            "local load = load\n"
            "return function(text, name, H) local f, e = load(text, name, 't'); if not f then error(e, 0) end f(H) end"
        )
        for name in PRELUDE:
            run(_read_prelude(name), f"=[panto {name}]", private)
        self.null = private["null"]
        self.spawn: LuaFunction = private["spawn"]
        self.resume: LuaFunction = private["resume"]
        self.unpark: LuaFunction = private["unpark"]
        self.unpark_cancelled: LuaFunction = private["unpark_cancelled"]
        self.close_task: LuaFunction = private["close"]
        self.call: LuaFunction = private["call"]
        self.next_message: LuaFunction = private["next_message"]
        self.unref: LuaFunction = private["unref"]
        self.counts: LuaFunction = private["counts"]
        self.memory: LuaFunction = private["memory"]
        self.main_address: int = self.lua.execute("return tonumber(tostring(coroutine.running()):match('0x%x+'))")

    def _question(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def answer(*values: Any) -> Any:
            self.before_ask()
            return ask(*values)

        return answer

    def function(self, name: str) -> LuaFunction:
        """A main-state function of the prelude by name."""
        found: LuaFunction = self.private[name]
        return found

    def check_thread(self) -> None:
        """Raises RuntimeError off the owner thread: a Lua state has one."""
        if threading.get_ident() != self.thread:
            raise RuntimeError("the Lua state belongs to another thread")
