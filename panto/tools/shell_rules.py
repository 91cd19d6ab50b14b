"""Reads a shell command line into the simple commands that it would run. It parses; approval decides.

tree-sitter's bash grammar finds the commands, in substitutions, subshells, here-documents and compound statements too.
Whatever could hide a command from it (a parse error, a function, an unread substitution, a changed PATH) is reported as
a problem, so that nobody allows what nobody has read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from panto.tools.shell_doubts import text_of, unread
from panto.tools.shell_sums import unseen, works_out

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST = 32_768
_DEPTH = 150


@dataclass(frozen=True, slots=True)
class Word:
    """A word as the command would get it. `fixed`: it is exactly `text`; else an expansion makes it something else."""

    text: str
    fixed: bool = True


@dataclass(frozen=True, slots=True)
class Redirect:
    """A file that the shell itself opens for a command. `writes`: it is created or changed."""

    target: Word
    writes: bool


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command. `assigned`: variables set for it alone, as NAME=VALUE; `input`: a here-document's text."""

    words: tuple[Word, ...]
    assigned: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    input: Word | None = None
    piped: bool = False

    @property
    def name(self) -> str:
        """The program's name; "" where an expansion makes it."""
        return self.words[0].text if self.words and self.words[0].fixed else ""

    def text(self) -> str:
        """The command in a readable form."""
        return " ".join(word.text for word in (*self.assigned, *self.words))


@dataclass(frozen=True, slots=True)
class Script:
    """All simple commands of a command line, in order, and why it may do more than they say.

    `counts`: it counts with variables, which is harmless only where nothing else sets them.
    """

    commands: tuple[Command, ...]
    problems: tuple[str, ...] = ()
    parsed: bool = True
    counts: bool = False


@dataclass(slots=True)
class _Reading:
    source: bytes
    commands: list[Command] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    parsed: bool = True


@lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


@lru_cache(maxsize=256)
def parse(text: str) -> Script:
    """The commands of `text`. Never raises: what cannot be read is a Script that is not `parsed`."""
    odd = next((char for char in text if ord(char) < 32 and char not in "\n\t" or ord(char) == 127), "")
    if odd or len(text) > LONGEST:
        return Script((), (f"holds the control character {odd!r}" if odd else "is very long",), parsed=False)
    try:
        source = text.encode("utf-8")
    except UnicodeEncodeError:
        return Script((), ("holds half a character",), parsed=False)
    root = _parser().parse(source).root_node
    reading = _Reading(source)
    if root.has_error:
        reading.parsed = False
        reading.problems.append("cannot be read as shell")
    _walk(root, reading, 0, piped=False)
    if unread(root, source):
        reading.parsed = False
        reading.problems.append("has a part that cannot be read")
    doubtful, counts = works_out(root)
    if doubtful:
        reading.parsed = False
        reading.problems.append("works out text as a sum or a name, which can run commands")
    for name in unseen(root):
        reading.parsed = False
        reading.problems.append(f"sets {name}, which bash runs by itself")
    return Script(tuple(reading.commands), tuple(dict.fromkeys(reading.problems)), reading.parsed, counts)


def _walk(node: Node, reading: _Reading, depth: int, piped: bool) -> None:
    if depth > _DEPTH:
        reading.parsed = False
        reading.problems.append("is nested too deeply")
        return
    match node.type:
        case "command" | "declaration_command" | "unset_command":
            _command(node, reading, (), piped)
        case "redirected_statement":
            _redirected(node, reading, depth, piped)
            return
        case "variable_assignment":
            _sets(node, reading)
        case "function_definition":
            reading.problems.append("defines a function")
        case "for_statement":
            _check_name(text_of(node.named_children[0]) if node.named_children else "", reading)
        case "file_redirect" | "herestring_redirect":
            _loose_redirect(node, reading)
    first = True
    for child in node.children:
        # Every command of a pipeline but its first reads what the one before prints.
        inside = node.type == "pipeline" and not first or piped and node.type not in ("command_substitution", "program")
        _walk(child, reading, depth + 1, inside)
        first = first and not child.is_named


def _redirected(node: Node, reading: _Reading, depth: int, piped: bool) -> None:
    body = node.child_by_field_name("body")
    redirects = [child for child in node.named_children if child.type.endswith("_redirect")]
    if body is not None and body.type in ("command", "declaration_command", "unset_command"):
        _command(body, reading, redirects, piped)
        for child in body.children:
            _walk(child, reading, depth + 1, piped=False)
    elif body is not None:
        _walk(body, reading, depth + 1, piped or any(_reads(child) for child in redirects))
        for child in redirects:
            _loose_redirect(child, reading)
    else:
        for child in redirects:
            _loose_redirect(child, reading)
    for redirect in redirects:
        for child in redirect.children:
            # `cat <<EOF | sh`: the grammar hangs the rest of the pipeline into the redirection.
            _walk(child, reading, depth + 1, piped=child.type in ("pipeline", "command"))


def _reads(redirect: Node) -> bool:
    return redirect.type != "file_redirect" or any(child.type in ("<", "<&", "<>") for child in redirect.children)


def _command(node: Node, reading: _Reading, around: list[Node] | tuple[()], piped: bool) -> None:
    words: list[Word] = []
    assigned: list[Word] = []
    redirects: list[Redirect] = []
    given: Word | None = None
    if node.type != "command":
        words.append(Word(text_of(node.children[0])))
    for child in (*node.named_children, *around):
        match child.type:
            case "variable_assignment" if node.type == "command":
                assigned.append(_word(child))
            case "file_redirect":
                redirects.append(_redirect(child))
                words += _stray_words(child)
                piped = piped or _reads(child)
            case "herestring_redirect":
                given = _word(child.named_children[-1])
            case "heredoc_redirect":
                given = _document(child)
                redirects += [_redirect(c) for c in child.named_children if c.type == "file_redirect"]
            case "comment" | "ERROR":
                pass
            case "command_name":
                words.append(_word(child.children[0]) if child.children else Word(text_of(child)))
            case _:
                words.append(_word(child))
    if node.type == "declaration_command":
        for child in node.named_children:
            if child.type == "variable_assignment":
                _sets(child, reading)
    reading.commands.append(Command(tuple(words), tuple(assigned), tuple(redirects), given, piped))


def _redirect(node: Node) -> Redirect:
    operator = next((child.type for child in node.children if not child.is_named), "")
    target = node.child_by_field_name("destination")
    word = _word(target) if target is not None else Word("", fixed=False)
    copies = operator in (">&", "<&") and (word.text.isdigit() or word.text.rstrip("-").isdigit() or word.text == "-")
    return Redirect(word, writes=operator not in ("<", "<&") and not copies)


def _loose_redirect(node: Node, reading: _Reading) -> None:
    """A redirection around a group or by itself, with the words that the grammar hangs onto it."""
    if node.type == "file_redirect":
        reading.commands.append(Command(_stray_words(node), redirects=(_redirect(node),)))


def _stray_words(node: Node) -> tuple[Word, ...]:
    """Words after a file redirection's target: they are arguments of the command, as in `ls > f -la`."""
    named = [child for child in node.named_children if child.type != "file_descriptor"]
    return tuple(_word(child) for child in named[1:])


def _document(node: Node) -> Word:
    start = next((text_of(child) for child in node.children if child.type == "heredoc_start"), "")
    body = next((child for child in node.children if child.type == "heredoc_body"), None)
    text = text_of(body) if body is not None else ""
    quoted = any(char in start for char in "'\"\\")
    return Word(text, fixed=quoted or not re.search(r"[$`\\]", text))


_PLAIN_NAME = re.compile(r"(?!npm_config)[a-z_][a-z0-9_]*")
_HARMLESS = re.compile(
    r"LANG|LC_[A-Z]+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR(_FORCE)?|CI|DEBUG|COLUMNS|LINES|NODE_ENV|RAILS_ENV|RUST_LOG"
    r"|RUST_BACKTRACE|CARGO_TERM_COLOR|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|PYTHONHASHSEED|GIT_PAGER_IN_USE"
)


def harmless(assignment: Word) -> bool:
    """Whether a variable set for one command cannot make another program run."""
    return _HARMLESS.fullmatch(assignment.text.partition("=")[0]) is not None


def _check_name(name: str, reading: _Reading) -> None:
    base = name.partition("[")[0]
    if not _PLAIN_NAME.fullmatch(base) and not _HARMLESS.fullmatch(base):
        reading.problems.append(f"sets {base}")


def _sets(node: Node, reading: _Reading) -> None:
    """A variable that later commands see: harmless only where no program looks at it."""
    parent = node.parent
    if parent is not None and parent.type == "command":
        return
    name = node.child_by_field_name("name")
    _check_name(text_of(name) if name is not None else "", reading)


# --- words -----------------------------------------------------------------------------------------------------


_BRACES = re.compile(r"\{[^{}]*(,|\.\.)[^{}]*\}")


def _word(node: Node) -> Word:
    match node.type:
        case "word" | "number" | "variable_name" | "test_operator" | "special_variable_name":
            return _bare(text_of(node))
        case "raw_string":
            return Word(text_of(node)[1:-1])
        case "ansi_c_string":
            inner = text_of(node)[2:-1]
            return Word(inner, fixed="\\" not in inner)
        case "string":
            inner = text_of(node)[1:-1]
            plain = all(child.type in ('"', "string_content") for child in node.children)
            return Word(re.sub(r"\\([\\\"$`]|\n)", lambda m: m[1].strip("\n"), inner), fixed=plain)
        case "concatenation":
            parts = [_word(child) for child in node.children]
            whole = Word("".join(part.text for part in parts), all(part.fixed for part in parts))
            return Word(whole.text, False) if _BRACES.search(text_of(node)) else whole
        case "variable_assignment":
            value = node.child_by_field_name("value")
            name = node.child_by_field_name("name")
            word = _word(value) if value is not None else Word("")
            return Word(f"{text_of(name) if name is not None else ''}={word.text}", word.fixed)
        case _:
            return Word(text_of(node), fixed=False)


def _bare(text: str) -> Word:
    """An unquoted word: backslashes go; a pattern or braces make it something else."""
    stripped = re.sub(r"\\(\n|.)", lambda m: "" if m[1] == "\n" else m[1], text)
    unescaped = re.sub(r"\\.", "", text, flags=re.DOTALL)
    expands = bool(_BRACES.search(unescaped)) or bool(re.search(r"[*?\[]|[@!+]\(", unescaped))
    return Word(stripped, fixed=not expands)
