"""`panto lua FILE`: the same surface outside a session, its own thread, exit codes and Ctrl+C."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lua import home as homes
from tests.scheduler.house import scripted

HERE = Path(__file__).parent
SURFACE = HERE / "surface.lua"
REPLY = {"text": ["one ", "two ", "three"], "each_s": 0.01}
CONFIG = """
model = "fake:m"
[providers.fake]
protocol = "scripted"
replies = [%s]
[providers.fake.models.m]
id = "m"
context = 100000
"""


@pytest.fixture
def panto_lua(home: Path) -> list[str]:
    config = home / "config"
    config.mkdir()
    reply = '{ text = ["one ", "two ", "three"], each_s = 0.01 }'
    (config / "config.toml").write_text(CONFIG % ", ".join([reply] * 12))
    code = "import sys; from panto.app.script import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-X", "faulthandler", "-c", code]


def env() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(HERE.parent.parent)}


def run(argv: list[str], folder: Path, code: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.lua").write_text(code)
    return subprocess.run(
        [*argv, "script.lua", *words], cwd=folder, env=env(), capture_output=True, text=True, timeout=60
    )


def test_the_surface_file_passes_inside_panto(tmp_path: Path) -> None:
    async def work() -> None:
        async with homes.home(tmp_path, scripted(*[REPLY] * 12), {}) as at:
            assert await at.value(SURFACE.read_text()) == "surface ok"

    asyncio.run(work())


def test_the_same_file_passes_under_panto_lua(panto_lua: list[str], tmp_path: Path) -> None:
    done = run(panto_lua, tmp_path, SURFACE.read_text())
    assert (done.returncode, done.stdout) == (0, "surface ok\n"), done.stderr


def test_there_is_no_ext_outside(panto_lua: list[str], tmp_path: Path) -> None:
    done = run(panto_lua, tmp_path, "print(require('panto').ext, #arg, arg[0], ...)", "--flag", "two")
    assert done.stdout == "nil\t2\tscript.lua\t--flag\ttwo\n"


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("return 1", 0, ""),
        ("os.exit(3)", 3, ""),
        ("os.exit(true)", 0, ""),
        ("os.exit(false)", 1, ""),
        ("error('broken')", 1, "script.lua:1: broken"),
        ("local x = = 1", 1, "script.lua:1:"),
        ("require('panto').agent { config = 'no:body' }", 1, "no:body"),
        ("require('panto').spawn(function() require('panto').sleep(60000) end)", 0, ""),
    ],
)
def test_exit_codes_say_how_it_went(panto_lua: list[str], tmp_path: Path, code: str, status: int, said: str) -> None:
    done = run(panto_lua, tmp_path, code)
    assert done.returncode == status, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_modules_beside_the_script_are_found(panto_lua: list[str], tmp_path: Path) -> None:
    (tmp_path / "beside.lua").write_text("return 'beside'")
    assert run(panto_lua, tmp_path, "print((require('beside')))").stdout == "beside\n"


WAKE = """package.cpath = '/usr/lib/x86_64-linux-gnu/lua/5.4/?.so;' .. package.cpath
local panto, uv = require('panto'), require('luv')
local fds = uv.pipe({ nonblock = true }, { nonblock = true })
local agent = panto.agent { config = 'fake:m' }
local job = agent:run_async { prompt = 'go', wake_fd = fds.write }
local text, poll, pipe = '', nil, uv.new_pipe()
pipe:open(fds.read)
pipe:read_start(function(_, data)
  local event = job:next_event()
  while event do
    if event.type == 'text_delta' then text = text .. event.text end
    event = job:next_event()
  end
  if job:result() then pipe:close() end
end)
uv.run()
print(text, job:result().status)
job:close() agent:close()
"""


def test_running_luvs_loop_oneself_on_a_wake_descriptor_makes_progress(panto_lua: list[str], tmp_path: Path) -> None:
    done = run(panto_lua, tmp_path, WAKE)
    assert done.stdout == "one two three\tcompleted\n", done.stderr


def interrupted(argv: list[str], folder: Path, code: str) -> tuple[int, str]:
    (folder / "script.lua").write_text(code)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # started in the background, it is ignored
    try:
        running = subprocess.Popen(
            [*argv, "script.lua"], cwd=folder, env=env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    return running.returncode, err


@pytest.mark.parametrize(
    "code",
    [
        "io.stdout:setvbuf('no') print('ready') while true do end",
        "io.stdout:setvbuf('no') print('ready') require('panto').sleep(60000)",
        "local a = require('panto').agent {} io.stdout:setvbuf('no') print('ready')"
        " while true do pcall(a.tools, a) end",
    ],
)
def test_ctrl_c_ends_a_script_wherever_it_is(panto_lua: list[str], tmp_path: Path, code: str) -> None:
    status, said = interrupted(panto_lua, tmp_path, code)
    assert status == 130
    assert "Traceback" not in said
