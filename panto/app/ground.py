"""What every command stands on: places, settings in force, trust, keys. Read once, before anything is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from panto.app import config, credentials, trust
from panto.app.paths import Paths
from panto.app.settings import Config, ProviderSettings
from panto.schema.errors import ConfigError


@dataclass(frozen=True)
class Ground:
    """`problems` are to be shown, one line each; none of them stops anything. `options`: the command line's."""

    paths: Paths
    options: Mapping[str, str]
    loaded: config.Loaded
    trust: trust.Trust
    stored: dict[str, str]
    problems: tuple[ConfigError, ...]

    @property
    def config(self) -> Config:
        return self.loaded.config

    def key(self, provider: str, settings: ProviderSettings) -> credentials.Key:
        """The key of a provider, to be called by whoever sends the request."""
        return credentials.Key(provider, settings, self.paths.environ, self.stored.get(provider, ""))


def read(paths: Paths, options: Mapping[str, str]) -> Ground:
    """Reads the files and layers them; `options` are the command line's. Never raises for what a file says."""
    # No settings can make a folder trusted, so trust is looked at first.
    found = trust.look(paths)
    layers = [config.file_layer(paths.user_config)]
    if found.agreed:
        layers.append(config.file_layer(paths.project_config))
    layers += config.environment_layer(paths.environ)
    layers += config.option_layer(options)
    loaded = config.load(layers)
    problems = list(loaded.problems)
    stored: dict[str, str] = {}
    try:
        stored = credentials.read(paths.credentials)
    except ConfigError as e:
        problems.append(e)
    return Ground(paths, options, loaded, found, stored, tuple(problems))


def notices(ground: Ground) -> list[tuple[str, str]]:
    """What of the settings is not right: pairs of a line and the way out."""
    return [(problem.message, problem.hint) for problem in ground.problems]


def withheld(ground: Ground) -> str:
    """What the person should know about a project that is not trusted; "" where there is nothing to say."""
    found = ground.trust
    if not found.withheld:
        return ""
    first = found.items[0].path
    more = f" and {len(found.items) - 1} more" if len(found.items) > 1 else ""
    said = "changed since you agreed to it" if found.changed else "not trusted yet"
    return f"{found.folder} is {said}: {first}{more} {'are' if more else 'is'} not used"
