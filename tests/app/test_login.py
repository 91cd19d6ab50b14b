"""A provider's key, given inside a session: checked, stored, usable at once, seen nowhere; and taken out again."""

from __future__ import annotations

import asyncio
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from panto.app.build import House
from panto.schema.errors import UsageError
from panto.schema.signals import Noticed
from tests.app.conftest import Panto
from tests.app.test_lines import Talk
from tests.fake_model import FakeModel, Reply
from tests.scheduler.house import house, scripted

KEY = "canary-93be07"


@pytest.fixture
def unkeyed(panto: Panto, fake_model: FakeModel) -> FakeModel:
    """The model server, configured with a key that is not there, and no model chosen."""
    panto.config.write_text(
        f"""
[providers.fake]
protocol = "openai_chat"
base_url = "{fake_model.url}"
api_key_env = "FAKE_KEY"
[providers.fake.models.small]
id = "small-1"
"""
    )
    return fake_model


@contextmanager
def talking(panto: Panto, *words: str) -> Iterator[Talk]:
    process = subprocess.Popen(
        panto.argv("--lines", *words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=panto.cwd, env=panto.environ(),
    )  # fmt: skip
    mercy = threading.Timer(90, process.kill)  # what was heard until then is told, before the test's own limit
    mercy.start()
    try:
        yield Talk(process)
    finally:
        mercy.cancel()
        process.kill()
        process.communicate()


def holders(folder: Path, text: str) -> list[Path]:
    """The files below a folder that hold a text."""
    return [file for file in folder.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


def test_a_key_given_in_a_session_is_used_at_once_and_kept_where_only_its_owner_reads(
    panto: Panto, unkeyed: FakeModel
) -> None:
    with talking(panto) as talk:
        talk.until("in " + str(panto.cwd))
        talk.say("/login fake")
        talk.until("Paste the key for fake")
        unkeyed.replies += [Reply("ok"), Reply("Now it goes.")]
        talk.say(KEY)
        talk.until("the key works and is stored in")
        talk.say("/model fake:small")
        talk.say("hello")
        talk.until("Now it goes.")
        out = talk.heard + talk.end()
    assert KEY not in out
    assert [request.headers["authorization"] for request in unkeyed.requests] == [f"Bearer {KEY}"] * 2
    file = panto.home / "config/credentials.toml"
    assert holders(panto.home, KEY) == [file]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_refused_key_an_unknown_provider_and_an_empty_line_change_nothing(panto: Panto, unkeyed: FakeModel) -> None:
    with talking(panto) as talk:
        talk.until("in " + str(panto.cwd))
        unkeyed.replies.append(Reply(status=401))
        for name, key, said in (
            ("fake", KEY, "not accepted, and not stored"),
            ("fkae", KEY, "there is no provider 'fkae'"),
            ("fake", "", "nothing is changed"),
            ("fake", "two words", "that is no key"),
        ):
            talk.say(f"/login {name}")
            talk.until("Paste the key")
            talk.say(key)
            talk.until(said)
        out = talk.heard + talk.end()
    assert KEY not in out
    assert holders(panto.home, KEY) == []


def test_logout_takes_the_one_key_out(panto: Panto, unkeyed: FakeModel) -> None:
    unkeyed.replies += [Reply("ok")]
    assert panto("login", "fake", stdin=KEY + "\n").returncode == 0
    assert panto("login", "anthropic", stdin="other-key\n", HTTPS_PROXY="http://127.0.0.1:9").returncode == 0
    done = panto("logout", "fake")
    assert (done.returncode, done.stderr) == (0, "")
    assert holders(panto.home, KEY) == []
    assert len(holders(panto.home, "other-key")) == 1
    done = panto("logout", "fake")
    assert done.returncode == 2
    assert "no key is stored for fake" in done.stderr and "anthropic" in done.stderr


def test_what_fails_beside_everything_else_is_told(tmp_path: Path) -> None:
    async def late() -> None:
        raise UsageError("it came to nothing", "try again")

    async def main() -> None:
        async with house(tmp_path, scripted()) as at:
            client = House(at.scheduler, at.agent)
            updates = client.subscribe()
            client._beside(late())
            said = await anext(updates)
            assert isinstance(said, Noticed) and (said.text, said.hint) == ("it came to nothing", "try again")
            await client.rest()

    asyncio.run(main())
