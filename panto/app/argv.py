"""The command line, parsed before anything heavy is imported.

A parser of our own: `panto --version` has 60 ms, and argparse would take 8 of them for less (no nearest name, and an
optional value before a positional confuses it).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["flag", "value", "maybe"]
"""flag: no value; value: needs one; maybe: takes one if the next word is no option."""

RUN: dict[str, Kind] = {
    "--print": "flag", "--output": "value", "--input": "value", "--resume": "maybe", "--continue": "flag",
    "--fork": "value", "--model": "value", "--reasoning": "value", "--mode": "value", "--no-extensions": "flag",
    "--cwd": "value", "--debug": "flag", "--lines": "flag", "--version": "flag", "--help": "flag",
}  # fmt: skip
SHORT = {"-p": "--print", "-c": "--continue", "-r": "--resume", "-m": "--model", "-h": "--help", "-V": "--version"}
ANYWHERE: dict[str, Kind] = {"--help": "flag", "--debug": "flag", "--cwd": "value"}
COMMANDS: dict[str, dict[str, Kind]] = {
    "session": {"--json": "flag", "--all": "flag", "--at": "value", "--format": "value"},
    "models": {"--json": "flag"},
    "login": {},
    "logout": {},
    "config": {"--json": "flag"},
    "doctor": {},
    "trust": {"--yes": "flag", "--remove": "flag"},
    "rock": {"--project": "flag", "--server": "value"},
    "lua": {},
}
NEAR = 0.8
"""How alike a first word and a command must be to be taken for a slip."""
CHOICES = {
    "--output": ("text", "json", "stream-json"),
    "--input": ("stream-json",),
    "--mode": ("plan", "ask", "auto", "yolo"),
    "--format": ("jsonl", "markdown", "html"),
}

HELP = """\
usage: panto [options] [prompt]            a person in a terminal
       panto -p [options] [prompt]         print the answer; piped text is appended to the prompt
       panto COMMAND ...

options
  -p, --print                 no screen: run the prompt, print the answer, exit
      --output FORMAT         with -p or --input: text (default), json (last record), stream-json (all records)
      --input stream-json     hold a conversation: records on stdin
  -r, --resume [ID]           go on with a session (any unique prefix; without ID a list)
  -c, --continue              go on with this directory's last session
      --fork ID               a new session that shares the history of another
  -m, --model PROVIDER:ALIAS  the model to use
      --reasoning LEVEL       how much it thinks
      --mode MODE             plan | ask | auto | yolo: what runs without a question
      --no-extensions         load no extensions
      --cwd FOLDER            work there
      --lines                 line by line instead of a full screen (screen readers, plain terminals)
      --debug                 write more into the log
  -V, --version               print the version
  -h, --help                  print this

commands
  session list|show|search|rename|delete|fork|export|import|verify|repair
  models [WORDS]              the models, prices, and what is usable
  login PROVIDER              store a provider's key, checked live; logout PROVIDER takes it out again
  config show                 the settings in force and where each comes from
  doctor                      what is configured, what works, what is missing, and how to mend it
  trust                       what this project wants to run; agree to it or take it back
  rock install|list|remove|update|search|new
  lua FILE [WORDS]            run a Lua script on panto

exit codes: 0 done, 1 failed, 2 usage, 3 refused (permission or trust), 4 provider, 130 interrupted
"""

COMMAND_HELP = {
    "session": """\
usage: panto session list [--json] [--all]       this directory's sessions, or all
       panto session show ID [--json]
       panto session search WORDS...
       panto session rename ID TITLE...
       panto session delete ID...
       panto session fork ID [--at TURN]
       panto session export ID [FILE] [--format jsonl|markdown|html]
       panto session import FILE
       panto session verify [ID]                 exit 1 and the first bad commit if not intact
       panto session repair ID
An id may be given by any unique prefix.
""",
    "models": "usage: panto models [WORDS...] [--json]\n",
    "login": "usage: panto login PROVIDER           the key is read from the terminal without echo, or from stdin\n",
    "logout": "usage: panto logout PROVIDER          takes the stored key out of credentials.toml\n",
    "config": "usage: panto config show [--json]\n",
    "doctor": "usage: panto doctor\n",
    "trust": "usage: panto trust [--yes | --remove]  shows exactly what this folder would run, then asks\n",
    "rock": """\
usage: panto rock install NAME|FILE|DIR [--project] [--server URL|DIR]
       panto rock list [--project]
       panto rock remove NAME [--project]
       panto rock update [NAME...] [--project] [--server URL|DIR]
       panto rock search WORDS [--server URL|DIR]
       panto rock new NAME                       a folder with a rock that works, and its test
""",
    "lua": "usage: panto lua FILE [WORDS...]         words after FILE are the script's, also those that begin with -\n",
}


class BadArguments(Exception):
    """The command line is wrong; `hint` is the way out."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass
class Arguments:
    """What was typed. `command` "" is the agent itself; `words` are what is left; `options` by their long names."""

    command: str = ""
    words: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        return name in self.options

    def get(self, name: str, default: str = "") -> str:
        """An option's value ("" also for an option given without one)."""
        return self.options.get(name, default)

    @property
    def headless(self) -> bool:
        return self.has("--print") or self.has("--input")


def parse(argv: list[str]) -> Arguments:
    """The arguments after the program's name. Raises BadArguments."""
    if argv and argv[0] in COMMANDS:
        out = Arguments(argv[0])
        if out.command == "lua" and len(argv) > 1 and not argv[1].startswith("-"):
            out.words = argv[1:]  # what follows the file is the script's
            return out
        _read(argv[1:], COMMANDS[argv[0]] | ANYWHERE, out)
    else:
        out = Arguments()
        _read(argv, RUN, out)
        _check(out)
        if argv and not out.headless:
            _slip(argv)
    return out


def _slip(argv: list[str]) -> None:
    """A mistyped command is no prompt: that would cost money."""
    word = argv[0]
    if word.isascii() and word.replace("-", "").isalpha() and (meant := nearest(word, COMMANDS, NEAR)):
        raise BadArguments(f"there is no command {word}", f'did you mean {meant}? For a prompt: panto "{word} …"')


def _read(argv: list[str], known: dict[str, Kind], out: Arguments) -> None:
    rest = iter(range(len(argv)))
    for i in rest:
        word = argv[i]
        if word == "--":
            out.words += argv[i + 1 :]
            return
        # "- a list item" is a prompt; "-" alone is one as well
        if not word.startswith("-") or word == "-" or " " in word or "\n" in word:
            out.words.append(word)
            continue
        name, equals, value = word.partition("=")
        name = SHORT.get(name, name)
        kind = known.get(name)
        if kind is None:
            raise BadArguments(f"unknown option {name}", _nearest(name, known) or "panto --help lists them all")
        following = argv[i + 1] if i + 1 < len(argv) else None
        if kind == "flag":
            if equals:
                raise BadArguments(f"{name} takes no value")
        elif not equals and following is not None and (not following.startswith("-") or following == "-"):
            value = following
            next(rest)
        elif not equals and kind == "value":
            raise BadArguments(f"{name} needs a value", _choices(name))
        choices = CHOICES.get(name)
        if choices and value not in choices:
            raise BadArguments(f"{name} {value}: no such choice", _choices(name))
        out.options[name] = value


def _check(out: Arguments) -> None:
    if out.has("--output") and not out.headless:
        raise BadArguments("--output needs -p or --input", "panto -p PROMPT --output " + out.get("--output"))
    if sum(out.has(name) for name in ("--resume", "--continue", "--fork")) > 1:
        raise BadArguments("--resume, --continue and --fork exclude each other")
    if out.headless and out.has("--resume") and not out.get("--resume"):
        raise BadArguments("--resume needs a session id without a screen", "panto session list shows them")


def _choices(name: str) -> str:
    return "one of: " + ", ".join(CHOICES[name]) if name in CHOICES else ""


def _nearest(name: str, known: dict[str, Kind]) -> str:
    found = nearest(name, known)
    return f"did you mean {found}?" if found else ""


def nearest(name: str, known: Iterable[str], alike: float = 0.5) -> str:
    """The name that was probably meant, or "". Exchanged letters count as nearer than a missing one."""
    import difflib

    names = list(known)
    letters = sorted(name)
    exchanged = [other for other in names if sorted(other) == letters]
    return next(iter(exchanged or difflib.get_close_matches(name, names, 1, alike)), "")
