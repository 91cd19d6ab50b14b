"""Which wire protocols there are: the built-in ones, loaded when first spoken, and those that extensions register."""

from __future__ import annotations

from collections.abc import Callable

from panto.providers.http import Http
from panto.providers.model import ProviderSettings
from panto.providers.provider import Provider
from panto.schema.errors import UsageError

Factory = Callable[[ProviderSettings, Http], Provider]
"""Makes the provider of one configured endpoint; does no I/O."""


def _openai_chat(settings: ProviderSettings, http: Http) -> Provider:
    from panto.providers.endpoint import Endpoint
    from panto.providers.openai_chat import OpenAIChat

    return Endpoint(settings, OpenAIChat(settings), http)


def _anthropic_messages(settings: ProviderSettings, http: Http) -> Provider:
    from panto.providers.anthropic_messages import AnthropicMessages
    from panto.providers.endpoint import Endpoint

    return Endpoint(settings, AnthropicMessages(settings), http)


def _openai_responses(settings: ProviderSettings, http: Http) -> Provider:
    from panto.providers.endpoint import Endpoint
    from panto.providers.openai_responses import OpenAIResponses

    return Endpoint(settings, OpenAIResponses(settings), http)


def _google_generate(settings: ProviderSettings, http: Http) -> Provider:
    from panto.providers.endpoint import Endpoint
    from panto.providers.google_generate import GoogleGenerate

    return Endpoint(settings, GoogleGenerate(settings), http)


def _scripted(settings: ProviderSettings, http: Http) -> Provider:
    from panto.providers.scripted import Scripted, load

    path = settings.wire.get("script")
    if path is None:
        return Scripted(settings.wire.get("replies", []), name=settings.name)
    from pathlib import Path

    try:
        text = Path(str(path)).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the script of provider {settings.name} cannot be read: {error}") from None
    return load(text, name=settings.name)


class Protocols:
    """Protocol name -> factory. One for a process or a library user; nothing is global."""

    def __init__(self) -> None:
        self._built_in: dict[str, Factory] = {
            "openai_chat": _openai_chat,
            "anthropic_messages": _anthropic_messages,
            "openai_responses": _openai_responses,
            "google_generate": _google_generate,
            "scripted": _scripted,
        }
        self._added: dict[str, Factory] = {}

    def register(self, name: str, factory: Factory) -> None:
        """Add a protocol (or replace an added one). Raises UsageError for a built-in's name."""
        if name in self._built_in:
            raise UsageError(f"the protocol {name} is built in and cannot be replaced")
        self._added[name] = factory

    def withdraw(self, name: str) -> None:
        """Take an added protocol away; unknown names are ignored."""
        self._added.pop(name, None)

    def names(self) -> tuple[str, ...]:
        """All names, in alphabetical order."""
        return tuple(sorted((*self._built_in, *self._added)))

    def make(self, settings: ProviderSettings, http: Http) -> Provider:
        """A provider for these settings. Raises UsageError, with the nearest name, for an unknown protocol."""
        factory = self._built_in.get(settings.protocol) or self._added.get(settings.protocol)
        if factory is None:
            from difflib import get_close_matches  # only on the way to an error

            near = get_close_matches(settings.protocol, self.names(), 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(self.names())}."
            raise UsageError(f"provider {settings.name} names the unknown protocol {settings.protocol!r}", hint)
        return factory(settings, http)
