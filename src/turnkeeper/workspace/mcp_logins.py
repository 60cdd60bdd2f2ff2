"""Logins at MCP servers: tokens and registrations, in a file that only its owner may read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from turnkeeper.model.value import JsonObject, Value
from turnkeeper.workspace import paths
from turnkeeper.workspace.private_json import PrivateJson

NAME: Final = "mcp-auth.json"


class McpLogin(Value):
    """The registration and tokens for one address. The objects have the shapes of OAuth."""

    client: JsonObject = {}
    """The registration of this program there."""
    tokens: JsonObject | None = None
    """The tokens; None if the program is registered and not logged in."""
    expires: float | None = None
    """Expiry of the access token, in seconds since 1970."""
    metadata: JsonObject | None = None
    """The metadata of the authorization server, with the address where tokens are renewed."""
    resource: JsonObject | None = None
    """The metadata of the MCP server as a protected resource."""

    def __repr__(self) -> str:
        return "McpLogin(…)"


class McpLogins:
    """One mcp-auth.json: logins by address, so that a token is sent to no other address."""

    def __init__(self, path: Path) -> None:
        self._file = PrivateJson(path, dict[str, object], {})

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "McpLogins":
        """The logins of this program."""
        return cls(paths.data(environ) / NAME)

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._file.path

    def read(self, url: str) -> McpLogin | None:
        """The login at an address. Raises Invalid if the file is damaged; a damaged entry counts as missing."""
        entry = self._file.read().get(url)
        try:
            return msgspec.convert(entry, McpLogin) if entry is not None else None
        except msgspec.ValidationError:
            return None

    def write(self, url: str, login: McpLogin) -> None:
        """Add or replace the login at an address."""
        self._file.change(lambda entries: {**entries, url: msgspec.to_builtins(login)})

    def remove(self, url: str) -> bool:
        """Remove the login at an address; False if there is none."""
        if url not in self._file.read():
            return False
        self._file.change(lambda entries: {key: entry for key, entry in entries.items() if key != url})
        return True
