"""Models as data: from the tables of the shipped file and the person's config to a model ready to be asked.

The tables are the config's `[providers.NAME]`, already read from TOML by whoever hands them in. Beyond the members of
the outer interface a provider's table may hold `wire` (switches of its protocol), `stream = false`, and for `scripted`
either `script` (a path) or `replies`; a model's table `aliases`, `tools`, `forced_tool`, `wire` and `price.tiers`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from panto.providers.http import Http, is_local
from panto.providers.model import KeySource, Model, ModelSpec, Price, ProviderSettings, Tier
from panto.providers.protocols import Protocols
from panto.providers.provider import Provider
from panto.providers.wire import host_of, merged
from panto.schema.errors import PantoError, UsageError
from panto.schema.queries import ModelRow

_WINDOW_SETTINGS = {  # by a local server's usual port
    "11434": "OLLAMA_CONTEXT_LENGTH (or num_ctx in the Modelfile)",
    "8080": "--ctx-size (-c) of llama-server",
    "1234": "the context length in LM Studio's model settings",
    "8000": "--max-model-len of vLLM",
}
_ASKABLE = ("openai_chat", "openai_responses")
Tables = Mapping[str, Mapping[str, Any]]
"""Provider name -> its table."""


def layered(*layers: Tables) -> dict[str, dict[str, Any]]:
    """Provider tables over each other, later ones win member by member."""
    out: dict[str, Any] = {}
    for layer in layers:
        out = merged(out, layer)
    return out


class Catalog:
    """All providers and models that are known.

    `keys(name, table)` gives a provider's key source, or None where it needs none; `usable(name, table)` says why a
    provider cannot be used now ("" if it can); both are asked when needed.
    """

    def __init__(
        self,
        tables: Tables,
        *,
        http: Http | None = None,
        protocols: Protocols | None = None,
        keys: Callable[[str, Mapping[str, Any]], KeySource | None] = lambda name, table: None,
        usable: Callable[[str, Mapping[str, Any]], str] = lambda name, table: "",
    ) -> None:
        self.tables = tables
        self.http = http or Http()
        self.protocols = protocols or Protocols()
        self._keys = keys
        self._usable = usable
        self._providers: dict[str, Provider] = {}
        self._specs: dict[str, dict[str, ModelSpec]] = {}
        self._by_id: dict[str, dict[str, ModelSpec]] = {}  # what the providers look into: it may grow
        self._measured: set[str] = set()

    def resolve(self, label: str) -> Model:
        """The model named `provider:alias` (or an alias that only one provider has).

        Raises UsageError with the nearest names. A provider without a list of models takes any id.
        """
        name, colon, alias = label.partition(":")
        if not colon or name not in self.tables:
            name, alias = self._find(label)
        specs = self.specs(name)
        spec = specs.get(alias) or next((s for s in specs.values() if alias in (s.id, *s.aliases)), None)
        if spec is None:
            if specs or not alias:
                raise self._unknown(f"{name}:{alias}")
            spec = ModelSpec(alias)
        spec = self._ids(name).get(spec.id, spec)
        return Model(f"{name}:{alias}", self.provider(name), spec, self._window_setting(name))

    def _window_setting(self, name: str) -> str:
        host, _, port = host_of(str(self.tables[name].get("base_url", ""))).rpartition(":")
        return _WINDOW_SETTINGS.get(port, "the server's context size") if is_local(host or port) else ""

    def _find(self, label: str) -> tuple[str, str]:
        found = [
            (name, alias)
            for name in self.tables
            for alias, spec in self.specs(name).items()
            if label in (alias, spec.id, *spec.aliases)
        ]
        if len({name for name, _ in found}) == 1:
            return found[0]
        if not found:
            raise self._unknown(label)
        labels = ", ".join(f"{name}:{alias}" for name, alias in found)
        raise UsageError(f"several providers have a model {label!r}", f"Name one of: {labels}.")

    def _unknown(self, label: str) -> UsageError:
        from difflib import get_close_matches  # only on the way to an error

        labels = [f"{name}:{alias}" for name in self.tables for alias in self.specs(name)]
        near = get_close_matches(label, labels, 3, 0.5)
        if not near:
            tail = label.rpartition(":")[2]
            near = [one for one in labels if tail and tail in one][:3]
        hint = f"Did you mean {' or '.join(near)}?" if near else "`panto models` lists what there is."
        return UsageError(f"there is no model {label!r}", hint)

    def provider(self, name: str) -> Provider:
        """The provider with this name; the same object each time. Raises UsageError."""
        if name not in self._providers:
            if name not in self.tables:
                from difflib import get_close_matches

                near = get_close_matches(name, list(self.tables), 1)
                raise UsageError(f"there is no provider {name!r}", f"Did you mean {near[0]}?" if near else "")
            self._providers[name] = self.protocols.make(self._settings(name), self.http)
        return self._providers[name]

    def renew(self, name: str) -> None:
        """Make the provider anew when it is next asked for: its table or its key has changed."""
        self._providers.pop(name, None)

    def _settings(self, name: str) -> ProviderSettings:
        table = self.tables[name]
        return ProviderSettings(
            name=name,
            protocol=str(table.get("protocol", "openai_chat")),
            base_url=str(table.get("base_url", "")),
            key=self._keys(name, table),
            headers={str(k): str(v) for k, v in dict(table.get("headers", {})).items()},
            options=dict(table.get("options", {})),
            stream=bool(table.get("stream", True)),
            wire={**table.get("wire", {}), **{k: table[k] for k in ("script", "replies") if k in table}},
            specs=self._ids(name),
        )

    def specs(self, name: str) -> Mapping[str, ModelSpec]:
        """A provider's models by alias."""
        if name not in self._specs:
            models = self.tables.get(name, {}).get("models", {})
            self._specs[name] = {alias: spec_of(alias, table) for alias, table in models.items()}
        return self._specs[name]

    def _ids(self, name: str) -> dict[str, ModelSpec]:
        if name not in self._by_id:
            self._by_id[name] = {spec.id: spec for spec in self.specs(name).values()}
        return self._by_id[name]

    async def measured(self, label: str) -> Model:
        """`resolve`, with what the server itself says of the model where the tables do not say it, or say too much.

        Asked once a model: a local server for its allocated window, any other for sizes that are not known. Nobody has
        to answer; then the model is as the tables have it. Raises UsageError as `resolve` does.
        """
        model = self.resolve(label)
        local = is_local(host_of(str(self.tables[model.provider.name].get("base_url", ""))).rsplit(":", 1)[0])
        if model.provider.protocol not in _ASKABLE or (model.spec.context and not local):
            return model
        if label not in self._measured:
            await self._measure(model, local)
            self._measured.add(label)
        return self.resolve(label)

    async def _measure(self, model: Model, local: bool) -> None:
        from panto.providers import probe  # most models are known

        name, spec = model.provider.name, model.spec
        base = str(self.tables[name].get("base_url", ""))
        headers = await self._headers(name)
        listed = await probe.models(self.http, base, headers)
        found = next((one for one in listed if one.id == spec.id), probe.Found(spec.id))
        size = found.context
        if local and (allocated := await probe.window(self.http, base, spec.id, headers)):
            size = allocated
        known = [n for n in (spec.context, size) if n]
        self._ids(name)[spec.id] = replace(
            spec,
            context=min(known, default=0),
            max_output=spec.max_output or found.max_output,
            price=spec.price or found.price,
            images=spec.images or bool(found.images),
        )

    async def _headers(self, name: str) -> dict[str, str]:
        """The headers of a question to the provider itself, key included, where it can be had."""
        table = self.tables[name]
        headers = {str(k): str(v) for k, v in dict(table.get("headers", {})).items()}
        source = self._keys(name, table)
        if source is not None:
            try:
                key = source()
                text = (await key if inspect.isawaitable(key) else key).strip()
            except (OSError, PantoError):
                return headers
            if text.isascii() and text:
                headers |= {"authorization": f"Bearer {text}"}
        return headers

    def rows(self, words: str = "", limit: int = 200) -> tuple[ModelRow, ...]:
        """The models whose label or id holds all of the words, usable ones first."""
        wanted = words.lower().split()
        rows = []
        for name, table in self.tables.items():
            why = self._usable(name, table)
            for alias, spec in self.specs(name).items():
                text = f"{name}:{alias} {spec.id}".lower()
                if all(word in text for word in wanted):
                    rows.append(_row(name, alias, spec, why))
        rows.sort(key=lambda row: bool(row.usable))
        return tuple(rows[:limit])


def _row(name: str, alias: str, spec: ModelSpec, why: str) -> ModelRow:
    return ModelRow(
        label=f"{name}:{alias}",
        id=spec.id,
        provider=name,
        context=spec.context,
        price_input=spec.price.input if spec.price else None,
        price_output=spec.price.output if spec.price else None,
        reasoning=spec.reasoning,
        images=spec.images,
        usable=why,
    )


def spec_of(alias: str, table: Mapping[str, Any]) -> ModelSpec:
    """A model from its table (see cli.md); unknown members are ignored here, the config says them."""
    price = table.get("price")
    return ModelSpec(
        id=str(table.get("id", alias)),
        context=int(table.get("context", 0)),
        max_output=int(table.get("max_output", 0)),
        price=_price(price) if price else None,
        images=bool(table.get("images", False)),
        tools=bool(table.get("tools", True)),
        reasoning=tuple(table.get("reasoning", ())),
        forced_tool=bool(table.get("forced_tool", True)),
        aliases=tuple(table.get("aliases", ())),
        wire=dict(table.get("wire", {})),
    )


def _price(table: Mapping[str, Any]) -> Price:
    tiers = tuple(Tier(**tier) for tier in table.get("tiers", ()))
    return Price(
        table.get("input", 0), table.get("output", 0), table.get("cache_read"), table.get("cache_write"), tiers
    )
