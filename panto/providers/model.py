"""What a configured provider and a model are, as plain values handed in from outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from panto.schema.messages import Usage

if TYPE_CHECKING:
    from panto.providers.provider import Provider

KeySource = Callable[[], "Awaitable[str] | str"]
"""Gives the key when a request needs it; may run a command. Its text never leaves this room except as a header."""


class Tier(Struct, frozen=True):
    """From `above` prompt tokens on, the whole request costs these prices instead."""

    above: int
    input: float
    output: float
    cache_read: float = 0.0
    cache_write: float = 0.0


class Price(Struct, frozen=True):
    """USD per million tokens. Where a vendor bills no separate write, `cache_write` equals `input` or 0."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    tiers: tuple[Tier, ...] = ()

    def cost(self, usage: Usage) -> float:
        """USD for this usage (`usage.input` includes what was read from and written to the cache)."""
        at: Price | Tier = self
        for tier in sorted(self.tiers, key=lambda t: t.above):
            if usage.input > tier.above:
                at = tier
        read = at.input if at.cache_read is None else at.cache_read
        write = at.input if at.cache_write is None else at.cache_write
        plain = max(0, usage.input - usage.cache_read - usage.cache_write)
        total = plain * at.input + usage.cache_read * read + usage.cache_write * write + usage.output * at.output
        return total / 1e6


class ModelSpec(Struct, frozen=True):
    """One model as data. `id` goes over the wire; sizes in tokens (0: unknown).

    `reasoning`: the levels it takes, () if none. `forced_tool`: obeys a required or named tool choice.
    `wire`: switches of its protocol, e.g. {"thinking": "adaptive"}; each protocol's docstring lists its own.
    """

    id: str
    context: int = 0
    max_output: int = 0
    price: Price | None = None
    images: bool = False
    tools: bool = True
    reasoning: tuple[str, ...] = ()
    forced_tool: bool = True
    aliases: tuple[str, ...] = ()
    wire: Mapping[str, object] = {}


class NetworkSettings(Struct, frozen=True):
    """Limits in seconds. `idle_s`: between two parts of a stream; `connect_s`: to reach the server.

    `ca_file`: a PEM file of further trusted authorities ("" none).
    """

    idle_s: float = 120.0
    connect_s: float = 10.0
    ca_file: str = ""


class ProviderSettings(Struct, frozen=True):
    """One configured endpoint.

    `base_url` without the protocol's own path; `headers` go with every request; `options` are members of every
    request body. `stream`: False asks for whole replies. `wire`: switches of the server (see the protocols).
    `specs`: wire id -> model, for what depends on the model.
    """

    name: str
    protocol: str
    base_url: str
    key: KeySource | None = None
    headers: Mapping[str, str] = {}
    options: Mapping[str, object] = {}
    stream: bool = True
    wire: Mapping[str, object] = {}
    specs: Mapping[str, ModelSpec] = {}

    def spec(self, model: str) -> ModelSpec:
        """The model with this wire id; one that nothing is known of, if it is not listed."""
        return self.specs.get(model) or ModelSpec(model)


class Model(Struct, frozen=True):
    """A model ready to be asked. `label` is `provider:alias`.

    `window_setting` names what sets the context window, where that is a local server's business ("" else).
    """

    label: str
    provider: Provider
    spec: ModelSpec
    window_setting: str = ""
