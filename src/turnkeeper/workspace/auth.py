"""Credentials: ``auth.json`` in the data directory, and which key is used for a provider.

The file has opencode's layout and only its owner may read it. A key is looked for in the environment first, then in
the configuration, then in ``auth.json``. None of these values shows its secret when it is printed.
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
    """A key a person pasted."""

    key: str
    metadata: JsonObject | None = None

    def __repr__(self) -> str:
        return "ApiKey(…)"


class OAuth(Value, tag_field="type", tag="oauth"):
    """Tokens of a login; ``expires`` is in milliseconds since 1970."""

    refresh: str
    access: str
    expires: int
    account_id: str | None = msgspec.field(default=None, name="accountId")

    def __repr__(self) -> str:
        return "OAuth(…)"


class WellKnown(Value, tag_field="type", tag="wellknown"):
    """A token for a host that publishes settings; ``key`` is the variable that will hold it."""

    key: str
    token: str

    def __repr__(self) -> str:
        return "WellKnown(…)"


Credential: TypeAlias = ApiKey | OAuth | WellKnown


class FoundKey(NamedTuple):
    """A key that was found, and where."""

    secret: str
    origin: str

    def __repr__(self) -> str:
        return f"Key(origin={self.origin!r})"


class AuthFile:
    """One auth.json. Changes are atomic, and those of two processes do not undo each other."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Credential]:
        """The credentials by provider. Entries of a kind we do not know are left out, but kept in the file."""
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
        """Keep a credential, in place of the one there was."""
        self._change(lambda entries: {**entries, provider_id: msgspec.to_builtins(credential)})

    def remove(self, provider_id: str) -> bool:
        """Forget a credential; False if there was none."""
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
        with _held(folder):
            content = msgspec.json.format(msgspec.json.encode(change(self._entries())), indent=2)
            with files.replacing(self.path, mode=files.PRIVATE) as file:
                file.write(content)


class Credentials(NamedTuple):
    """Everything a key may come from, but for the configuration."""

    environ: Mapping[str, str]
    stored: Mapping[str, Credential]

    def __repr__(self) -> str:
        return f"Credentials(stored={sorted(self.stored)})"

    def key(self, provider_id: str, variables: tuple[str, ...], configured: str | None) -> FoundKey | None:
        """The key for a provider: from the environment, else from the configuration, else from auth.json."""
        for name in variables:
            if secret := self.environ.get(name, "").strip():
                return FoundKey(secret, f"environment variable {name}")
        if configured:
            return FoundKey(configured, "configuration")
        match self.stored.get(provider_id):
            case ApiKey(key=secret):
                return FoundKey(secret, NAME)
            case OAuth(access=secret):
                return FoundKey(secret, NAME)
            case _:
                return None


class CredentialCache:
    """Reads the credentials of the person this process runs for, and again only when their file has changed."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._file: AuthFile | None = None
        self._seen: tuple[int, ...] = ()
        self._stored: Mapping[str, Credential] = {}

    def read(self) -> Credentials:
        """The credentials as they are now. Raises Invalid if the file is wrong."""
        self._file = self._file or file(self._environ)
        try:
            found = os.stat(self._file.path)
        except FileNotFoundError:
            self._seen, self._stored = (), {}
        else:
            # Whoever writes it puts a new file in its place.
            stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
            if stamp != self._seen:
                self._stored = self._file.read()
                self._seen = stamp
        return Credentials(self._environ, self._stored)


def credentials(environ: Mapping[str, str]) -> Credentials:
    """The credentials of the person this process runs for."""
    return Credentials(environ, file(environ).read())


def file(environ: Mapping[str, str]) -> AuthFile:
    """The auth.json of this program."""
    return AuthFile(paths.data(environ) / NAME)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """No other process changes the file meanwhile. The directory itself is locked, so no lock file is left behind."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
