"""The commands that are not the agent: config, trust, models, login, doctor."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from panto.app import ground as ground_
from panto.app import trust as trust_
from panto.app.argv import COMMAND_HELP, Arguments
from panto.app.ground import Ground
from panto.app.paths import Paths
from panto.app.saying import say_error
from panto.schema.errors import UsageError

if TYPE_CHECKING:
    from panto.schema.queries import ModelRow

REFUSED = 3


def run(arguments: Arguments, paths: Paths) -> int:
    """Runs one command; returns its exit code. Raises PantoError."""
    ground = ground_.read(paths, arguments.options)
    match arguments.command:
        case "config":
            return _config(arguments, ground)
        case "trust":
            return _trust(arguments, ground)
        case "models":
            return _models(arguments, ground)
        case "login":
            from panto.app import login

            return login.run(arguments, ground)
        case "logout":
            from panto.app import login

            return login.forget(arguments, ground)
        case "rock":
            from panto.app import rock

            return rock.run(arguments, ground)
        case "lua":
            from panto.app import script

            return script.run(arguments, ground)
        case "doctor":
            from panto.app import doctor

            no_more(arguments, 0)
            return doctor.run(ground)
        case _:
            raise UsageError(f"unknown command {arguments.command}", "panto --help")


def no_more(arguments: Arguments, count: int) -> None:
    """Raises UsageError when more words were typed than the command takes."""
    if len(arguments.words) > count:
        raise UsageError(f"unexpected {arguments.words[count]!r}", COMMAND_HELP[arguments.command].strip())


def _config(arguments: Arguments, ground: Ground) -> int:
    if arguments.words != ["show"]:
        raise UsageError("panto config knows one word: show", "panto config show")
    for problem in ground.problems:
        say_error(problem.message, problem.hint)
    rows = ground.loaded.rows()
    if arguments.has("--json"):
        import msgspec

        sys.stdout.buffer.write(msgspec.json.encode(rows) + b"\n")
        return 0
    file = ground.paths.user_config
    print(f"# {file}{'' if file.exists() else ' (not written yet)'}" if file else "# no home folder: no config.toml")
    width = max(len(f"{row.key} = {row.value}") for row in rows)
    for row in rows:
        print(f"{f'{row.key} = {row.value}':<{min(width, 60)}}  # {row.source}")
    return 0


def _trust(arguments: Arguments, ground: Ground) -> int:
    from panto.remote.words import trust_lines

    no_more(arguments, 0)
    found, file = ground.trust, ground.paths.trust
    shown = found.shown()
    if found.items and arguments.has("--remove"):
        trust_.withdraw(found, file)
        print(f"{found.folder} is no longer trusted.")
        return 0
    print("\n".join(trust_lines(shown)))
    if not shown.folder:
        return 0
    if shown.why:
        return REFUSED
    if shown.agreed:
        print("panto trust --remove takes it back.")
        return 0
    if not arguments.has("--yes") and not _agreed():
        print("Not trusted. panto works here without it.")
        return REFUSED
    trust_.agree(found, file)
    print("Trusted, until one byte of it changes.")
    return 0


def _models(arguments: Arguments, ground: Ground) -> int:
    for problem in ground.problems:
        say_error(problem.message, problem.hint)
    rows, chosen = asyncio.run(_rows(ground, " ".join(arguments.words)))
    if arguments.has("--json"):
        import msgspec

        sys.stdout.buffer.write(msgspec.json.encode(rows) + b"\n")
        return 0
    if not rows:
        raise UsageError(f"no model matches {' '.join(arguments.words)!r}", "panto models lists them all")
    width = max(len(row.label) for row in rows)
    for row in rows:
        mark = "*" if row.label == chosen else " "
        context = f"{row.context // 1000}k" if row.context else ""
        price = "" if row.price_input is None else f"{row.price_input:g} / {row.price_output or 0:g}"
        print(f"{mark} {row.label:<{width}}  {context:>6}  {price:>12}  {row.usable}".rstrip())
    print("* in force. Context in tokens, prices in USD per million tokens in / out.")
    return 0


async def _rows(ground: Ground, words: str) -> tuple[tuple[ModelRow, ...], str]:
    """The models there are, those of extensions too, and the one in force."""
    from panto.app import quiet

    async with quiet.opened(ground) as house:
        await house.models.look_around()
        return house.models.catalog.rows(words, limit=100_000), house.models.default()


def _agreed() -> bool:
    if not sys.stdin or not sys.stdin.isatty():
        raise UsageError("nobody is here to answer", "panto trust --yes agrees to the list above")
    return input("Use it from now on? [y/N] ").strip().lower() in ("y", "yes")
