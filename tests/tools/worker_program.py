"""A tool worker for tests: run as a program, it speaks frames.py and does what each test needs done."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Mapping, Sequence

from panto.schema.bodies import ToolOutcome
from panto.schema.errors import ToolFailure
from panto.schema.messages import Text
from panto.tools.frames import Source, Surroundings
from panto.tools.serve import Report, serve
from panto.tools.tool import ToolReply


class Program:
    """`refuse` among the extensions makes it refuse."""

    async def activate(self, extensions: Sequence[Source]) -> Sequence[str]:
        if any(source.name == "refuse" for source in extensions):
            raise ToolFailure("refuse has changed")
        return ("say", "slow", "die", "fail", "noise", "garbage", "hog", "where", "children")

    async def call(
        self, tool: str, arguments: Mapping[str, object], around: Surroundings, progress: Report
    ) -> ToolReply:
        text = str(arguments.get("text", ""))
        match tool:
            case "slow":
                for n in range(int(str(arguments.get("steps", 3)))):
                    progress(f"step {n}\n", None)
                    await asyncio.sleep(float(str(arguments.get("seconds", 0.05))))
            case "busy":
                while True:
                    pass
            case "die":
                os._exit(3)
            case "fail":
                raise ToolFailure("it said no", "conflict", effects="unknown", outcome=said("partly"))
            case "noise":
                print("printed to standard output")
                os.write(1, b"and past Python\n")
                subprocess.run(["echo", "and by a child"])
            case "garbage":
                for fd in range(3, 64):  # the protocol's own descriptor is one of these
                    if _is_socket(fd):
                        os.write(fd, b"\xff\xff\xff\xff garbage")
                time.sleep(30)
            case "hog":
                text = str(len(bytearray(int(str(arguments["bytes"])))))
            case "where":
                text = f"{os.getcwd()} {os.environ.get('MARK')} {os.environ.get('HOME')} {around.call} {around.effect}"
                text += f" {sorted(int(fd) for fd in os.listdir('/proc/self/fd'))[:3]}"
            case "children":
                subprocess.Popen(["sleep", "300"], start_new_session=True)
                while True:
                    time.sleep(1)
        return ToolReply(said(f"{text}|{around.call}"))


def _is_socket(fd: int) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
    except OSError:
        return False


def said(text: str) -> ToolOutcome:
    return ToolOutcome(parts=(Text(text),))


if __name__ == "__main__":
    asyncio.run(serve(Program()))
