"""Slash commands that are written as Markdown: `prompts/NAME.md` in the config folder, and in a trusted project's.

Between two lines `---` at the top may stand `description: …` and `arguments: <needed> [optional]`. In the text `$1` to
`$9` are the words behind the command, `$ARGUMENTS` is all of them; where it names neither, they follow the text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from panto.app.ground import Ground
from panto.scheduler.commands import Command, CommandContext
from panto.schema import ops
from panto.schema.errors import UsageError
from panto.tools import regular

if TYPE_CHECKING:
    from panto.scheduler.client import LocalClient

OWNER = "prompts"
MOST_FILES, MOST_BYTES = 200, 256 << 10
_NAME = re.compile(r"[a-z0-9][\w-]{0,40}", re.IGNORECASE)
_PLACE = re.compile(r"\$(?:([1-9])(?!\d)|(ARGUMENTS)\b)")


class Written(NamedTuple):
    """One command: `text` is what is sent once its places are filled."""

    name: str
    text: str
    description: str
    usage: str


def written(ground: Ground) -> dict[str, Written]:
    """The commands there are, by name; the project's win over the person's own, where it is trusted."""
    found: dict[str, Written] = {}
    places = [ground.paths.config_dir] if ground.paths.config_dir else []
    if ground.trust.agreed and ground.paths.project is not None:
        places.append(ground.paths.project)
    for place in places:
        found |= {one.name: one for one in _in_folder(place / "prompts")}
    return found


def register(client: LocalClient, ground: Ground) -> None:
    """Make them commands of this client, in place of those of an earlier time; what could not be one is told."""
    client.commands.withdraw(OWNER)
    for one in written(ground).values():
        try:
            client.commands.register(_command(client, one))
        except UsageError as error:
            client.show(f"prompts/{one.name}.md: {error.message}", level="attention", hint="give the file another name")
    client.contribute(client.contributions)  # readers look at the commands again


def filled(one: Written, arguments: str) -> str:
    """The text with its places filled. Raises UsageError where a word is missing."""
    try:
        words = shlex.split(arguments)
    except ValueError:  # an apostrophe is no mistake here
        words = arguments.split()
    parts, used = re.findall(r"\[[^]]*\]|\S+", one.usage), False

    def value(place: re.Match[str]) -> str:
        nonlocal used
        used = True
        number = int(place[1] or 0)
        if number <= len(words):
            return words[number - 1] if number else arguments
        if number <= len(parts) and parts[number - 1].startswith("["):
            return ""  # it may be left out
        raise UsageError(f"/{one.name} needs more words", f"/{one.name} {one.usage}")

    text = _PLACE.sub(value, one.text)
    return text if used or not arguments else f"{text}\n\n{arguments}"


def _command(client: LocalClient, one: Written) -> Command:
    async def run(arguments: str, at: CommandContext) -> None:
        await client.submit(ops.Prompt(filled(one, arguments), agent=at.agent))

    return Command(one.name, one.description, run, one.usage, owner=OWNER)


def _in_folder(folder: Path) -> Iterator[Written]:
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix == ".md" and _NAME.fullmatch(file.stem))
    except OSError:
        return
    for file in files[:MOST_FILES]:
        try:
            text = regular.read(file, MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        yield _parsed(file.stem, text)


def _parsed(name: str, text: str) -> Written:
    head: dict[str, str] = {}
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].strip() == "---" and "---" in (rest := [line.strip() for line in lines[1:]]):
        end = rest.index("---") + 1
        pairs = (line.partition(":") for line in lines[1:end])
        head = {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}
        lines = lines[end + 1 :]
    body = "\n".join(lines).strip()
    first = next((line.lstrip("# ").strip() for line in lines if line.strip()), "")
    return Written(name, body, head.get("description") or first[:80], head.get("arguments") or _usage(body))


def _usage(body: str) -> str:
    places = [int(number or 0) for number, _ in _PLACE.findall(body)]
    needed = " ".join(f"<{n}>" for n in range(1, max(places, default=0) + 1))
    return needed or ("[words]" if 0 in places else "")
