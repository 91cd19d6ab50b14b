"""`panto rock`: install, list, remove, update, search and begin rocks."""

from __future__ import annotations

from pathlib import Path

from panto.app.argv import Arguments
from panto.app.ground import Ground
from panto.schema.errors import UsageError

USAGE = """\
usage: panto rock install NAME|FILE|DIR [--project] [--server URL|DIR]
       panto rock list [--project]
       panto rock remove NAME [--project]
       panto rock update [NAME...] [--project] [--server URL|DIR]
       panto rock search WORDS [--server URL|DIR]
       panto rock new NAME                       a folder with a rock that works, and its test
"""


def run(arguments: Arguments, ground: Ground) -> int:
    """Runs one of the words above; returns the exit code. Raises UsageError."""
    word, *rest = arguments.words or [""]
    if word == "new":
        from panto.lua import rock_template

        folder = rock_template.make(_one(rest, "new"), ground.paths.cwd)
        print(f"made {folder}\nlua5.4 {folder}/spec/run.lua tests it, panto rock install {folder} installs it")
        return 0
    from panto.lua.rocks import Rocks

    server = arguments.get("--server")
    rocks = Rocks(_tree(arguments, ground), ground.paths.environ, (server,) if server else ())
    match word:
        case "install":
            name = _one(rest, "install")
            said = rocks.install(name)
            names = [part.split()[0] for part in said.split(", ")]
            own = name if name in names else names[0] if len(names) == 1 else "NAME"
            print(f"installed {said} in {rocks.tree}")
            print(f'to load it: [extensions] rocks = ["{own}"] in config.toml')
        case "list":
            for rock in rocks.list():
                print(f"{rock.name} {rock.version}")
        case "remove":
            rocks.remove(_one(rest, "remove"))
        case "update":
            print(rocks.update(rest))
        case "search":
            found = rocks.search(_one(rest, "search"))
            if not found:
                print("Nothing was found.")
            for rock in found:
                print(f"{rock.name} {rock.version}")
        case _:
            raise UsageError("panto rock needs one of install, list, remove, update, search, new", USAGE.strip())
    return 0


def _one(words: list[str], what: str) -> str:
    if len(words) != 1:
        raise UsageError(f"panto rock {what} takes one name", USAGE.strip())
    return words[0]


def _tree(arguments: Arguments, ground: Ground) -> Path:
    """The person's tree, or with --project that of the project."""
    if arguments.has("--project"):
        return (ground.paths.project or ground.paths.root / ".panto") / "rocks"
    if ground.paths.data_dir is None:
        raise UsageError("there is no home folder to keep rocks in", "--project keeps them in the project")
    return ground.paths.data_dir / "rocks"
