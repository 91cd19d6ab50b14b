"""The catalogue of models: what is shipped, what the person configured, and which key each provider has."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import msgspec

from panto.app import local
from panto.app.config import SECRET
from panto.app.credentials import Key
from panto.app.ground import Ground
from panto.app.settings import ProviderSettings
from panto.schema.errors import UsageError

if TYPE_CHECKING:
    from panto.providers import Catalog
    from panto.providers.model import KeySource

SHIPPED = Path(__file__).resolve().parent.parent / "providers" / "models.toml"


TOUR = {"tour": {"protocol": "tour", "models": {"guide": {"id": "guide", "context": 200_000}}}}
"""The guide that the shipped extension `tour` brings: listed also where no extension is loaded."""
VENDORS = frozenset(
    f"{vendor}_API_KEY" for vendor in (
        "ANTHROPIC", "AZURE_OPENAI", "CEREBRAS", "COHERE", "DEEPSEEK", "FIREWORKS", "GEMINI", "GOOGLE", "GROQ", "HF",
        "MISTRAL", "MOONSHOT", "OPENAI", "OPENROUTER", "PERPLEXITY", "TOGETHER", "XAI", "ZAI",
    )
)  # fmt: skip
"""Variables that hold a model vendor's key by custom, configured here or not: no tool needs them."""


class Models:
    """The catalogue, and the keys that belong to it."""

    def __init__(self, ground: Ground) -> None:
        from panto.providers import Catalog, Http, NetworkSettings, Protocols

        network = ground.config.network
        self.ground = ground
        self.found: tuple[str, ...] = ()
        """Servers of this machine that were found and are not configured."""
        self.keys: dict[str, Key] = {}
        self.protocols = Protocols()
        self.protocols.register("tour", _no_tour)  # until its extension brings the real one
        self.http = Http(NetworkSettings(network.idle_s, network.connect_s, network.ca_file))
        self.tables = _tables(ground)
        self.catalog: Catalog = Catalog(
            self.tables,
            http=self.http,
            protocols=self.protocols,
            keys=self._source,
            usable=self._unusable,
        )

    def key(self, name: str, table: Mapping[str, Any]) -> Key:
        """A provider's key, whether or not there is one."""
        if name not in self.keys:
            self.keys[name] = self.ground.key(name, msgspec.convert(dict(table), ProviderSettings, strict=False))
        return self.keys[name]

    async def look_around(self) -> tuple[str, ...]:
        """Adds the model servers that run on this machine and are not configured; their names."""
        at = {table.get("base_url") for table in self.tables.values()}
        wanted = local.servers(self.ground.paths.environ)
        wanted = {name: url for name, url in wanted.items() if name not in self.tables and url not in at}
        found = await local.find(self.http, wanted)
        self.tables.update(found)
        self.found += tuple(found)
        return tuple(found)

    def renew(self, ground: Ground) -> None:
        """Take on other settings. Servers that were found and providers that extensions brought stay."""
        before, after = _tables(self.ground), _tables(ground)
        self.ground = ground
        for name in before.keys() | after.keys():
            if before.get(name) == after.get(name):
                continue
            if name in after:
                self.tables[name] = after[name]
            else:
                self.tables.pop(name, None)
            self.keys.pop(name, None)
            self.catalog.renew(name)

    def variables(self) -> frozenset[str]:
        """Names of the variables that hold keys: no child process may see them."""
        named = (table.get("api_key_env") for table in self.catalog.tables.values())
        return VENDORS | {name for name in named if isinstance(name, str) and name}

    def secrets(self) -> tuple[str, ...]:
        """The key texts that are known now, to be masked wherever they turn up."""
        keys = [self.key(name, table) for name, table in self.tables.items()]
        texts = [text for key in keys for text in key.known()]
        texts += [text for name in self.variables() if (text := self.ground.paths.environ.get(name, "").strip())]
        texts += self.ground.stored.values()  # of providers that are configured no longer, too
        for table in self.tables.values():
            texts += _in_headers(table.get("headers"))
            texts += _password(table.get("base_url"))
        for name in _PROXIES:
            texts += _password(self.ground.paths.environ.get(name) or self.ground.paths.environ.get(name.lower()))
        return tuple(dict.fromkeys(text for text in texts if text))

    def default(self) -> str:
        """The model to begin with: the one configured, else the first that has a key or is on this machine; or ""."""
        from panto.providers.http import is_local

        if self.ground.config.model:
            return self.ground.config.model
        for name, table in self.tables.items():
            here = is_local(urlsplit(str(table.get("base_url", ""))).hostname or "")
            if (here or self.key(name, table).source) and (alias := next(iter(self.catalog.specs(name)), "")):
                return f"{name}:{alias}"
        return ""

    def _source(self, name: str, table: Mapping[str, Any]) -> KeySource | None:
        key = self.key(name, table)
        return key if key.source or key.missing else None

    def _unusable(self, name: str, table: Mapping[str, Any]) -> str:
        return self.key(name, table).missing


def _no_tour(settings: object, http: object) -> NoReturn:
    raise UsageError("the tour is an extension, and no extension is loaded", "panto without --no-extensions loads it")


def _tables(ground: Ground) -> dict[str, Any]:
    """All provider tables of files: what is shipped, then the settings."""
    from panto.providers import layered

    return layered(shipped(), TOUR, _configured(ground))


def _configured(ground: Ground) -> dict[str, Any]:
    """The provider tables of the config; a script's path is relative to the file that names it."""
    out = {}
    for name, table in ground.loaded.tree.get("providers", {}).items():
        if "script" in table:
            source = ground.loaded.sources[("providers", name, "script")].rpartition(":")[0]
            table = table | {"script": str(Path(source).parent / Path(table["script"]).expanduser())}
        out[name] = table
    return out


def likely(ground: Ground) -> bool:
    """Whether there will be a model to begin with, as far as can be said without loading anything."""
    if ground.config.model:
        return True
    tables = {**shipped(), **ground.loaded.tree.get("providers", {})}
    names = (table.get("api_key_env", "") for table in tables.values())
    return bool(ground.stored) or any(ground.paths.environ.get(name) for name in names if name)


def shipped() -> dict[str, Any]:
    """The provider tables that come with panto."""
    try:
        tables: dict[str, Any] = tomllib.loads(SHIPPED.read_text("utf-8"))["providers"]
    except FileNotFoundError:
        return {}
    return tables


_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def _in_headers(headers: object) -> list[str]:
    """The values of headers whose names say that they are secret; of `Bearer KEY` the key."""
    found = headers.items() if isinstance(headers, Mapping) else ()
    return [str(value).split(" ")[-1] for name, value in found if SECRET.search(str(name))]


def _password(url: object) -> list[str]:
    """The password in an address, as it is written there; a plain word would be masked in every text that has it."""
    user, at, _ = str(url or "").partition("://")[2].rpartition("@")
    word = user.partition(":")[2]
    return [word] if at and "/" not in user and not word.isalpha() else []
