"""Running the agent: without a screen, line by line, or full screen. Decides which, and hands over."""

from __future__ import annotations

import os
import sys

from panto.app import ground as ground_
from panto.app.argv import Arguments
from panto.app.ground import Ground
from panto.app.paths import Paths
from panto.app.saying import say_error
from panto.schema.errors import UsageError

STDIN_LIMIT = 8 << 20
"""Bytes of piped text that are put into a prompt; no model takes more."""


def run(arguments: Arguments, paths: Paths) -> int:
    """Runs the agent as the command line says; returns the exit code. Raises PantoError."""
    if not arguments.headless and not arguments.has("--lines"):
        _need_terminal()
    if not arguments.headless and not arguments.has("--lines") and os.environ.get("TERM", "") != "dumb":
        return _screen(arguments, paths)
    ground = ground_.read(paths, arguments.options)
    return _headless(arguments, ground) if arguments.headless else _lines(arguments, ground)


def _headless(arguments: Arguments, ground: Ground) -> int:
    from panto.app.drive import drive
    from panto.remote import headless

    conversation = arguments.has("--input")
    prompt = _prompt(arguments, piped=not conversation)
    going_on = arguments.has("--resume") or arguments.has("--continue")
    if not prompt and not going_on and not conversation:
        raise UsageError("no prompt", "panto -p PROMPT, or pipe text into panto -p")
    output = arguments.get("--output", "text")
    notices = ground_.notices(ground)
    if not conversation and (said := ground_.withheld(ground)):  # else the session itself tells it
        notices.append((said, "panto trust shows what it brings, and asks"))
    task = headless.Task(
        prompt or None,
        "json" if output == "json" else "stream-json" if output == "stream-json" else "text",
        conversation,
        tuple(f"{said} ({hint})" if hint else said for said, hint in notices),
    )
    for said, hint in notices:
        say_error(said, hint)
    return drive(ground, arguments, lambda connect: headless.run(connect, task), attended=conversation)


def _lines(arguments: Arguments, ground: Ground) -> int:
    from panto.app.drive import drive
    from panto.remote import lines

    if arguments.has("--resume") and not arguments.get("--resume"):
        raise UsageError("--resume needs a session id without a full screen", "panto session list shows them")
    opening = lines.Opening(
        _prompt(arguments, piped=False),
        ("Type a request. /help lists commands, Ctrl+C stops a turn, Ctrl+D leaves.",),
        tuple(f"{said} ({hint})" if hint else said for said, hint in ground_.notices(ground)),
    )
    return drive(ground, arguments, lambda connect: lines.run(connect, opening))


def _screen(arguments: Arguments, paths: Paths) -> int:
    from panto.app import screen

    return screen.run(arguments, paths)


def _need_terminal() -> None:
    for stream in (sys.stdin, sys.stdout):
        if stream is None or not stream.isatty():
            raise UsageError("there is no terminal to open a screen on", "panto -p PROMPT prints the answer instead")


def _prompt(arguments: Arguments, *, piped: bool) -> str:
    """What was typed, and below it what was piped in. Raises UsageError for what is no text or too long."""
    typed = " ".join(arguments.words).strip()
    if not piped or sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return typed
    try:
        data = sys.stdin.buffer.read(STDIN_LIMIT + 1)
    except OSError:  # a descriptor that cannot be read, e.g. one open for writing only
        return typed
    if len(data) > STDIN_LIMIT:
        hint = "save it to a file and name the file in the prompt"
        raise UsageError(f"more than {STDIN_LIMIT >> 20} MiB came on stdin; no model takes that much", hint)
    if b"\0" in data:
        raise UsageError("what came on stdin is binary", "save it to a file and name the file in the prompt")
    text = data.decode("utf-8", "replace").strip("\n")
    return "\n\n".join(part for part in (typed, text) if part.strip())
