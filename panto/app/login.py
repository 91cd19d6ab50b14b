"""`panto login PROVIDER`: a key from the person, one live check, and into the credentials file."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from panto.app import credentials
from panto.app.argv import Arguments
from panto.app.ground import Ground
from panto.schema.errors import PantoError, ProviderError, UsageError

if TYPE_CHECKING:
    from panto.app.catalog import Models
    from panto.providers.model import Model

CHECK_S = 20.0
"""How long a live check may take."""


@dataclass(frozen=True)
class Checked:
    """What a live check found: `works`, or `refused` (the key is wrong), or neither (nobody can say); and why."""

    works: bool
    refused: bool = False
    why: str = ""
    hint: str = ""


def run(arguments: Arguments, ground: Ground) -> int:
    """Asks for a key, checks it, stores it; returns the exit code. Raises PantoError."""
    from panto.app.catalog import Models

    models = Models(ground)
    if len(arguments.words) != 1:
        raise UsageError("panto login needs the name of a provider", f"there are: {', '.join(providers(models))}")
    name = arguments.words[0]
    models.catalog.provider(name)  # raises for an unknown one
    key = well_formed(_read_key(name))
    found = asyncio.run(check_key(ground, name, key))
    if found.refused:
        print(f"The key is not accepted, and not stored: {found.why}", file=sys.stderr)
        return 4
    credentials.store(ground.paths.credentials, name, key)
    print(f"The key {'works and ' if found.works else ''}is stored in {ground.paths.credentials}.")
    if not found.works:
        print(f"It could not be checked: {found.why}\npanto logout {name} takes it out again.")
    variable = str(models.catalog.tables[name].get("api_key_env") or "")
    if variable and ground.paths.environ.get(variable):
        print(f"Note: ${variable} is set, and goes before what is stored.")
    return 0


def forget(arguments: Arguments, ground: Ground) -> int:
    """`panto logout PROVIDER`: takes a stored key out; returns the exit code. Raises PantoError."""
    if len(arguments.words) != 1:
        stored = ", ".join(ground.stored)
        raise UsageError("panto logout needs the name of a provider", f"keys are stored for: {stored or 'none'}")
    name = arguments.words[0]
    if not credentials.forget(ground.paths.credentials, name):
        raise UsageError(f"no key is stored for {name}", f"keys are stored for: {', '.join(ground.stored) or 'none'}")
    print(f"The key of {name} is no longer in {ground.paths.credentials}.")
    return 0


def providers(models: Models) -> tuple[str, ...]:
    """The providers that a key can be stored for."""
    return tuple(
        name for name, table in models.tables.items() if name != "tour" and table.get("protocol") != "scripted"
    )


def well_formed(key: str) -> str:
    """The key without blanks around it. Raises UsageError, which does not quote it, for what cannot be one."""
    key = key.strip()
    if not key:
        raise UsageError("no key was given; nothing is changed")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError("that is no key: it has characters no key has; nothing is changed")
    return key


def _read_key(name: str) -> str:
    if sys.stdin is not None and sys.stdin.isatty():
        import getpass

        return getpass.getpass(f"Key for {name} (not shown): ").strip()
    return sys.stdin.readline().strip() if sys.stdin is not None else ""


async def check_key(ground: Ground, name: str, key: str) -> Checked:
    """Whether a provider takes this key, by asking its first model for a word."""
    from panto.app.catalog import Models
    from panto.app.settings import ProviderSettings

    models = Models(ground)
    # The key that was just given, whatever the environment holds.
    models.keys[name] = credentials.Key(name, ProviderSettings(), {}, key)
    try:
        alias = next(iter(models.catalog.specs(name)), "")
        if not alias:
            return Checked(False, why="no model of it is known to check with")
        return await check(models, models.catalog.resolve(f"{name}:{alias}"))
    except PantoError as e:
        return Checked(False, why=e.message, hint=e.hint)
    finally:
        await models.http.aclose()


async def check(models: Models, model: Model) -> Checked:
    """Asks the model for a few tokens, once; says what came of it."""
    from panto.schema.messages import Message, Request, Text
    from panto.schema.stream import FinishPart

    request = Request(model.spec.id, messages=(Message("user", (Text("Say ok."),)),), max_output=16)
    try:
        async with asyncio.timeout(CHECK_S):
            async for part in model.provider.stream(request):
                if isinstance(part, FinishPart):
                    return Checked(True)
    except TimeoutError:
        return Checked(False, why=f"{model.label} did not answer within {CHECK_S:.0f} s")
    except ProviderError as e:
        return Checked(False, e.kind in ("auth", "permission"), e.message, e.hint)
    return Checked(False, why=f"{model.label} ended without an answer")
