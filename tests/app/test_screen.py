"""The full screen as the program opens it: first frame, first run, the offline tour, leaving."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from panto.app.build import Start, open_house
from panto.app.ground import read
from panto.app.log import Log
from panto.app.paths import Paths
from tests.app.conftest import Panto
from tests.app.terminal import Terminal
from tests.app.test_headless import fake, records  # noqa: F401 - a fixture
from tests.fake_model import FakeModel, Reply


def opened(panto: Panto, *words: str) -> Terminal:
    return Terminal(panto.argv(*words), panto.cwd, panto.environ())


def test_a_fresh_home_opens_and_offers_what_there_is(panto: Panto) -> None:
    with opened(panto) as terminal:
        text = terminal.until("panto 0.", "No model yet.", "/login", "/tour", "ask before running")
        assert "›" in text
        terminal.send("\x03")
        terminal.send("\x03")
        assert terminal.leave() == 0


@pytest.mark.parametrize("turns", range(0, 40, 3))
def test_who_leaves_while_everything_is_built_leaves_nothing_open(home: Path, tmp_path: Path, turns: int) -> None:
    async def main() -> None:
        environ = {"PANTO_CONFIG_DIR": str(home), "HOME": str(home), "PANTO_LOCAL_SERVERS": "none"}
        ground = read(Paths(tmp_path, environ), {})
        async with AsyncExitStack() as stack:
            building = asyncio.ensure_future(open_house(ground, Start(extensions=False), stack, Log(lambda: None)))
            for _ in range(turns):
                await asyncio.sleep(0)
            building.cancel()
            await asyncio.wait((building,))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_a_prompt_without_a_model_is_kept_and_answered_with_the_way_out(panto: Panto) -> None:
    with opened(panto) as terminal:
        terminal.until("No model yet.")
        terminal.enter("hello")
        terminal.until("no model is chosen")


def test_the_tour_runs_the_real_tools_and_stops_at_escape(panto: Panto) -> None:
    (panto.cwd / "README.md").write_text("# Demo\n")
    with opened(panto) as terminal:
        terminal.until("/tour")
        terminal.enter("/tour")
        terminal.answer("write this file?", "y")
        terminal.answer("make this edit?", "y")
        terminal.answer("run this command?", "y")
        terminal.until("hello, ", "One thing is left")


def test_a_prompt_on_the_command_line_is_sent_and_the_session_is_left_resumable(
    panto: Panto, fake: FakeModel  # noqa: F811
) -> None:
    fake.replies.append(Reply("A first answer."))
    with opened(panto, "say something") as terminal:
        terminal.until("say something", "A first answer.")
        terminal.send("\x03")
        terminal.send("\x03")
        assert terminal.leave() == 0
        assert "panto --resume " in terminal.text
    with opened(panto, "--continue") as terminal:
        terminal.until("say something", "A first answer.")


def test_warnings_of_the_settings_are_on_the_first_screen(panto: Panto, fake: FakeModel) -> None:  # noqa: F811
    panto.config.write_text("modle = 3\n" + panto.config.read_text())
    (panto.cwd / ".panto").mkdir()
    (panto.cwd / ".panto/config.toml").write_text("mode = 'yolo'\n")
    with opened(panto) as terminal:
        text = terminal.until("'modle'", "did you mean model?", "is not used", "ask before running")
        assert "runs everything" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--resume", "zzzz"), "no session begins with 'zzzz'"),
        (("--continue",), "no session in this directory"),
        (("--model", "fake:smal"), "fake:small"),
    ],
)
def test_what_is_not_there_gives_the_terminal_back_with_2(
    panto: Panto, fake: FakeModel, words: tuple[str, ...], said: str  # noqa: F811
) -> None:
    with opened(panto, *words) as terminal:
        assert terminal.leave() == 2
        assert said in terminal.text
        assert terminal.raw.count(b"\x1b[?1049h") == terminal.raw.count(b"\x1b[?1049l")


def test_a_session_that_is_open_elsewhere_says_who_holds_it_and_opens_an_empty_one_beside_it(
    panto: Panto, fake: FakeModel  # noqa: F811
) -> None:
    with opened(panto, "hello") as first:
        first.until("HELLO-DONE")
        with opened(panto, "--continue") as second:
            second.until(f"process {first.pid}", "fork", "take over")


def test_term_gives_the_terminal_back(panto: Panto, fake: FakeModel) -> None:  # noqa: F811
    with opened(panto) as terminal:
        terminal.until("Ask for something")
        os.kill(terminal.pid, signal.SIGTERM)
        terminal.leave()
        assert terminal.raw.count(b"\x1b[?1049h") == terminal.raw.count(b"\x1b[?1049l")


def test_a_dumb_terminal_gets_lines(panto: Panto, fake: FakeModel) -> None:  # noqa: F811
    fake.replies.append(Reply("The answer\nin two lines."))
    panto.env["TERM"] = "dumb"
    with opened(panto) as terminal:
        terminal.until("Type a request.")
        terminal.send("hello\n")
        terminal.until("in two lines.")
        assert b"\x1b" not in terminal.raw
        terminal.send("\x04")
        assert terminal.leave() == 0
