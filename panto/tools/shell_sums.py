"""Where bash works out text as arithmetic or as a name, and so runs the commands in it: `[[ 'a[$(cmd)]' -eq 1 ]]`.

In a sum a name stands for its value, which is worked out in its turn, and an index is expanded: a variable that holds
`a[$(cmd)]` runs cmd wherever it is counted with. Numbers are harmless, and so are names that only ever held numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from panto.tools.shell_doubts import nodes, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_TOKEN = re.compile(
    r"[\s\[\]+\-*/%<>=!&|^~?:,();]|\d[\w#@]*|\$\{#[A-Za-z_]\w*(\[[@*]\])?\}|\$[#?$!]"
    r"|(\$\{[A-Za-z_]\w*\}|\$?[A-Za-z_]\w*)"
)
_NUMBER = re.compile(r"""[+-]?\d*|"[+-]?\d*"|'[+-]?\d*'|\$\(\(.*\)\)|\$[#?$!]|\$\{#\w+\}""", re.DOTALL)
_COMPARES = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_SETTERS = frozenset(("read", "mapfile", "readarray", "getopts", "eval", "source", "."))
"""Builtins that put text from elsewhere into variables."""
_NAMERS = frozenset(("read", "getopts", "let", "mapfile", "readarray"))
"""Builtins whose words are names (or sums): an index in them is worked out."""
_NAME = re.compile(r"[A-Za-z_]\w*(\[(\d+|[@*])\])?")
_SLICE = re.compile(r"\$\{!?[\w@*#]+(\[[^\]]*\])?:(?![-=+?])(.*)\}", re.DOTALL)
_INDIRECT = re.compile(r"\$\{!(?!\w+(\[[@*]\]|[@*])\})|\$\{[^}]*@[PA]\}")
_ANY = "x"
"""Stands for a word that counts with a variable, if what the variable holds makes it do so."""
_DECLARES = re.compile(r"-\w*[in]\w*")


def works_out(root: Node) -> tuple[bool, bool]:
    """Whether a line works text out so that commands in it would run, and whether it counts with any name at all.

    The second matters where the line is run with variables of another: it cannot see what they hold.
    """
    named = False
    for node in nodes(root):
        found = _sums(node)
        if found is None:
            return True, True
        named = named or any(_has_names(text) for text in found)
        if any(_reads(text) for text in found):
            return True, True
    return named and _sets_text(root), named


def _sums(node: Node) -> list[str] | None:
    """The sums that bash works out at a node; None: it works out what is not seen."""
    text = text_of(node)
    match node.type:
        case "arithmetic_expansion":
            return [text.removeprefix("$((").removesuffix("))") if text.startswith("$((") else text[2:-1]]
        case "compound_statement" if text.startswith("(("):
            return [text[2:-2]]
        case "c_style_for_statement":
            return [text[text.find("((") + 2 : text.find("))")]]
        case "expansion":
            if _INDIRECT.match(text):
                return None
            sliced = _SLICE.fullmatch(text)
            return [sliced[2]] if sliced else []
        case "subscript":
            index = text[text.find("[") + 1 : -1]
            return [] if index in ("@", "*") else [index]
        case "array":
            return re.findall(r"(?<![^\s(])\[([^\]]*)\]\+?=", text)
        case "binary_expression" if any(text_of(child) in _COMPARES for child in node.children) and _double(node):
            return [re.sub(r'^"(.*)"$', r"\1", text_of(side), flags=re.DOTALL) for side in node.named_children[::2]]
        case "test_command":
            bare = node.children[0].type == "[" and re.search(r"\s\$[\w{]", text) is not None
            return _tested(re.findall(r"\s-[vR]\s+(\S+)", text), bare)
        case "declaration_command" | "unset_command":
            return _declared(node)
        case "command":
            return _called([text_of(child) for child in node.named_children])
    return []


def _double(node: Node) -> bool:
    """Whether a comparison stands in `[[ ]]`: `[ ]` takes numbers only."""
    above = node.parent
    while above is not None and above.type != "test_command":
        above = above.parent
    return above is None or above.children[0].type != "["


def _tested(named: list[str], bare: bool) -> list[str] | None:
    """A test of these names; `bare`: an expansion may bring in such a test."""
    if not all(_NAME.fullmatch(name) for name in named):
        return None
    return [_ANY] if bare else []


def _declared(node: Node) -> list[str] | None:
    """`declare` and its like: options that count or point, and names made of text."""
    for child in node.named_children:
        if child.type != "variable_assignment":
            text = text_of(child)
            if _DECLARES.fullmatch(text) or not (text.startswith("-") or _NAME.fullmatch(text)):
                return None
    return []


def _called(words: list[str]) -> list[str] | None:
    """A simple command, by the builtins that take names."""
    while words and words[0] in ("builtin", "command"):
        words = words[1:]
    name = re.sub(r"[\\'\"]", "", words[0]) if words else ""
    rest = words[1:]
    if name in _NAMERS and any("[" in word or "$" in word or "`" in word for word in rest):
        return None
    if name == "let":
        return [re.sub(r"['\"]", "", word) for word in rest]
    if name == "test":
        flags = [after for word, after in zip(rest, rest[1:], strict=False) if word in ("-v", "-R")]
        return _tested(flags, any(word.startswith(("$", '"$')) for word in (*rest[:1], *_bare(rest))))
    if name == "printf" and rest:
        first = re.sub(r"^['\"]|['\"]$", "", rest[0])
        if first.startswith("-v"):
            return _tested([first[2:] or "".join(rest[1:2])], False)
        return [_ANY] if first.startswith(("$", "`")) else []
    if name == "wait":
        bare = [word for word in _bare(rest) if word != "$!"]
        return None if any(re.match(r"-\w*p", word) for word in rest) else [_ANY] if bare else []
    return []


def _bare(words: list[str]) -> list[str]:
    """Expansions that no quotes hold together: they may become several words."""
    return [word for word in words if word.startswith("$")]


def _has_names(text: str) -> bool:
    return any(found[2] for found in _TOKEN.finditer(text))


def _reads(text: str) -> bool:
    """Whether a sum holds more than numbers, operators and plain names."""
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return True
        at = found.end()
    return False


def _sets_text(root: Node) -> bool:
    """Whether a variable may hold anything but a number that the line itself says."""
    return any(_puts(node) for node in nodes(root))


def _puts(node: Node) -> bool:
    match node.type:
        case "variable_assignment":
            value = node.child_by_field_name("value")
            parent = node.parent
            if parent is not None and parent.type == "c_style_for_statement":
                return False
            return value is not None and _NUMBER.fullmatch(text_of(value)) is None
        case "for_statement":
            values = [child for child in node.named_children[1:] if child.type != "do_group"]
            return not values or any(not re.fullmatch(r"\d+|\{\d+\.\.\d+\}", text_of(child)) for child in values)
        case "command":
            words = [text_of(child) for child in node.named_children]
            return bool(words) and (words[0] in _SETTERS or words[0] == "printf" and "-v" in words)
    return False


def unseen(root: Node) -> Iterator[str]:
    """Names whose values bash expands or runs by itself, where the line sets them."""
    for node in nodes(root):
        if node.type == "variable_assignment":
            name = text_of(node).partition("=")[0].rstrip("+")
            if name in ("PS4", "BASH_ENV", "ENV"):
                yield name
