"""Rules for commands: which patterns cover which simple commands of a line, and what is dangerous about it. Pure.

A pattern is words: `git status` is that command and no other; a last `*` stands for any further words, a `*` elsewhere
within one word for any characters, `\\*` for a star. To ask and to deny, words are enough as a beginning, and a program
counts by its name wherever it lies.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

from panto.tools.shell_rules import Command, Script, Word, harmless, parse
from panto.tools.shell_wrappers import Unit, subcommand, units
from panto.tools.text import one_line

_SUGGESTED = 200
_NOWHERE = re.compile(r"/dev/(null|stdout|stderr|tty|fd/\d+)|-")
_MOVES = frozenset(("cd", "pushd", "popd", "chdir"))


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A rule's argument, read. `words` are fnmatch patterns; `open`: more words may follow; `fixed`: no wildcard."""

    words: tuple[str, ...]
    open: bool
    fixed: bool
    text: str


@lru_cache(maxsize=1024)
def _pattern(argument: str) -> _Pattern:
    text = argument[:-2] + " *" if argument.endswith(":*") else argument
    hidden = text.replace("\\\\", "\0b").replace("\\*", "\0s")
    fixed = "*" not in hidden
    try:
        words = shlex.split(hidden)
    except ValueError:
        words = hidden.split()
    follow = bool(words) and words[-1] == "*"
    if follow:
        words.pop()

    def glob(word: str) -> str:
        quoted = re.sub(r"([\[?])", r"[\1]", word)
        return quoted.replace("\0s", "[*]").replace("\0b", "\\")

    plain = hidden.replace("\0s", "*").replace("\0b", "\\")
    return _Pattern(tuple(glob(word) for word in words), follow, fixed, plain.strip())


def _exactly(pattern: _Pattern, command: Command) -> bool:
    """Whether a pattern without wildcards is this command, word for word."""
    if not pattern.fixed or not all(word.fixed for word in (*command.assigned, *command.words)):
        return False
    words = [word.text for word in command.words]
    full = [word.text for word in command.assigned] + words
    tame = all(harmless(word) for word in command.assigned)
    return any(_same(pattern.words, one) for one in ((full, words) if tame else (full,)))


def _same(patterns: Sequence[str], words: Sequence[str]) -> bool:
    return len(patterns) == len(words) and all(map(fnmatchcase, words, patterns))


def _covers(pattern: _Pattern, command: Command) -> bool:
    """Whether an allow pattern covers the command: fixed words for what it spells out, a fixed name always."""
    count = len(pattern.words)
    words = command.words
    if not words or not words[0].fixed or len(words) < count or (len(words) > count and not pattern.open):
        return False
    if not all(harmless(word) for word in command.assigned):
        return False
    spelled = words[:count]
    return all(word.fixed and fnmatchcase(word.text, p) for word, p in zip(spelled, pattern.words, strict=True))


def _touches(pattern: _Pattern, command: Command) -> str:
    """Whether an ask or deny pattern meets the command: "yes", "no", or "maybe" where an expansion hides it."""
    words = command.words
    if not words:
        return "no"
    if words[0].text.rpartition("/")[2] == "git" and (index := subcommand(words[1:])):
        plain = replace(command, words=(words[0], *words[index + 1 :]))  # `git -C . push` is `git push`
        if (found := _touches(pattern, plain)) != "no":
            return found
    sure = True
    for index, wanted in enumerate(pattern.words):
        if index >= len(words):
            return "no" if all(word.fixed for word in words) else "maybe"
        word = words[index]
        texts = (word.text, word.text.rpartition("/")[2]) if index == 0 else (word.text,)
        if not any(fnmatchcase(text, wanted) for text in texts):
            if word.fixed:
                return "no"
            sure = False
    return "yes" if sure else "maybe"


@dataclass(frozen=True, slots=True)
class Shell:
    """A command line, read."""

    text: str
    script: Script
    units: tuple[Unit, ...]

    @property
    def parsed(self) -> bool:
        return self.script.parsed and not any(unit.hidden for unit in self.units)

    def problem(self) -> str:
        """Why the line may do more than its commands say; completes "it …"."""
        if self.script.problems:
            return self.script.problems[0]
        hidden = next((unit for unit in self.units if unit.hidden), None)
        return f"runs what cannot be read here ({one_line(hidden.command.text(), 60)})" if hidden else ""

    def denied(self, patterns: Sequence[str]) -> str:
        """The rule that forbids it, or ""."""
        for argument in patterns:
            pattern = _pattern(argument)
            if pattern.text == self.text.strip():
                return f"bash({argument})"
            if any(_touches(pattern, unit.command) == "yes" for unit in (*self.units, *self._sent())):
                return f"bash({argument})"
        return ""

    def _sent(self) -> tuple[Unit, ...]:
        """Commands of here-documents, where something in the line reads commands from a pipe."""
        if not any(unit.hidden and unit.command.piped for unit in self.units):
            return ()
        texts = [unit.command.input.text for unit in self.units if unit.command.input is not None]
        return tuple(unit for text in texts for unit in units(parse(text)))

    def writes(self) -> tuple[Word, ...]:
        """Targets that the shell itself would create or change."""
        redirects = [redirect for unit in self.units for redirect in unit.command.redirects]
        return tuple(r.target for r in redirects if r.writes and not _NOWHERE.fullmatch(r.target.text))

    def place(self, target: Word, cwd: str) -> str:
        """The real path of a redirection's target; "" where an expansion or a change of directory hides it."""
        path = os.path.expanduser(target.text)
        moved = any(unit.command.name in _MOVES for unit in self.units)
        if not target.fixed or path.startswith("~") or (moved and not os.path.isabs(path)):
            return ""
        return os.path.realpath(os.path.join(cwd, path))

    def asked(self, patterns: Sequence[str]) -> str:
        """The rule's argument that asks about it, or ""."""
        for argument in patterns:
            if any(_touches(_pattern(argument), unit.command) != "no" for unit in self.units):
                return argument
        return ""

    def unallowed(
        self, allow: Sequence[str], ask: Sequence[str], deny: Sequence[str], bare: Mapping[str, bool], writes: str
    ) -> str:
        """Why rules do not allow it ("": they do). `bare`: effects of rules for bash as a whole; `writes`: a reason."""
        if argument := self.asked(ask):
            return f"a rule asks for bash({argument})"
        patterns = [_pattern(argument) for argument in allow]
        if any(pattern.fixed and pattern.text == self.text.strip() for pattern in patterns):
            return ""
        if not self.script.parsed:
            return f"it {self.problem()}"
        whole = "allow" in bare and "ask" not in bare
        denials = [_pattern(argument) for argument in deny]
        problem = self.script.problems[0] if self.script.problems and not (whole and not denials) else ""
        if not self.units and not problem and not whole:
            return "no rule allows it"
        for unit in self.units:
            if not self._allowed(unit, patterns, denials, whole):
                named = one_line(unit.command.text(), 60)
                return "a rule asks for bash" if "ask" in bare else f"no rule allows {named}"
        return f"it {problem}" if problem else writes

    def _allowed(self, unit: Unit, patterns: Sequence[_Pattern], denials: Sequence[_Pattern], whole: bool) -> bool:
        command = unit.command
        if not command.words:
            return True  # a redirection alone: its target is judged as a write
        if any(_exactly(pattern, command) for pattern in patterns):
            return True
        if any(_touches(pattern, command) == "maybe" for pattern in denials):
            return False
        if unit.clear:
            return all(harmless(word) for word in command.assigned)
        if whole and not (unit.hidden and denials):
            return True
        for pattern in patterns:
            if _covers(pattern, command) and len(pattern.words) >= unit.spell:
                return True
        return False

    def dangers(self) -> tuple[str, ...]:
        """All that is dangerous about it, each as "asks because" goes on."""
        found: list[str] = []
        for unit in self.units:
            words = [word.text for word in unit.command.words]
            if words:
                name = words[0].rpartition("/")[2]
                rest = f" {' '.join(words[1:])} "
                mine = (danger for danger in _DANGERS if re.fullmatch(danger[0], name))
                found += (why for _, wanted, why in mine if re.search(wanted, rest))
                if unit.hidden and unit.command.piped and name in ("sh", "bash", "zsh", "dash", "python", "python3"):
                    found.append(f"{name} runs whatever it is sent")
            for redirect in unit.command.redirects:
                if redirect.writes and re.match(r"/dev/(sd|nvme|disk|mapper|vd|hd)", redirect.target.text):
                    found.append(f"it overwrites {redirect.target.text}")
        return tuple(dict.fromkeys(found))

    def suggestion(self) -> str:
        """The rule that allows exactly this line; "" where it is too long to be one."""
        text = self.text.strip()
        if "\n" in text or len(text) > _SUGGESTED or not self.script.parsed:
            return ""
        return f"bash({text.replace(chr(92), chr(92) * 2).replace('*', chr(92) + '*')})"


def read_shell(text: str) -> Shell:
    """A command line's commands, with those that wrappers run."""
    script = parse(text)
    return Shell(text, script, units(script))


_DANGERS: tuple[tuple[str, str, str], ...] = (
    ("rm", r" -\w*[rR]| --recursive", "rm -r deletes directories with all they hold"),
    ("rm", r" -\w*f| --force| \*", "rm deletes files unasked"),
    ("sudo|doas|pkexec|su", "", "it runs as another user"),
    ("shred|wipefs|mkfs.*|fdisk|parted|sgdisk|blkdiscard", "", "it destroys data on disks"),
    ("dd", r" of=", "dd overwrites its target"),
    ("find", r" -delete ", "find -delete deletes files"),
    ("git", r" push .*(--force|-f |\+)| push .*--delete| push .*--mirror", "it overwrites what others have pushed"),
    ("git", r" (reset .*--hard|clean .*-\w*f|checkout .*(-f|--force|-- )|restore )", "it discards uncommitted changes"),
    ("git", r" (branch .*-D|stash (drop|clear)|reflog expire|filter-branch)", "it discards commits"),
    ("chmod|chown|chgrp", r" -\w*R| --recursive", "it changes a whole tree"),
    ("shutdown|reboot|halt|poweroff|init", "", "it stops the machine"),
    ("kill|killall|pkill", "", "it ends processes that may not be panto's"),
    ("mv|cp", r" /dev/| /etc/| /usr/| /boot/", "it changes the system"),
    ("truncate", "", "it cuts files"),
    ("(npm|pnpm|yarn|cargo|twine|poetry|gem)", r" (publish|upload) ", "it publishes"),
    ("docker|podman", r" (system|volume|image|container) prune| rm | rmi ", "it deletes containers, images or volumes"),
    ("crontab", r" -r", "it deletes scheduled jobs"),
    ("(terraform|tofu|pulumi)", r" (apply|destroy|up)", "it changes real infrastructure"),
    ("kubectl", r" (delete|apply|drain)", "it changes a cluster"),
    ("(drop|create)(db|user)", "", "it changes a database"),
)
"""(program, what its arguments hold, why that is dangerous): for the question's words and keys, never for allowing."""
