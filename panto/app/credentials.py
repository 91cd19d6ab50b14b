"""Keys: from the environment, from a command, or from `credentials.toml` (mode 0600).

A key leaves this file only through a `Key`, which says it when called and shows nothing when printed. Nothing else in
panto holds one, so that none can get into a log, a child process, the ledger or an export.
"""

from __future__ import annotations

import os
import subprocess
import tomllib
from collections.abc import Awaitable, Mapping
from pathlib import Path

from panto.app.config_edit import toml, write_atomically
from panto.app.settings import ProviderSettings
from panto.schema.errors import ConfigError, ProviderError

COMMAND_S = 30.0
"""How long a key_command may take: it may ask for a fingerprint or a passphrase."""


class Key:
    """One provider's key. Call it for the text ("" : none is configured); it is looked up once, at the first call."""

    def __init__(self, provider: str, settings: ProviderSettings, environ: Mapping[str, str], stored: str) -> None:
        self.provider = provider
        self._settings = settings
        self._environ = environ
        self._stored = stored
        self._value: str | None = None

    def __call__(self) -> Awaitable[str] | str:
        """The key, or how to wait for it. Raises ProviderError(auth), also while waiting, when its command fails."""
        if self._value is None and self._settings.key_command and not self._from_environment():
            return self._from_command()
        if self._value is None:
            self._value = self._from_environment() or self._stored
        return self._value

    def replace(self, stored: str) -> None:
        """Use this stored key from now on ("" none)."""
        self._stored, self._value = stored, None

    def __repr__(self) -> str:
        return f"Key({self.provider!r})"

    @property
    def source(self) -> str:
        """Where the key comes from, for people; "" if there is none."""
        if self._from_environment():
            return f"${self._settings.api_key_env}"
        if self._settings.key_command:
            return "key_command"
        return "credentials.toml" if self._stored else ""

    @property
    def missing(self) -> str:
        """Why there is no key although one is asked for; "" if there is one, or none is needed."""
        variable = self._settings.api_key_env
        if not variable or self.source:
            return ""
        return f"${variable} is not set and no key is stored"

    def known(self) -> tuple[str, ...]:
        """The texts to be masked wherever they turn up, without running a command."""
        found = (self._from_environment(), self._stored, self._value or "")
        return tuple(dict.fromkeys(text for text in found if text))

    def _from_environment(self) -> str:
        variable = self._settings.api_key_env
        return self._environ.get(variable, "").strip() if variable else ""

    async def _from_command(self) -> str:
        import asyncio

        if self._value is None:
            self._value = await asyncio.to_thread(self._ask_command)
        return self._value

    def _ask_command(self) -> str:
        command = self._settings.key_command
        hint = "run it yourself to see why"
        try:
            done = subprocess.run(
                command, shell=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_S, check=False
            )
        except subprocess.TimeoutExpired:
            said = f"did not answer within {COMMAND_S:.0f} s"
        except OSError as e:
            said = f"cannot be run: {e.strerror}"
        else:
            key = done.stdout.decode("utf-8", "replace").strip()
            if done.returncode == 0 and key:
                return key
            said = f"failed with exit code {done.returncode}" if done.returncode else "printed nothing"
        raise ProviderError("auth", f"key_command of provider {self.provider} {said}: {command}", hint=hint)


def read(file: Path | None) -> dict[str, str]:
    """Stored keys by provider. A file that is missing has none. Raises ConfigError if broken or open to others."""
    if file is None:
        return {}
    try:
        with file.open("rb") as source:
            _only_ours(file, os.fstat(source.fileno()).st_mode)
            table = tomllib.load(source)
    except FileNotFoundError:
        return {}
    except OSError as e:
        raise ConfigError(f"{file}: cannot be read: {e.strerror}", str(file)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        # The parser's own message could quote a key.
        hint = "panto login PROVIDER writes it anew"
        raise ConfigError(f"{file}: is no valid TOML; no stored key is used", str(file), hint=hint) from None
    entries = {name: entry.get("key") for name, entry in table.items() if isinstance(entry, dict)}
    return {name: key for name, key in entries.items() if isinstance(key, str) and key}


def store(file: Path | None, provider: str, key: str) -> None:
    """Adds or replaces one key, atomically, mode 0600. Raises ConfigError."""
    if file is None:
        raise ConfigError("there is no home folder to store a key in", "credentials.toml", hint="set PANTO_CONFIG_DIR")
    try:
        keys = read(file)
    except ConfigError:
        _set_aside(file)
        keys = {}
    keys[provider] = key
    _write(file, keys)


def forget(file: Path | None, provider: str) -> bool:
    """Takes one key out; False where none is stored. Raises ConfigError."""
    keys = read(file)
    if file is None or provider not in keys:
        return False
    del keys[provider]
    _write(file, keys)
    return True


def _write(file: Path, keys: Mapping[str, str]) -> None:
    lines = ["# Written by panto login. Keep it to yourself.\n"]
    for name, value in sorted(keys.items()):
        lines.append(f"\n[{toml(name)}]\nkey = {toml(value)}\n")
    write_atomically(file, "".join(lines).encode("utf-8"), 0o600)


def _only_ours(file: Path, mode: int) -> None:
    if os.name == "posix" and mode & 0o077:
        raise ConfigError(
            f"{file}: others can read it (mode {mode & 0o777:o}); no stored key is used",
            str(file), hint=f"chmod 600 {file}",
        )  # fmt: skip


def _set_aside(file: Path) -> None:
    """A file that cannot be used is kept under another name rather than lost."""
    try:
        os.chmod(file, 0o600)
        os.replace(file, file.with_name(file.name + ".broken"))
    except OSError as e:
        raise ConfigError(f"{file}: cannot be replaced: {e.strerror}", str(file)) from None
