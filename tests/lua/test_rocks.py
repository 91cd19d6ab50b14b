"""Rocks: through LuaRocks against a server that is a folder, offline; and without it, from folders and files."""

import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from panto.lua import rock_files, rock_template, rockspec
from panto.lua.rocks import Rocks
from panto.schema.errors import UsageError

ENV = {"PATH": os.environ["PATH"]}
LESS = {"PATH": "/nonexistent"}


def write_rock(folder: Path, name: str, version: str = "1.0-1", needs: str = "", code: str = "return 'x'") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.lua").write_text(code)
    (folder / "inner.lua").write_text(f"return '{name}.inner'")
    spec = folder / f"{name}-{version}.rockspec"
    spec.write_text(
        f"""package = "{name}" version = "{version}"
        source = {{ url = "file://{folder}/{name}.tar.gz", dir = "{name}" }}
        description = {{ summary = "A rock" }}
        dependencies = {{ "lua >= 5.4"{needs} }}
        build = {{ type = "builtin", modules = {{ ["{name}"] = "{name}.lua", ["{name}.inner"] = "inner.lua" }} }}"""
    )
    return spec


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rock server: a folder with `pantoext`, which needs `pantobase`."""
    root = tmp_path_factory.mktemp("server")
    served = root / "served"
    served.mkdir()
    env = {**ENV, "HOME": str(root), "LC_ALL": "C.UTF-8"}
    for name, needs, version in (
        ("pantobase", "", "1.0-1"), ("pantoext", ', "pantobase >= 1.0"', "1.0-1"),
        ("pantolost", ', "nosuchdep >= 2"', "1.0-1"),
    ):  # fmt: skip
        folder = root / name
        spec = write_rock(folder, name, version, needs, f"return '{name}'")
        subprocess.run(
            ["tar", "czf", f"{name}.tar.gz", "--transform", f"s,^,{name}/,", f"{name}.lua", "inner.lua"],
            cwd=folder, check=True,
        )  # fmt: skip
        subprocess.run(
            ["luarocks", "--lua-version", "5.4", "pack", str(spec)],
            cwd=served,
            env=env,
            check=True,
            capture_output=True,
        )
    subprocess.run(
        ["luarocks-admin", "--lua-version", "5.4", "make_manifest", str(served)], env=env, check=True,
        capture_output=True,
    )  # fmt: skip
    return served


def names(rocks: Rocks) -> list[tuple[str, str]]:
    return [(rock.name, rock.version) for rock in rocks.list()]


def test_a_rock_comes_with_what_it_needs_and_goes_again(tmp_path: Path, server: Path) -> None:
    rocks = Rocks(tmp_path / "tree", ENV, [str(server)])
    assert names(rocks) == []
    assert rocks.install("pantoext") == "pantobase 1.0-1, pantoext 1.0-1"
    assert names(rocks) == [("pantobase", "1.0-1"), ("pantoext", "1.0-1")]
    assert (tmp_path / "tree/share/lua/5.4/pantoext/inner.lua").is_file()
    assert rocks.install("pantoext") == "pantoext (already there)"
    assert rocks.update() == "nothing newer"
    with pytest.raises(UsageError, match="pantobase"):
        rocks.remove("pantobase")  # another needs it
    rocks.remove("pantoext")
    rocks.remove("pantobase")
    assert names(rocks) == []


def test_a_search_finds_rocks_of_the_server(tmp_path: Path, server: Path) -> None:
    found = Rocks(tmp_path / "tree", ENV, [str(server)]).search("panto")
    assert sorted({rock.name for rock in found}) == ["pantobase", "pantoext", "pantolost"]


def test_what_is_not_there_is_told_from_what_cannot_be_reached(tmp_path: Path, server: Path) -> None:
    here = Rocks(tmp_path / "tree", ENV, [str(server)])
    with pytest.raises(UsageError, match="there is no rock nosuchrock for Lua 5.4"):
        here.install("nosuchrock")
    with pytest.raises(UsageError, match="nosuchdep"):
        here.install("pantolost")
    assert here.search("nosuchrock") == ()
    away = Rocks(tmp_path / "tree", ENV, ["http://127.0.0.1:9"])
    for ask in (away.install, away.search):
        with pytest.raises(UsageError, match="the rock server cannot be reached"):
            ask("pantoext")


def test_nothing_of_the_persons_other_trees_leaks_in(tmp_path: Path, server: Path) -> None:
    home = tmp_path / "home"
    (home / ".luarocks").mkdir(parents=True)
    (home / ".luarocks/config-5.4.lua").write_text("error('the person’s own configuration was read')")
    rocks = Rocks(tmp_path / "tree", {**ENV, "HOME": str(home)}, [str(server)])
    assert rocks.install("pantobase") == "pantobase 1.0-1"


def test_without_luarocks_one_line_says_how_to_get_it(tmp_path: Path) -> None:
    rocks = Rocks(tmp_path / "tree", LESS)
    for act in (lambda: rocks.install("pantoext"), lambda: rocks.search("x")):
        with pytest.raises(UsageError, match="LuaRocks is not installed") as raised:
            act()
        assert "apt install luarocks" in raised.value.hint


def test_without_luarocks_a_folder_installs_and_goes_again(tmp_path: Path) -> None:
    write_rock(tmp_path / "src", "mine")
    rocks = Rocks(tmp_path / "tree", LESS)
    assert rocks.install(str(tmp_path / "src")) == "mine 1.0-1"
    assert (tmp_path / "tree/share/lua/5.4/mine/inner.lua").read_text() == "return 'mine.inner'"
    digest = rock_files.records(tmp_path / "tree")["mine"].digest
    (tmp_path / "src" / "mine.lua").write_text("return 'changed'")
    rocks.install(str(tmp_path / "src"))
    assert rock_files.records(tmp_path / "tree")["mine"].digest != digest
    rocks.remove("mine")
    assert names(rocks) == [] and not (tmp_path / "tree/share/lua/5.4/mine").exists()
    with pytest.raises(UsageError, match="not installed"):
        rocks.remove("mine")


def test_without_luarocks_rock_files_install(tmp_path: Path, server: Path) -> None:
    rocks = Rocks(tmp_path / "tree", LESS)
    assert rocks.install(str(server / "pantobase-1.0-1.src.rock")) == "pantobase 1.0-1"
    assert rocks.install(str(server / "pantoext-1.0-1.src.rock")) == "pantoext 1.0-1"
    assert (tmp_path / "tree/share/lua/5.4/pantoext.lua").read_text() == "return 'pantoext'"
    with pytest.raises(UsageError, match="pantolost needs nosuchdep >= 2"):
        rocks.install(str(server / "pantolost-1.0-1.src.rock"))


def test_a_packed_binary_rock_of_pure_lua_installs(tmp_path: Path, server: Path) -> None:
    Rocks(tmp_path / "first", ENV, [str(server)]).install("pantobase")
    subprocess.run(
        ["luarocks", "--lua-version", "5.4", "--tree", str(tmp_path / "first"), "pack", "pantobase"], cwd=tmp_path,
        check=True, capture_output=True, env={**ENV, "HOME": str(tmp_path)},
    )  # fmt: skip
    packed = next(tmp_path.glob("*.all.rock"))
    assert Rocks(tmp_path / "second", LESS).install(str(packed)) == "pantobase 1.0-1"
    assert (tmp_path / "second/share/lua/5.4/pantobase.lua").read_text() == "return 'pantobase'"


def evil(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "evil.rock"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("evil-1.0-1.rockspec", 'package = "evil" version = "1.0-1" build = { modules = {} }')
            archive.writestr(name, "x")
        return path

    return make


@pytest.mark.parametrize("name", ["../outside.lua", "/tmp/outside.lua", "a/../../outside.lua"])
def test_a_rock_that_reaches_out_of_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="outside"):
        rock_files.install(evil(name)(tmp_path), tmp_path / "tree")


def test_a_module_that_reaches_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "src"
    folder.mkdir()
    (tmp_path / "secret.lua").write_text("return 1")
    spec = 'package = "x" version = "1.0-1" build = { type = "builtin", modules = { x = "../secret.lua" } }'
    (folder / "x-1.0-1.rockspec").write_text(spec)
    with pytest.raises(UsageError, match="outside"):
        rock_files.install(folder, tmp_path / "tree")


BAD = {
    "while true do end": "does not come to an end", "package = ": "unexpected symbol", "os.exit()": "os",
    "package = {}": "must be text", 'package = "a" version = "one"': "not a name and a version",
    "require 'x'": "require",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_a_bad_rockspec_is_refused_with_its_name(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        rockspec.parse(text, "/x/y.rockspec")
    assert "y.rockspec" in raised.value.message and BAD[text] in raised.value.message


def test_parts_in_c_are_left_to_luarocks() -> None:
    spec = rockspec.parse('package = "a" version = "1-1" build = { modules = { a = { sources = { "a.c" } } } }', "x")
    assert spec.other == "it has parts in C"
    assert (
        rockspec.parse('package = "a" version = "1-1" build = { type = "make" }', "x").other == "its build type is make"
    )


def test_a_new_rock_works_is_tested_on_plain_lua_and_installs(tmp_path: Path) -> None:
    folder = rock_template.make("my-rock", tmp_path)
    lua = shutil.which("lua5.4") or shutil.which("lua")
    assert lua
    for where, script in ((tmp_path, str(folder / "spec/run.lua")), (folder, "./spec/run.lua")):
        done = subprocess.run([lua, script], cwd=where, capture_output=True, text=True)
        assert (done.stdout, done.returncode) == ("ok\n", 0), done.stderr
    rocks = Rocks(tmp_path / "tree", ENV)
    assert rocks.install(str(folder)) == "my-rock 0.1-1"
    with pytest.raises(UsageError, match="is there already"):
        rock_template.make("my-rock", tmp_path)
    with pytest.raises(UsageError, match="no name for a rock"):
        rock_template.make("My Rock", tmp_path)


def test_an_installed_rock_is_loaded_into_a_session(tmp_path: Path) -> None:
    import asyncio

    from panto.schema import ops
    from tests.lua.home import home
    from tests.scheduler.house import scripted

    Rocks(tmp_path / "tree", LESS).install(str(rock_template.make("my-rock", tmp_path)))

    async def work() -> None:
        settings = {"rocks": (("my-rock", "0.1"), ("not-there", "")), "trees": (tmp_path / "tree",)}
        async with home(tmp_path, scripted({"text": "a"}), settings=settings) as at:
            rows = {row.name: row for row in at.extensions.rows()}
            assert rows["my-rock"].state == "active", rows
            assert rows["not-there"].state == "broken" and "module 'not-there' not found" in rows["not-there"].problem
            await at.house.client.submit(ops.RunCommand("/my-rock Ann"))
            assert "Hello, Ann!" in at.notices()

    asyncio.run(work())
