"""Credentials: ``auth.json`` in the data directory, and the lookup of a provider's API key.

The file has opencode's format and only its owner may read it. A key is looked up in the environment, then in the
configuration, then in ``auth.json``. The ``repr`` of these values contains no secret.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec

from turnkeeper.core import flags
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.workspace import paths
from turnkeeper.workspace.private_json import PrivateJson

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
        self._file = PrivateJson(path, dict[str, object], {})

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._file.path

    def read(self) -> dict[str, Credential]:
        """The credentials by provider. Entries of an unknown type are left out, but stay in the file."""
        return _known(self._file.read(), str(self.path), "; log in again to replace it")

    def write(self, provider_id: str, credential: Credential) -> None:
        """Add or replace a provider's credential."""
        self._file.change(lambda entries: {**entries, provider_id: msgspec.to_builtins(credential)})

    def remove(self, provider_id: str) -> bool:
        """Remove a provider's credential; False if there is none."""
        if provider_id not in self._file.read():
            return False
        self._file.change(lambda entries: {name: entry for name, entry in entries.items() if name != provider_id})
        return True


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

    def read(self) -> Credentials:
        """The current credentials. Raises Invalid if the file is invalid."""
        self._file = self._file or file(self._environ)
        return Credentials(self._environ, _stored(self._environ, self._file))


def credentials(environ: Mapping[str, str]) -> Credentials:
    """The user's credentials."""
    return Credentials(environ, _stored(environ, file(environ)))


def file(environ: Mapping[str, str]) -> AuthFile:
    """The auth.json of this program."""
    return AuthFile(paths.data(environ) / NAME)


def _stored(environ: Mapping[str, str], stored: AuthFile) -> dict[str, Credential]:
    given = _given(environ)
    return stored.read() if given is None else given


def _given(environ: Mapping[str, str]) -> dict[str, Credential] | None:
    """The credentials in a variable, which replace those of the file. Raises Invalid."""
    for name in reversed(flags.AUTH_CONTENT.names):
        if environ.get(name):
            try:
                entries = msgspec.json.decode(environ[name], type=dict[str, object])
            except msgspec.MsgspecError as error:
                raise Invalid(f"{name}: is no content of {NAME}: {error}") from error
            return _known(entries, name, "")
    return None


def _known(entries: Mapping[str, object], where: str, advice: str) -> dict[str, Credential]:
    found: dict[str, Credential] = {}
    for provider_id, entry in entries.items():
        kind = entry.get("type") if isinstance(entry, dict) else None
        if kind in ("api", "oauth", "wellknown"):
            try:
                found[provider_id] = msgspec.convert(entry, Credential)
            except msgspec.ValidationError as error:
                raise Invalid(f"{where}: {provider_id}: {error}{advice}") from error
    return found
