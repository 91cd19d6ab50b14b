"""Commands that run other commands: what they would run, where that can be read.

`env`, `xargs`, `find -exec`, `sh -c`, `git -c`, interpreters and their like. Each simple command becomes a `Unit`:
the command itself, whether it runs others, and those others as units too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from panto.tools import shell_sed
from panto.tools.shell_rules import Command, Script, Word, parse

_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Unit:
    """A simple command to judge.

    `runs`: it runs other programs, so its name alone says nothing. `hidden`: what it runs cannot be read, or runs with
    more than its own power; only a rule that spells out its first `spell` words means it. `clear`: it does nothing of
    its own beside running the units that follow it.
    """

    command: Command
    runs: bool = False
    hidden: bool = False
    spell: int = 0
    clear: bool = False


def units(script: Script) -> tuple[Unit, ...]:
    """All commands of a script, those inside wrappers after their wrapper."""
    out: list[Unit] = []
    for command in script.commands:
        out.extend(_units(command, 0))
    return tuple(out)


def _units(command: Command, depth: int) -> Iterator[Unit]:
    if not command.words:
        if command.redirects or command.assigned:
            yield Unit(command)
        return
    name = command.name.rpartition("/")[2]
    if not name or depth > _DEPTH:
        yield Unit(command, runs=True, hidden=True, spell=_NEVER.spell)
        return
    if any(_RUN_BY.match(word.text) for word in command.assigned):
        yield Unit(command, runs=True, hidden=True, spell=_NEVER.spell)
    found = _found(name, command)
    if found is None:
        yield Unit(command)
        return
    clear = bool(found.commands) and not found.hidden and name not in _READERS
    yield Unit(command, runs=True, hidden=found.hidden, spell=found.spell if found.hidden else 0, clear=clear)
    for one in found.commands:
        yield from _units(one, depth + 1)


@dataclass(frozen=True, slots=True)
class _Found:
    """What a wrapper runs. `hidden`: something of it cannot be read, and `spell` as in Unit."""

    commands: tuple[Command, ...] = ()
    hidden: bool = False
    spell: int = 2


_UNKNOWN = _Found(hidden=True)
_RUN_BY = re.compile(
    r"(GIT_(SSH(_COMMAND)?|EXTERNAL_DIFF|PAGER|(SEQUENCE_)?EDITOR|ASKPASS|PROXY_COMMAND|CONFIG\w*|DIR|EXEC_PATH|TEMPLATE_DIR)"
    r"|\w*PAGER|\w*EDITOR|VISUAL|BROWSER|LESSOPEN|LESSCLOSE|SSH_ASKPASS|SUDO_ASKPASS|BASH_ENV|ENV|PS4|SHELL|LD_\w+)="
)
"""Variables whose text a program runs, or loads code by."""
_NEVER = _Found(hidden=True, spell=1_000_000)
"""An expansion may bring in anything: no rule with a wildcard means that."""
_BASHES = frozenset(("bash", "rbash"))
_PLAIN_SHELLS = frozenset(("sh", "dash", "ash", "ksh", "mksh"))
_SHELLS = _BASHES | _PLAIN_SHELLS | frozenset(("zsh", "fish", "csh", "tcsh"))
_BASH_ONLY = re.compile(
    r"&>|\(\(|\[\[|\|&|<<<|\$['\"]|[<>]\(|;&|\{[^}]*,|=\(|\b(function|select|coproc|time)\b"
)
"""What other shells than bash take apart in another way."""
_INTERPRETERS = re.compile(
    r"(python|pypy|ruby|perl|node|nodejs|php|lua|luajit|tclsh|wish|guile|Rscript|osascript|pwsh|powershell|groovy|scala"
    r"|julia|deno|bun|ts-node|tsx|ipython|irb|ghci|runghc|awk|gawk|mawk|nawk|expect|gdb|lldb)[0-9.]*"
)
_OPAQUE = frozenset((
    "eval", "source", ".", "trap", "enable", "alias", "bind", "complete", "mapfile", "readarray", "fc", "hash",
    "ssh", "su", "at", "batch", "crontab", "systemd-run", "nsenter", "chroot", "runuser", "pkexec", "sg", "newgrp",
    "tmux", "screen", "script", "parallel", "entr", "watchexec", "run-parts", "start-stop-daemon", "dbus-launch",
    "compgen", "vim", "vi", "nvim", "emacs", "ed", "ex", "npx", "bunx", "uvx", "pipx", "busybox", "toybox", "rlwrap",
    "capsh", "unshare", "bwrap", "firejail", "proot", "fakeroot",
))  # fmt: skip
"""Programs that run what their arguments or files say, in ways that are not read here."""


def _found(name: str, command: Command) -> _Found | None:
    """What the wrapper `name` runs; None: it is no wrapper."""
    words = command.words[1:]
    if name in _SHELLS:
        return _shell(command)
    if name in _PREFIXES:
        return _after_options(words, _PREFIXES[name], command)
    if name in _READERS:
        return _READERS[name](words, command)
    if name in _OPAQUE or _INTERPRETERS.fullmatch(name):
        return _UNKNOWN
    return None


def _shell(command: Command) -> _Found:
    """`sh -c TEXT`, a here-document to a shell; a script file or a pipe is not read."""
    name = command.name.rpartition("/")[2]
    words = command.words[1:]
    for index, word in enumerate(words):
        if not word.fixed:
            return _UNKNOWN
        if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word.text):
            rest = list(words[index + 1 :])
            while rest and rest[0].fixed and rest[0].text.startswith(("-", "+")):
                rest = rest[1:]
            return _text(rest[0], name) if rest else _UNKNOWN
        if not word.text.startswith(("-", "+")):
            return _UNKNOWN  # a script file
    if command.input is not None and not command.piped:
        return _text(command.input, name)
    return _UNKNOWN


def _text(word: Word, shell: str) -> _Found:
    """The commands of a text that a shell is given."""
    script = parse(word.text)
    alike = shell in _BASHES or (shell in _PLAIN_SHELLS and not _BASH_ONLY.search(word.text))
    return _Found(script.commands, hidden=bool(script.problems) or script.counts or not word.fixed or not alike)


@dataclass(frozen=True, slots=True)
class _Prefix:
    """How a command that runs the rest of its line looks: options with a value, options without, leading operands,
    NAME=VALUE words. Any other option, one cut short too, leaves open what is run.

    `open`: it adds nothing of its own, so that what it runs may be judged in its place. `more`: it appends words.
    """

    valued: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    operands: int = 0
    assigns: bool = False
    open: bool = False
    more: bool = False

    def option(self, word: str) -> bool | None:
        """Whether an option takes the next word as its value; None: it is not known."""
        name, equals, _ = word.partition("=")
        if word.startswith("--"):
            return None if name not in self.valued | self.flags else name in self.valued and not equals
        for index, letter in enumerate(word[1:], 1):
            if f"-{letter}" in self.valued:
                return index == len(word) - 1
            if f"-{letter}?" in self.flags:
                return False  # the rest, if any, is its value
            if f"-{letter}" not in self.flags and not (letter.isdigit() and "-0-9" in self.flags):
                return None
        return False


def _prefix(valued: str = "", flags: str = "", operands: int = 0, **more: bool) -> _Prefix:
    return _Prefix(frozenset(valued.split()), frozenset(flags.split()), operands, **more)


_XARGS = "-I -n -P -L -d -E -s -a --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var"
_XARGS_FLAGS = (
    "-0 -r -t -p -x -o -i? -l? -e? --null --no-run-if-empty --verbose --interactive --exit --open-tty --show-limits"
    " --replace --max-lines --eof"
)
_SUDO = "-u -g -h -p -C -r -t -T -U -D -R --user --group"
_PREFIXES: dict[str, _Prefix] = {
    "env": _prefix("-u --unset -C --chdir", "-i --ignore-environment -0 --null -v --debug", assigns=True, open=True),
    "command": _prefix("", "-p -v -V", open=True), "builtin": _prefix(open=True),
    "exec": _prefix("-a", "-c -l", open=True), "coproc": _prefix(open=True),
    "time": _prefix("-f --format", "-p -v -q --portability --verbose --quiet", open=True),
    "nohup": _prefix(open=True), "setsid": _prefix("", "-c -f -w --ctty --fork --wait", open=True),
    "nice": _prefix("-n --adjustment", "-0-9", open=True),
    "ionice": _prefix("-c -n --class --classdata", "-t --ignore", open=True),
    "stdbuf": _prefix("-i -o -e --input --output --error", open=True),
    "timeout": _prefix(
        "-s --signal -k --kill-after", "-v -p -f --verbose --preserve-status --foreground", operands=1, open=True
    ),
    "xargs": _prefix(_XARGS, _XARGS_FLAGS, open=True, more=True),
    "sudo": _prefix(_SUDO, assigns=True), "doas": _prefix("-u -C"),
    "chrt": _prefix(operands=1), "taskset": _prefix(operands=1), "flock": _prefix("-w -E", operands=1),
    "strace": _prefix("-e -o -p -s -E -u"), "ltrace": _prefix("-e -o -p -s -u"), "valgrind": _prefix(),
    "watch": _prefix("-n --interval"), "unbuffer": _prefix(), "caffeinate": _prefix("-t -w"), "torsocks": _prefix(),
    "xvfb-run": _prefix("-n -s -f -e"), "perf": _prefix(operands=1), "proxychains": _prefix("-f"),
}  # fmt: skip
"""Commands that run the rest of their line."""


def _after_options(words: tuple[Word, ...], prefix: _Prefix, command: Command) -> _Found:
    rest = list(words)
    assigned: list[Word] = []
    operands = prefix.operands
    optional, clear = True, True
    while rest:
        word = rest[0]
        if not word.fixed:
            return _NEVER
        if prefix.assigns and re.match(r"[A-Za-z_][A-Za-z0-9_]*=", word.text):
            assigned.append(rest.pop(0))
        elif optional and word.text == "--":
            optional = False
            rest.pop(0)
        elif optional and word.text.startswith("-") and len(word.text) > 1:
            rest.pop(0)
            follows = prefix.option(word.text)
            clear = clear and follows is not None
            value = rest.pop(0).text if follows and rest else ""
            if prefix.more and word.text.startswith(("-I", "-i", "--replace")):
                mark = value or word.text.partition("=")[2] or word.text[2:] * (word.text[1] != "-") or "{}"
                rest = [Word(w.text, w.fixed and mark not in w.text) for w in rest]
        elif operands:
            operands -= 1
            rest.pop(0)
        else:
            break
    if not rest:
        return _Found() if clear else _UNKNOWN
    if prefix.more:
        rest.append(Word("…", fixed=False))
    inner = Command(tuple(rest), tuple(assigned), input=command.input, piped=command.piped)
    return _Found((inner,), hidden=not (prefix.open and clear))


def _runner(verb: str) -> Callable[[tuple[Word, ...], Command], _Found | None]:
    """A tool that runs the rest of its line after one verb: `uv run`, `bundle exec`."""

    def look(words: tuple[Word, ...], command: Command) -> _Found | None:
        if words and not words[0].fixed:
            return _NEVER
        if not words or words[0].text != verb:
            return None
        return _after_options(words[1:], _prefix("--with --python -p --group --extra --directory", open=True), command)

    return look


def _find(words: tuple[Word, ...], command: Command) -> _Found | None:
    """find: what -exec and its like run. An expansion may bring such an option in."""
    if any(not word.fixed and word.text.startswith(("$", "`", "*", "?", "[", "{")) for word in words):
        return _NEVER
    out: list[Command] = []
    index = 0
    while index < len(words):
        if words[index].text in ("-exec", "-execdir", "-ok", "-okdir"):
            end = index + 1
            while end < len(words) and words[end].text not in (";", "+"):
                end += 1
            if end == index + 1:
                return _UNKNOWN
            out.append(Command(tuple(Word(w.text, w.fixed and "{}" not in w.text) for w in words[index + 1 : end])))
            index = end
        index += 1
    changes = next((index for index, word in enumerate(words) if _FIND_CHANGES.fullmatch(word.text)), None)
    if changes is not None:
        return _Found(tuple(out), hidden=True, spell=changes + 2)
    return _Found(tuple(out)) if out else None


_FIND_CHANGES = re.compile(r"-(delete|fprintf?|fprint0|fls)")
_GIT_RUNS = frozenset(("-c", "--config-env", "--exec-path", "--git-dir"))
_GIT_VALUED = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source"))
_GIT_SUBCOMMANDS = {
    "bisect": ("run",), "submodule": ("foreach",), "rebase": ("-x", "--exec", "-i", "--interactive"),
    "filter-branch": (), "difftool": (), "mergetool": (), "for-each-repo": (), "hook": (), "daemon": (), "shell": (),
    "grep": ("-O", "--open-files-in-pager"), "archive": ("--exec", "--remote", "-o"), "config": (), "send-email": (),
    "clone": ("-u", "--upload-pack", "-c", "--config", "--template"), "fetch": ("--upload-pack",),
    "pull": ("--upload-pack",), "push": ("--receive-pack", "--exec"), "ls-remote": ("--upload-pack", "--exec"),
    "diff": ("--ext-diff",), "log": ("--ext-diff",), "show": ("--ext-diff",), "init": ("--template",),
}  # fmt: skip
"""Subcommands that run programs, and the words that make them (none: always)."""


def subcommand(words: tuple[Word, ...]) -> int:
    """Where git's subcommand stands among its arguments: after the options for all of them."""
    index = 0
    while index < len(words) and words[index].text.startswith("-"):
        index += 2 if words[index].text in _GIT_VALUED else 1
    return index


def _git(words: tuple[Word, ...], command: Command) -> _Found | None:
    """git: it runs other programs through settings on the line and some subcommands."""
    index = subcommand(words)
    for at, word in enumerate(words[:index]):
        if not word.fixed:
            return _NEVER
        if word.text.partition("=")[0] in _GIT_RUNS or word.text.startswith("-c"):
            return _Found(hidden=True, spell=at + 3)
    if index < len(words) and not words[index].fixed:
        return _NEVER
    name = words[index].text if index < len(words) else ""
    triggers = _GIT_SUBCOMMANDS.get(name, ("--output",))
    if triggers == ():
        return _Found(hidden=True, spell=index + 2)
    return _triggered(words, (*triggers, "--output"), index + 1)


def _option_runs(*triggers: str) -> Callable[[tuple[Word, ...], Command], _Found | None]:
    """A program that runs others only where one of these words is given."""
    return lambda words, command: _triggered(words, triggers, 0)


def _triggered(words: tuple[Word, ...], triggers: tuple[str, ...], start: int) -> _Found | None:
    """Whether one of the words from `start` on is a trigger, or an expansion that may be one."""
    for index, word in enumerate(words[start:], start):
        if not word.fixed and word.text.startswith(("$", "`", "{")):
            return _NEVER
        if any(_is(word.text, trigger) for trigger in triggers):
            return _Found(hidden=True, spell=index + 2)
    return None


def _is(word: str, trigger: str) -> bool:
    """Whether a word is this option: long ones may be cut short, short ones stand among others (`-avze`)."""
    if trigger.startswith("--"):
        given = word.partition("=")[0]
        return len(given) > 2 and trigger.startswith(given)
    if trigger.startswith("-") and len(trigger) <= 3:
        return re.match(r"-[A-Za-z0-9]*" + trigger[1:], word) is not None
    return word in (trigger, f"-{trigger}") or word.startswith((f"{trigger}=", f"-{trigger}="))


def _sed(words: tuple[Word, ...], command: Command) -> _Found | None:
    """sed: its scripts may run commands and write files; only those that clearly do neither are let pass."""
    if not all(word.fixed or not word.text.startswith(("$", "`", "{", "-")) for word in words):
        return _NEVER
    first = next((word for word in words if not word.text.startswith("-")), None)
    if first is not None and not first.fixed:
        return _NEVER
    return None if shell_sed.harmless([word.text for word in words]) else _UNKNOWN


def _tar(words: tuple[Word, ...], command: Command) -> _Found | None:
    """tar: its first word may be options without a dash."""
    if words and words[0].fixed and re.fullmatch(r"[A-Za-z]*[IF][A-Za-z]*", words[0].text):
        return _UNKNOWN
    return _triggered(words, _TAR, 0)


def _uniq(words: tuple[Word, ...], command: Command) -> _Found | None:
    """uniq: a second file is written."""
    plain = [word for word in words if not word.text.startswith("-") and not word.text.isdigit()]
    return _UNKNOWN if len(plain) > 1 else None


_TAR = (
    "--to-command", "--checkpoint-action", "-I", "--use-compress-program", "-F", "--info-script",
    "--new-volume-script", "--rsh-command", "--rmt-command",
)  # fmt: skip
_FD = ("-x", "--exec", "-X", "--exec-batch")
_READERS: dict[str, Callable[[tuple[Word, ...], Command], _Found | None]] = {
    "find": _find, "gfind": _find, "git": _git, "sed": _sed, "gsed": _sed,
    "fd": _option_runs(*_FD), "fdfind": _option_runs(*_FD),
    "tar": _tar, "gtar": _tar, "uniq": _uniq, "man": _option_runs("-P", "--pager", "-H", "--html"),
    "bat": _option_runs("--pager"), "batcat": _option_runs("--pager"), "ag": _option_runs("--pager"),
    "ack": _option_runs("--pager"), "tree": _option_runs("-o"),
    "curl": _option_runs("-o", "-O", "-K", "--output", "--output-dir", "--remote-name", "--config"),
    "rg": _option_runs("--pre", "--hostname-bin"), "sort": _option_runs("--compress-program", "-o", "--output"),
    "zip": _option_runs("-TT", "--unzip-command"), "split": _option_runs("--filter"),
    "rsync": _option_runs("-e", "--rsh", "--rsync-path"), "scp": _option_runs("-S", "-o"),
    "go": _option_runs("-exec", "-toolexec", "run", "generate"), "cargo": _option_runs("run", "--config"),
    "npm": _option_runs("exec", "x", "explore", "--script-shell", "--node-options"),
    "pnpm": _option_runs("exec", "dlx"), "yarn": _option_runs("exec", "dlx"), "hg": _option_runs("--config"),
    "uv": _runner("run"), "poetry": _runner("run"), "pipenv": _runner("run"), "pdm": _runner("run"),
    "hatch": _runner("run"), "bundle": _runner("exec"),
}  # fmt: skip
