"""`panto lua FILE [WORDS]`: a Lua script with agents. The script has the main thread, the agents one of their own."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from panto.app import ground as ground_
from panto.app.argv import Arguments
from panto.app.ground import Ground
from panto.app.paths import Paths
from panto.app.resident import Resident
from panto.app.saying import say_error
from panto.schema.errors import PantoError, UsageError

FAILED, USAGE, INTERRUPTED = 1, 2, 130


def main(words: list[str]) -> int:
    """`panto lua` with these words, from a bare process; returns the exit code."""
    ground = ground_.read(Paths(Path.cwd(), dict(os.environ)), {})
    try:
        return run(Arguments("lua", words), ground)
    except UsageError as e:
        say_error(e.message, e.hint)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED


def run(arguments: Arguments, ground: Ground) -> int:
    """Runs the script; returns its exit code. Raises UsageError."""
    if not arguments.words:
        raise UsageError("panto lua needs a file", "panto lua FILE [WORDS for the script]")
    path, *words = arguments.words
    if not Path(path).is_file():
        raise UsageError(f"there is no file {path}")
    resident = Resident(lambda: ground)
    try:
        return asyncio.run(_run(resident, ground, path, words))
    finally:
        resident.close()


async def _run(resident: Resident, ground: Ground, path: str, words: list[str]) -> int:
    from panto.lua.script import Surroundings, run_script
    from panto.providers.http import Http
    from panto.providers.model import NetworkSettings

    network = ground.config.network
    http = Http(NetworkSettings(network.idle_s, network.connect_s, network.ca_file))
    at = Surroundings(
        on_owner=resident.on_owner, scheduler=lambda: resident.scheduler, http=http, env=_environment(ground),
        catalog=lambda: resident.scheduler.shared.catalog, trees=_trees(ground),
        say=lambda text: print(text, file=sys.stderr),
    )  # fmt: skip
    try:
        code, outcome = await run_script(path, words, at)
    except PantoError as e:
        say_error(e.message, e.hint)
        return FAILED
    finally:
        await http.aclose()
    if code is not None:
        return code & 0xFF
    if outcome.ok:
        return 0
    if outcome.kind == "runaway":
        return INTERRUPTED
    say_error(outcome.message)
    if outcome.traceback:
        print(outcome.traceback, file=sys.stderr)
    return FAILED


def _environment(ground: Ground) -> dict[str, str]:
    """What os.getenv sees: everything but the keys that are configured."""
    named = {str(table.get("api_key_env")) for table in ground.loaded.tree.get("providers", {}).values()}
    return {k: v for k, v in os.environ.items() if k not in named and not k.endswith(("_API_KEY", "_TOKEN", "_SECRET"))}


def _trees(ground: Ground) -> list[Path]:
    project = ground.paths.project if ground.trust.agreed else None
    data = ground.paths.data_dir
    return [folder / "rocks" for folder in (data, project) if folder is not None]
