"""Where tree-sitter's bash grammar and bash part ways: text that the grammar reads as something else than bash does.

Each check here was found by running lines at random in a real bash. A line that fails one is not relied on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


def text_of(node: Node) -> str:
    """A node's text."""
    return (node.text or b"").decode("utf-8", "replace")


_WHOLE = frozenset(("simple_expansion", "variable_assignment", "concatenation", "subscript", "array_name"))
"""Parts of one word: the grammar allows white space within some of them, where bash begins another word."""
_ONE_LINE = frozenset((
    "command", "file_redirect", "herestring_redirect", "declaration_command", "unset_command", "redirected_statement",
))  # fmt: skip
_WORDS = frozenset((
    "word", "string", "raw_string", "ansi_c_string", "translated_string", "number", "concatenation", "expansion",
    "simple_expansion", "command_substitution", "process_substitution", "arithmetic_expansion", "brace_expression",
))  # fmt: skip
_DELIMITER = re.compile(r"\w+|'\w+'|\"\w+\"")
_OPENINGS = re.compile(rb"\\.|\$\(|`|[<>]\(", re.DOTALL)


def nodes(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        here = stack.pop()
        yield here
        stack.extend(here.children)


def unread(root: Node, source: bytes) -> bool:
    """Whether the grammar and bash may read the text differently: then nothing it says can be relied on."""
    if re.search(rb"[^ \t\n]\\\n[^ \t\n]", source):
        return True  # a line continued within a word
    literal = bytearray(len(source))
    openings: set[int] = set()
    quoted: list[tuple[int, int]] = []
    for node in nodes(root):
        if _misread(node, source):
            return True
        if node.type in ("raw_string", "ansi_c_string", "comment"):
            literal[node.start_byte : node.end_byte] = b"\1" * (node.end_byte - node.start_byte)
        elif node.type == "heredoc_redirect":
            body = next((child for child in node.children if child.type == "heredoc_body"), None)
            start = next((text_of(child) for child in node.children if child.type == "heredoc_start"), "")
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
        return _misleads(node)
    if node.type == "heredoc_end":
        return source[node.end_byte : node.end_byte + 1] not in (b"", b"\n")
    if node.type == "heredoc_start":
        return _DELIMITER.fullmatch(text_of(node)) is None
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
    for inner in nodes(node):
        if inner.type in ("string", "raw_string", "ansi_c_string", "command_substitution", "expansion"):
            start, end = inner.start_byte - node.start_byte, inner.end_byte - node.start_byte
            text[start:end] = b"x" * (end - start)
    return re.search(rb"[;&|<>()\n]", bytes(text)) is not None


def _misleads(node: Node) -> bool:
    """Whether words of the command follow a here-document's mark, where the grammar loses them, or a line of it begins
    like its end without being it, where bash is not always of one mind."""
    if any(child.type in _WORDS for child in node.named_children):
        return True
    start = next((text_of(child) for child in node.children if child.type == "heredoc_start"), "").strip("'\"")
    body = next((text_of(child) for child in node.children if child.type == "heredoc_body"), "")
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
