"""Ids: how things of a session are named, so that any process derives the same name for the same thing."""

from __future__ import annotations

import os
import re

from panto.schema.codec import derive_id
from panto.schema.events import CallBinding
from panto.schema.messages import ModelResult

_HEX = re.compile(r"[0-9a-f]{32}\Z")
_ENTITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}\Z")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def new_id() -> str:
    """A random id: 32 lower-case hex digits."""
    return os.urandom(16).hex()


def is_id(text: object) -> bool:
    """Whether this is an id of panto's own: 32 lower-case hex digits."""
    return isinstance(text, str) and _HEX.match(text) is not None


def is_entity(text: object) -> bool:
    """Whether this may name a stream: 1 to 128 plain characters, the first a letter or digit."""
    return isinstance(text, str) and _ENTITY.match(text) is not None


def is_digest(text: object) -> bool:
    """Whether this is a SHA-256 in hex."""
    return isinstance(text, str) and _DIGEST.match(text) is not None


def effect_id(run: str, step: int, subject: str, sequence: int) -> str:
    """The name of one effect. `subject` is the call id, or "model"; `sequence` counts its starts from 0."""
    return derive_id("effect", run, step, subject, sequence)


def call_id(run: str, step: int, index: int) -> str:
    """The id of a model result's call: `index` is its place among the result's calls, whatever the provider sent."""
    return derive_id("call", run, step, index)


def checkpoint_id(base: str, summary: str) -> str:
    """The id of the checkpoint that puts `summary` (digest) in the place of the context `base` (digest)."""
    return derive_id("checkpoint", base, summary)


def bind(run: str, step: int, result: ModelResult, mutating: frozenset[str] | None = None) -> tuple[CallBinding, ...]:
    """Give the result's calls panto's own ids. `mutating`: names of tools that change things (None: all do)."""
    return tuple(
        CallBinding(
            call=call_id(run, step, index),
            index=index,
            name=call.name,
            provider_id=call.provider_id,
            mutates=mutating is None or call.name in mutating,
        )
        for index, call in enumerate(result.calls())
    )
