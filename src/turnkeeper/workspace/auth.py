"""Credentials: ``auth.json`` in the data directory, and the lookup of a provider's API key.

The file has opencode's format and only its owner may read it. A key is looked up in the environment, then in the
configuration, then in ``auth.json``. The ``repr`` of these values contains no secret.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.workspace import files, paths

NAME: Final = "auth.json"


class ApiKey(Value, tag_field="type", tag="api"):
    """An API key that the user entered."""

    key: str
    metadata: JsonObject | None = None

    def __repr__(self) -> str:
        return "ApiKey(…)"


class OAuth(Value, tag_field="type", tag="oauth"):
    """OAuth tokens; ``expires`` is in milliseconds since 1970."""

    refresh: str
    access: str
    expires: int
    account_id: str | None = msgspec.field(default=None, name="accountId")

    def __repr__(self) -> str:
        return "OAuth(…)"


class WellKnown(Value, tag_field="type", tag="wellknown"):
    """A token for a host that publishes settings; ``key`` is its environment variable."""

    key: str
    token: str

    def __repr__(self) -> str:
        return "WellKnown(…)"


Credential: TypeAlias = ApiKey | OAuth | WellKnown


class FoundKey(NamedTuple):
    """An API key and its origin."""

    secret: str
    origin: str

    def __repr__(self) -> str:
        return f"Key(origin={self.origin!r})"


class AuthFile:
    """One auth.json. Writes are atomic, and a lock serialises the writes of several processes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Credential]:
        """The credentials by provider. Entries of an unknown type are left out, but stay in the file."""
        found: dict[str, Credential] = {}
        for provider_id, entry in self._entries().items():
            kind = entry.get("type") if isinstance(entry, dict) else None
            if kind in ("api", "oauth", "wellknown"):
                try:
                    found[provider_id] = msgspec.convert(entry, Credential)
                except msgspec.ValidationError as error:
                    raise Invalid(f"{self.path}: {provider_id}: {error}; log in again to replace it") from error
        return found

    def write(self, provider_id: str, credential: Credential) -> None:
        """Add or replace a provider's credential."""
        self._change(lambda entries: {**entries, provider_id: msgspec.to_builtins(credential)})

    def remove(self, provider_id: str) -> bool:
        """Remove a provider's credential; False if there is none."""
        if provider_id not in self._entries():
            return False
        self._change(lambda entries: {name: entry for name, entry in entries.items() if name != provider_id})
        return True

    def _entries(self) -> dict[str, object]:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=dict[str, object])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            raise Invalid(f"{self.path}: cannot be read: {error}") from error

    def _change(self, change: Callable[[dict[str, object]], Mapping[str, object]]) -> None:
        folder = self.path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(folder):
            content = msgspec.json.format(msgspec.json.encode(change(self._entries())), indent=2)
            with files.replacing(self.path, mode=files.PRIVATE) as file:
                file.write(content)


class Credentials(NamedTuple):
    """The environment and the content of auth.json."""

    environ: Mapping[str, str]
    stored: Mapping[str, Credential]

    def __repr__(self) -> str:
        return f"Credentials(stored={sorted(self.stored)})"

    def key(self, provider_id: str, variables: tuple[str, ...], configured: str | None) -> FoundKey | None:
        """The API key of a provider: from the environment, else from the configuration, else from auth.json."""
        for name in variables:
            if secret := self.environ.get(name, "").strip():
                return FoundKey(secret, f"environment variable {name}")
        if configured:
            return FoundKey(configured, "configuration")
        match self.stored.get(provider_id):
            case ApiKey(key=secret) | OAuth(access=secret):
                return FoundKey(secret, NAME)
            case _:
                return None


class CredentialCache:
    """Caches the user's credentials until auth.json changes."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._file: AuthFile | None = None
        self._seen: tuple[int, ...] | None = None
        self._stored: Mapping[str, Credential] = {}

    def read(self) -> Credentials:
        """The current credentials. Raises Invalid if the file is invalid."""
        self._file = self._file or file(self._environ)
        stamp = files.stamp(self._file.path)
        if stamp is None or stamp != self._seen:
            self._stored, self._seen = self._file.read(), stamp
        return Credentials(self._environ, self._stored)


def credentials(environ: Mapping[str, str]) -> Credentials:
    """The user's credentials."""
    return Credentials(environ, file(environ).read())


def file(environ: Mapping[str, str]) -> AuthFile:
    """The auth.json of this program."""
    return AuthFile(paths.data(environ) / NAME)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a directory against other processes. Locking the directory itself needs no lock file."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
