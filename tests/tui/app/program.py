"""The screen as a program, with a client that has no engine: what the terminal tests start.

`python -m tests.tui.app.program SCENE` draws the first frame, then runs the scene against a stub client.
"""

from __future__ import annotations

from panto.tui import early  # first: it draws before anything else is loaded

BEGUN = early.start(
    early.EarlyGreeting(
        ("  panto 0.1   ~/shop  main", "  Ask for something, or:  /help  keys and commands"),
        "ask before running", "sonnet-5.5 medium   ~/shop main", "0 of 200k",
    )
) if __name__ == "__main__" else None  # fmt: skip

import asyncio  # noqa: E402
import hashlib  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from random import Random  # noqa: E402

from panto.schema.bodies import Question  # noqa: E402
from panto.schema.errors import PantoError  # noqa: E402
from panto.schema.ops import Decide, Interrupt, Prompt, Withdraw  # noqa: E402
from panto.schema.signals import InputReturned  # noqa: E402
from panto.tui.settings import ScreenSettings  # noqa: E402
from tests.tui.stub_client import ME, StubClient  # noqa: E402


class Echo(StubClient):
    """Answers every prompt with its own text; `hold` asks before it does."""

    scene = ""
    dice = Random(0)

    async def submit(self, op: object) -> None:
        await super().submit(op)  # type: ignore[arg-type]
        if isinstance(op, Prompt) and self.scene == "block":
            time.sleep(60)
        elif isinstance(op, Prompt) and self.scene == "stuck":
            hashlib.pbkdf2_hmac("sha256", b"x", b"y", 10**9)  # minutes in which no Python runs in this thread
        elif isinstance(op, Prompt) and self.scene == "crash":
            self.say(None)  # type: ignore[arg-type]
        elif isinstance(op, Prompt):
            self.begin(op.text)
            scene = self.dice.choice(["hold", "run", ""]) if self.scene == "mix" else self.scene
            for _ in range(self.dice.randint(0, 40) if self.scene == "mix" else 0):
                self.stream(f"- **word** `{self.dice.random()}` 漢字 [link](https://example.org)\n")
            if scene == "hold":
                self.hold(Question("approval", "bash", "npm install", "no rule allows npm install",
                                   '{"command": "npm install"}', rule="bash(npm install *)"))  # fmt: skip
            elif scene != "run":
                self.answer(f"you said: {op.text}")
                self.end()
        elif isinstance(op, Interrupt | Decide):
            self.answer(f"{type(op).__name__} {getattr(op, 'decision', '')}")
            self.end()
        elif isinstance(op, Withdraw):
            self.say(InputReturned(ME, "taken back"))


async def main(scene: str) -> int:
    from panto.tui import run

    async def connect() -> StubClient:
        client = Echo()
        client.scene = scene
        if scene == "slow":
            await asyncio.sleep(1.0)
        return client

    greeting = ("panto 0.1   ~/shop  main", "Ask for something")
    still = "PANTO_TEST_STILL" in os.environ
    settings = ScreenSettings(cwd="/tmp/shop", greeting=greeting, reduced_motion=still)
    try:
        end = await run(connect, BEGUN, settings)
    except PantoError as error:
        print(error.message, error.hint, sep="\n")
        return 1
    for line in end.lines:
        print(line)
    return end.code


if __name__ == "__main__":
    logging.getLogger().addHandler(logging.NullHandler())  # the log is the application room's
    sys.exit(asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "")))
