"""Endpoint: where a provider is reached, with which key, and how long we wait for it."""

import re
from typing import Final

from turnkeeper.model.value import JsonObject, Value

ERROR_BYTES_MAX = 16 * 1024
"""How much of an error's body is kept."""

_LOGIN: Final = re.compile(r"(?<=://)[^/?#]*@")
_QUERY: Final = re.compile(r"\?[^#]*")


class Timeouts(Value):
    """Time limits in seconds; None is no limit."""

    connect_s: float | None = 15.0
    """Until a connection is open."""
    write_s: float | None = 60.0
    """Until the provider takes more of a request."""
    first_byte_s: float | None = 300.0
    """Until an answer begins. A model that thinks first is silent for minutes; a lost connection is found sooner."""
    idle_s: float | None = 600.0
    """Between two pieces of an answer."""
    total_s: float | None = None
    """For a whole answer."""


class Endpoint(Value):
    """One way to one provider. ``options`` are the provider's own settings from the configuration."""

    protocol: str
    provider_id: str
    base_url: str | None = None
    """Without it the protocol's own address is used. The version belongs to it: ``https://host/v1``."""
    api_key: str | None = None
    key_required: bool = False
    """Whether a request without a key is refused before it is sent. A local server needs none."""
    headers: dict[str, str] = {}
    options: JsonObject = {}
    timeouts: Timeouts = Timeouts()

    @property
    def shown_url(self) -> str | None:
        """The base URL without a login and a query, for messages and records."""
        return without_secrets(self.base_url) if self.base_url else None

    def __repr__(self) -> str:
        """Never shows the key, nor headers, which may hold one."""
        return f"Endpoint({self.protocol!r}, {self.provider_id!r}, {self.shown_url!r})"


def without_secrets(url: str) -> str:
    """An address without user name, password and query, each of which may hold a key."""
    return _QUERY.sub("", _LOGIN.sub("", url))
