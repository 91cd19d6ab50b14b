"""Every setting there is, as types with their defaults: the one list that reading, checking and showing go by.

The names are those of the config file. A room gets its own small settings made from these (see build.py).
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Mode = Literal["plan", "ask", "auto", "yolo"]
Count = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0)]


class Settings(Struct, frozen=True):
    """A table of settings."""


class Tier(Settings, frozen=True):
    """From `above` prompt tokens on, a request costs these prices instead."""

    above: Count
    input: Amount
    output: Amount
    cache_read: Amount = 0
    cache_write: Amount = 0


class Price(Settings, frozen=True):
    """USD per million tokens. `input` and `output` must be there."""

    input: Amount | None = None
    output: Amount | None = None
    cache_read: Amount | None = None
    cache_write: Amount | None = None
    tiers: tuple[Tier, ...] = ()


class ModelSettings(Settings, frozen=True):
    """One model; the table's name is its alias, `id` what goes over the wire. None: not said.

    `wire`: switches of its protocol.
    """

    id: str | None = None
    context: Count | None = None
    max_output: Count | None = None
    price: Price | None = None
    images: bool | None = None
    tools: bool | None = None
    forced_tool: bool | None = None
    reasoning: tuple[str, ...] | None = None
    aliases: tuple[str, ...] = ()
    wire: dict[str, object] = {}


class ProviderSettings(Settings, frozen=True):
    """One endpoint. `headers` go with every request, `options` are members of the request body.

    `stream` False asks for whole replies; `wire`: switches of the server's. `script` (a file) or `replies` are what the
    protocol `scripted` answers.
    """

    protocol: str | None = None
    base_url: str | None = None
    api_key_env: str = ""
    key_command: str = ""
    headers: dict[str, str] = {}
    options: dict[str, object] = {}
    stream: bool | None = None
    wire: dict[str, object] = {}
    script: str = ""
    replies: tuple[dict[str, object], ...] = ()
    models: dict[str, ModelSettings] = {}


class Permissions(Settings, frozen=True):
    """Rules as text, e.g. "bash(git status)"."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class Extensions(Settings, frozen=True):
    rocks: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


class Tools(Settings, frozen=True):
    """`network`: commands in the sandbox reach it, unless a rule for `network` says otherwise. `isolate`: names (with
    `*`) of extensions' tools that run in a process of their own, which can be killed."""

    sandbox: Literal["auto", "off", "require"] = "auto"
    network: bool = True
    env_pass: tuple[str, ...] = ()
    fetch_private: bool = False
    isolate: tuple[str, ...] = ()


class Limits(Settings, frozen=True):
    """`steps` a turn; `budget_usd` 0: none; `repeat` identical calls before the loop guard."""

    steps: Count = 200
    budget_usd: Amount = 0
    repeat: Count = 3


class Network(Settings, frozen=True):
    idle_s: Seconds = 120
    connect_s: Seconds = 10
    ca_file: str = ""


class Screen(Settings, frozen=True):
    theme: str = "auto"
    leave: Literal["last", "all", "nothing"] = "last"


class Prompt(Settings, frozen=True):
    """`parts`: name of a part of the system prompt -> path of the replacement text."""

    parts: dict[str, str] = {}


class Compaction(Settings, frozen=True):
    auto: bool = True
    threshold: Annotated[float, Meta(gt=0, le=1)] = 0.8


class Config(Settings, frozen=True):
    """What is in force. `model` "" means: not chosen."""

    model: str = ""
    reasoning: str = ""
    mode: Mode = "ask"
    providers: dict[str, ProviderSettings] = {}
    permissions: Permissions = Permissions()
    extensions: Extensions = Extensions()
    extension: dict[str, dict[str, object]] = {}
    tools: Tools = Tools()
    limits: Limits = Limits()
    network: Network = Network()
    screen: Screen = Screen()
    keys: dict[str, str] = {}
    prompt: Prompt = Prompt()
    compaction: Compaction = Compaction()


ADDING: set[tuple[str, str]] = {
    ("permissions", "allow"), ("permissions", "ask"), ("permissions", "deny"),
    ("extensions", "rocks"), ("extensions", "paths"),
}  # fmt: skip
"""Lists to which a later layer adds. A project can add a rule; it cannot take away the person's deny."""
