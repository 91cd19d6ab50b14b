"""Reads a shell command line into the simple commands that it would run. It parses; approval decides.

tree-sitter's bash grammar finds the commands, in substitutions, subshells, here-documents and compound statements too.
Whatever could hide a command from it (a parse error, a function, an unread substitution, a changed PATH) is reported as
a problem, so that nobody allows what nobody has read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

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
    """All simple commands of a command line, in order, and why it may do more than they say."""

    commands: tuple[Command, ...]
    problems: tuple[str, ...] = ()
    parsed: bool = True


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
    if _unread(root, source):
        reading.parsed = False
        reading.problems.append("has a part that cannot be read")
    return Script(tuple(reading.commands), tuple(dict.fromkeys(reading.problems)), reading.parsed)


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
            _check_name(_text(node.named_children[0]) if node.named_children else "", reading)
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
        words.append(Word(_text(node.children[0])))
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
                words.append(_word(child.children[0]) if child.children else Word(_text(child)))
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
    start = next((_text(child) for child in node.children if child.type == "heredoc_start"), "")
    body = next((child for child in node.children if child.type == "heredoc_body"), None)
    text = _text(body) if body is not None else ""
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
    _check_name(_text(name) if name is not None else "", reading)


# --- words -----------------------------------------------------------------------------------------------------


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


_BRACES = re.compile(r"\{[^{}]*(,|\.\.)[^{}]*\}")


def _word(node: Node) -> Word:
    match node.type:
        case "word" | "number" | "variable_name" | "test_operator" | "special_variable_name":
            return _bare(_text(node))
        case "raw_string":
            return Word(_text(node)[1:-1])
        case "ansi_c_string":
            inner = _text(node)[2:-1]
            return Word(inner, fixed="\\" not in inner)
        case "string":
            inner = _text(node)[1:-1]
            plain = all(child.type in ('"', "string_content") for child in node.children)
            return Word(re.sub(r"\\([\\\"$`]|\n)", lambda m: m[1].strip("\n"), inner), fixed=plain)
        case "concatenation":
            parts = [_word(child) for child in node.children]
            whole = Word("".join(part.text for part in parts), all(part.fixed for part in parts))
            return Word(whole.text, False) if _BRACES.search(_text(node)) else whole
        case "variable_assignment":
            value = node.child_by_field_name("value")
            name = node.child_by_field_name("name")
            word = _word(value) if value is not None else Word("")
            return Word(f"{_text(name) if name is not None else ''}={word.text}", word.fixed)
        case _:
            return Word(_text(node), fixed=False)


def _bare(text: str) -> Word:
    """An unquoted word: backslashes go; a pattern or braces make it something else."""
    stripped = re.sub(r"\\(\n|.)", lambda m: "" if m[1] == "\n" else m[1], text)
    unescaped = re.sub(r"\\.", "", text, flags=re.DOTALL)
    expands = bool(_BRACES.search(unescaped)) or bool(re.search(r"[*?\[]|[@!+]\(", unescaped))
    return Word(stripped, fixed=not expands)


# --- what the grammar may have overlooked ------------------------------------------------------------------------

_WHOLE = frozenset(("simple_expansion", "variable_assignment", "concatenation", "subscript", "array_name"))
"""Parts of one word: the grammar allows white space within some of them, where bash begins another word."""
_ONE_LINE = frozenset((
    "command", "file_redirect", "herestring_redirect", "declaration_command", "unset_command", "redirected_statement",
))  # fmt: skip
_DELIMITER = re.compile(r"\w+|'\w+'|\"\w+\"")
_OPENINGS = re.compile(rb"\\.|\$\(|`|[<>]\(", re.DOTALL)


def _nodes(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        here = stack.pop()
        yield here
        stack.extend(here.children)


def _unread(root: Node, source: bytes) -> bool:
    """Whether the grammar and bash may read the text differently: then nothing it says can be relied on."""
    if re.search(rb"[^ \t\n]\\\n[^ \t\n]", source):
        return True  # a line continued within a word
    literal = bytearray(len(source))
    openings: set[int] = set()
    quoted: list[tuple[int, int]] = []
    for node in _nodes(root):
        if _misread(node, source):
            return True
        if node.type in ("raw_string", "ansi_c_string", "comment"):
            literal[node.start_byte : node.end_byte] = b"\1" * (node.end_byte - node.start_byte)
        elif node.type == "heredoc_redirect":
            body = next((child for child in node.children if child.type == "heredoc_body"), None)
            start = next((_text(child) for child in node.children if child.type == "heredoc_start"), "")
            if body is not None and start[:1] in "'\"":
                literal[body.start_byte : body.end_byte] = b"\1" * (body.end_byte - body.start_byte)
        elif node.type == "command_substitution" and node.children[0].type == "`":
            quoted.append((node.start_byte, node.end_byte))
        elif not node.is_named and node.type in ("$(", "`", "<(", ">(", "$(("):
            openings.add(node.start_byte)
    for found in _OPENINGS.finditer(source):
        at = found.start()
        if literal[at]:
            continue
        if found[0][:1] == b"\\":
            if found[0] == b"\\`" and any(start < at < end for start, end in quoted):
                return True  # a nested backtick: bash unescapes it and reads again
        elif at not in openings and not (found[0][:1] in b"<>" and _in_string(root, at)):
            return True
    return False


def _misread(node: Node, source: bytes) -> bool:
    """Whether a node is one that the grammar is known to make of text that bash takes apart in another way."""
    before = source[: node.start_byte]
    if node.type == "comment":
        return re.search(rb"(^|(?<!\\)[ \t\n;&|()])$", before) is None
    if node.type == "heredoc_redirect":
        return _ends_early(node)
    if node.type == "heredoc_end":
        return source[node.end_byte : node.end_byte + 1] not in (b"", b"\n")
    if node.type == "heredoc_start":
        return _DELIMITER.fullmatch(_text(node)) is None
    if node.type in ("word", "number", "variable_name") and re.search(rb"(?<!\\)\n", node.text or b""):
        return True
    if not node.is_named and (len(before) - len(before.rstrip(b"\\"))) % 2 and node.type not in ('"', "'"):
        return True  # an operator that a backslash has made a letter
    if node.type == "test_command" and node.children[0].type == "[":
        return _splits(node, source)
    if node.type in _WHOLE:
        return any(one.end_byte != other.start_byte for one, other in pairwise(node.children))
    if node.type in _ONE_LINE:
        gaps = (source[one.end_byte : other.start_byte] for one, other in pairwise(node.children))
        return any(re.search(rb"(?<!\\)\n", gap) for gap in gaps)
    return False


def _splits(node: Node, source: bytes) -> bool:
    """Whether `[ … ]`, to bash a command like others, would end at an operator that the grammar reads as part of it."""
    text = bytearray(source[node.start_byte : node.end_byte])
    for inner in _nodes(node):
        if inner.type in ("string", "raw_string", "ansi_c_string", "command_substitution", "expansion"):
            start, end = inner.start_byte - node.start_byte, inner.end_byte - node.start_byte
            text[start:end] = b"x" * (end - start)
    return re.search(rb"[;&|<>()\n]", bytes(text)) is not None


def _ends_early(node: Node) -> bool:
    """Whether a line of a here-document begins like its end without being it: bash is not always of one mind there."""
    start = next((_text(child) for child in node.children if child.type == "heredoc_start"), "").strip("'\"")
    body = next((_text(child) for child in node.children if child.type == "heredoc_body"), "")
    return any(line.lstrip("\t ").startswith(start) for line in body.split("\n"))


def _in_string(root: Node, at: int) -> bool:
    """Whether a byte lies in a quoted string, where `<(` is just text."""
    node = root.descendant_for_byte_range(at, at + 1)
    while node is not None:
        if node.type in ("string", "heredoc_body", "regex", "test_command", "string_content"):
            return True
        if node.type in ("command_substitution", "process_substitution"):
            return False
        node = node.parent
    return False
