"""The program: argv in, exit code out. Nothing heavy is imported before it is known to be needed."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import TYPE_CHECKING

from panto.app import argv as command_line
from panto.app.saying import say_error

if TYPE_CHECKING:
    from panto.app.paths import Paths

FAILED, USAGE, INTERRUPTED = 1, 2, 130


def main(argv: list[str] | None = None) -> int:
    """Runs panto with the arguments after the program's name (None: the process's own); returns the exit code."""
    sys.excepthook = _last_words
    if argv is None and sys.getfilesystemencoding() != "utf-8":
        _begin_anew_in_utf8()
    _speak_utf8()
    words = _as_utf8(sys.argv[1:]) if argv is None else argv
    try:
        try:
            return _main(words)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has had enough. The interpreter must not try to flush it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _main(words: list[str]) -> int:
    try:
        arguments = command_line.parse(words)
    except command_line.BadArguments as e:
        return refuse_usage(words, e.message, e.hint)
    if arguments.has("--help"):
        sys.stdout.write(command_line.COMMAND_HELP.get(arguments.command, command_line.HELP))
        return 0
    if arguments.has("--version"):
        from panto import __version__

        print(f"panto {__version__}")
        return 0
    return _dispatch(words, arguments)


def _dispatch(words: list[str], arguments: command_line.Arguments) -> int:
    from panto.schema.errors import Missing, Owned, PantoError, UsageError

    try:
        cwd = _enter(arguments.get("--cwd"))
        if arguments.command == "session":
            from panto.app import session_commands

            return session_commands.run(arguments, cwd)
        if arguments.command:
            from panto.app import commands

            return commands.run(arguments, cwd)
        from panto.app import run

        return run.run(arguments, cwd)
    except (UsageError, Missing, Owned) as e:
        return refuse_usage(words, e.message, e.hint)
    except PantoError as e:
        say_error(e.message, e.hint)
        return FAILED


def refuse_usage(words: list[str], message: str, hint: str = "") -> int:
    """Says what was wrong with the call, in JSON too if that was asked for; returns exit code 2."""
    say_error(message, hint)
    formats = [b for a, b in zip(words, words[1:], strict=False) if a == "--output"]
    formats += [word.partition("=")[2] for word in words if word.startswith("--output=")]
    if formats and formats[-1] in ("json", "stream-json"):
        from panto.remote import jsonl

        sys.stdout.buffer.write(jsonl.failed("usage", message))
    return USAGE


def _enter(folder: str) -> Paths:
    from pathlib import Path

    from panto.app.paths import Paths
    from panto.schema.errors import UsageError

    try:
        if folder:
            os.chdir(os.path.expanduser(folder))
        return Paths(Path(os.getcwd()), os.environ)
    except OSError as e:
        place = folder or "the working directory"
        raise UsageError(f"{place}: {e.strerror}", "--cwd FOLDER names another") from None


def _begin_anew_in_utf8() -> None:
    """Become this program in Python's UTF-8 mode: file names, arguments and pipes are bytes that mean UTF-8.

    A locale such as KOI8-R could not even name the files that a model asks for. Children keep the locale.
    """
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _speak_utf8() -> None:
    """What we print is UTF-8 in every locale; what cannot be printed is replaced, never fatal."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed before we began
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # a test's own stream has none
        if reconfigure:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def _as_utf8(words: list[str]) -> list[str]:
    """Arguments as their writer meant them: UTF-8 if the bytes are that, whatever the locale says."""
    out = []
    for word in words:
        raw = os.fsencode(word)
        try:
            out.append(raw.decode("utf-8"))
        except UnicodeDecodeError:
            out.append(word.encode("utf-8", "replace").decode("utf-8"))
    return out


def _last_words(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """An error nobody expected: its traceback goes into the log, one line to the person."""
    import traceback

    text = "".join(traceback.format_exception(kind, error, trace))
    place = _log(text)
    say_error(f"this is a fault in panto: {kind.__name__}: {error}", f"details: {place}" if place else "")
    if not place and "--debug" in sys.argv:
        sys.stderr.write(text)


def _log(text: str) -> str:
    from pathlib import Path

    from panto.app.paths import Paths

    try:
        file = Paths(Path("/"), os.environ).log_file
        if file is None:
            return ""
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8", errors="backslashreplace") as out:
            out.write(text + "\n")
    except OSError:
        return ""
    return str(file)
