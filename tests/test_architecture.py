"""The budgets: sizes, names, front doors, broad excepts, and what a start may load. The walls are import contracts."""

import ast
import importlib
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_model import FakeModel

ROOT = Path(__file__).resolve().parent.parent
PANTO = ROOT / "panto"
FILES = sorted(p for p in PANTO.rglob("*.py") if "_shipped" not in p.parts)
ROOMS = sorted(p.parent.name for p in PANTO.glob("*/__init__.py"))
NEEDED = ["agent", "app", "lua", "providers", "remote", "scheduler", "schema", "session", "tools", "tui"]

Function = ast.FunctionDef | ast.AsyncFunctionDef


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def length(path: Path) -> int:
    return len(path.read_text().splitlines())


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in FILES:
        yield relative(path), ast.parse(path.read_text())


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def lines(function: Function, *, with_docstring: bool = False) -> int:
    """How many lines a function has, from `def` to its end; a docstring is a contract, not work, and is not counted."""
    first = function.body[0]
    counted = with_docstring or ast.get_docstring(function) is None
    taken = 0 if counted else (first.end_lineno or 0) - first.lineno + 1
    return (function.end_lineno or 0) - function.lineno + 1 - taken


# ---------------------------------------------------------------- sizes


def test_every_room_is_there() -> None:
    assert set(NEEDED) <= set(ROOMS)


def test_the_loop_is_a_file_that_every_newcomer_can_read_first() -> None:
    loop = PANTO / "agent/loop.py"
    assert length(loop) <= 150
    long = {f.name: lines(f, with_docstring=True) for f in functions(ast.parse(loop.read_text()))}
    assert {name: n for name, n in long.items() if n > 40} == {}


def test_the_screens_root_mounts_and_routes_and_no_more() -> None:
    assert length(PANTO / "tui/app.py") <= 200


def test_no_file_is_longer_than_400_lines() -> None:
    assert {relative(p): length(p) for p in FILES if length(p) > 400} == {}


def test_no_function_is_longer_than_50_lines() -> None:
    long = {f"{path}:{f.lineno} {f.name}": lines(f) for path, tree in trees() for f in functions(tree)}
    assert {name: n for name, n in long.items() if n > 50} == {}


# ---------------------------------------------------------------- names and doors

UNUSED = {"manager", "service", "helper", "helpers", "util", "utils", "core", "engine"}


def words(name: str) -> set[str]:
    return {w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def test_no_module_class_or_function_bears_a_name_that_says_nothing() -> None:
    found = [relative(p) for p in FILES if words(p.stem) & UNUSED or words(p.parent.name) & UNUSED]
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and words(node.name) & (UNUSED | {"handler"}):
                found.append(f"{path}: class {node.name}")
            if isinstance(node, Function) and words(node.name) & UNUSED:
                found.append(f"{path}: {node.name}()")
    assert found == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_front_door_says_what_the_room_is_and_what_it_offers(room: str) -> None:
    door = importlib.import_module(f"panto.{room}")
    assert door.__doc__ and len(door.__doc__.split()) >= 10
    exec(f"from panto.{room} import *", {})  # fails for a name that is neither there nor a module of the room
    assert len(set(door.__all__)) == len(door.__all__)


def test_every_built_in_tool_has_its_text_beside_it() -> None:
    texts = {p.stem for p in (PANTO / "tools").rglob("*.md")}
    sources = {p.stem for p in (PANTO / "tools").rglob("*.py")}
    assert {"read", "write", "edit", "bash", "grep", "glob", "ls"} <= texts
    assert texts <= sources


# ---------------------------------------------------------------- errors

# Around a turn, around one tool dispatch, around one Lua callback: nothing else may swallow what it does not know.
BROAD = {"panto/agent/dispatch.py", "panto/lua/driver.py", "panto/scheduler/mailbox.py"}


def is_broad(kind: ast.expr | None) -> bool:
    if kind is None:
        return True
    parts = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(isinstance(p, ast.Name) and p.id in ("Exception", "BaseException") for p in parts)


def goes_on(node: ast.Try, handler: ast.ExceptHandler) -> bool:
    """Whether the program goes on behind this handler: not if it raises again, nor in a forked child that then ends."""
    last = handler.body[-1]
    ends = bool(node.finalbody) and ast.unparse(node.finalbody[-1]).startswith("os._exit(")
    return not ends and not (isinstance(last, ast.Raise) and last.exc is None)


def broad_places(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            yield from (h.lineno for h in node.handlers if is_broad(h.type) and goes_on(node, h))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress") and any(map(is_broad, node.args)):
            yield node.lineno


def test_a_broad_except_stands_in_three_named_places_at_most() -> None:
    found = [(path, line) for path, tree in trees() for line in broad_places(tree)]
    assert {path for path, _ in found} <= BROAD, found
    assert len(found) == len({path for path, _ in found}), found


# ---------------------------------------------------------------- what a start loads


def loaded(folder: Path, code: str, *arguments: str) -> set[str]:
    """Names of the modules that a fresh interpreter loads for this code; click, which only tests need, is hidden."""
    listing = folder / "modules"
    listing.unlink(missing_ok=True)
    prologue = (
        "import atexit, sys; before = set(sys.modules); sys.modules['click'] = None\n"
        "def tell():\n"
        "    names = [name for name in set(sys.modules) - before if sys.modules[name]]\n"
        f"    open({str(listing)!r}, 'w').write(' '.join(names))\n"
        "atexit.register(tell)\n"
    )
    argv = [sys.executable, "-c", prologue + code, *arguments]
    done = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return set(listing.read_text().split())


def foreign(names: set[str]) -> set[str]:
    roots = {name.partition(".")[0] for name in names}
    return roots - set(sys.stdlib_module_names) - {"panto"}


SCREEN = {"textual", "rich", "pygments", "markdown_it", "linkify_it", "mdit_py_plugins"}
RUN = "from panto.app.main import main; sys.exit(main(sys.argv[1:]))"


def test_the_schema_loads_nothing_foreign_but_msgspec(tmp_path: Path) -> None:
    modules = ["panto.schema", *(f"panto.schema.{p.stem}" for p in PANTO.glob("schema/[a-z]*.py"))]
    names = loaded(tmp_path, f"import {', '.join(modules)}")
    assert foreign(names) - {"typing_extensions"} == {"msgspec"}  # which msgspec loads where it finds it
    assert not {"asyncio", "sqlite3", "logging"} & names


def test_the_version_is_told_before_anything_heavy_is_loaded(tmp_path: Path) -> None:
    names = loaded(tmp_path, RUN, "--version")
    assert foreign(names) == set()
    assert not {"asyncio", "argparse", "sqlite3", "tomllib", "importlib.metadata", "panto.schema"} & names


def test_the_version_told_is_the_packages() -> None:
    argv = [sys.executable, "-c", f"import sys; {RUN}", "--version"]
    told = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert packaged in told.stdout.split()


def test_a_headless_run_loads_nothing_of_the_screen(fake_model: FakeModel, home: Path, tmp_path: Path) -> None:
    config = home / "config"
    config.mkdir()
    (config / "config.toml").write_text(
        'model = "fake:m"\n[providers.fake]\nprotocol = "openai_chat"\n'
        f'base_url = "{fake_model.url}"\n[providers.fake.models.m]\nid = "fake"\n'
    )
    names = loaded(tmp_path, RUN, "-p", "hello")
    assert len(fake_model.requests) == 1
    assert fake_model.refusals == []
    assert not foreign(names) & (SCREEN | {"PIL", "click"})
    assert "lupa" not in foreign(loaded(tmp_path, RUN, "-p", "hello", "--no-extensions"))


def requirements(name: str) -> list[str]:
    try:
        return importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return []  # meant for another platform or Python


def test_click_is_not_installed_with_panto() -> None:
    """httpx loads click, pygments and rich when it finds click, which costs a tenth of a second at every start."""
    seen: set[str] = set()
    todo = ["panto"]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for line in requirements(name):
            if "extra ==" not in line and (match := re.match(r"[A-Za-z0-9._-]+", line)):
                todo.append(re.sub(r"[-_.]+", "-", match.group()).lower())
    assert {"httpx", "textual", "markdown-it-py"} <= seen
    assert "click" not in seen
