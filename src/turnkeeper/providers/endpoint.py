"""Endpoint: the base URL, API key, headers and timeouts of a provider."""

import re
from typing import Final

from turnkeeper.model.value import JsonObject, Value

ERROR_BYTES_MAX = 16 * 1024
"""Maximum number of bytes read from the body of an error."""

_LOGIN: Final = re.compile(r"(?<=://)[^/?#]*@")
_QUERY: Final = re.compile(r"\?[^#]*")


class Timeouts(Value):
    """Timeouts in seconds; None is no timeout."""

    connect_s: float | None = 15.0
    """For opening a connection."""
    write_s: float | None = 60.0
    """For sending one piece of a request."""
    first_byte_s: float | None = 300.0
    """Until an answer begins. A reasoning model may send nothing for minutes; a lost connection is detected sooner."""
    idle_s: float | None = 600.0
    """Between two chunks of an answer."""
    total_s: float | None = None
    """For a whole answer."""


class Endpoint(Value):
    """How to reach one provider. ``options`` are the provider's own settings from the configuration."""

    protocol: str
    provider_id: str
    base_url: str | None = None
    """The URL with the API version, as ``https://host/v1``; None for the base URL of the codec."""
    api_key: str | None = None
    key_required: bool = False
    """Whether a request without an API key is refused before it is sent. A local server needs no key."""
    headers: dict[str, str] = {}
    options: JsonObject = {}
    timeouts: Timeouts = Timeouts()

    @property
    def shown_url(self) -> str | None:
        """The base URL without login and query, for messages and logs."""
        return without_secrets(self.base_url) if self.base_url else None

    def __repr__(self) -> str:
        """Leaves out the API key and the headers, which may hold one."""
        return f"Endpoint({self.protocol!r}, {self.provider_id!r}, {self.shown_url!r})"


def without_secrets(url: str) -> str:
    """A URL without user name, password and query, each of which may hold a key."""
    return _QUERY.sub("", _LOGIN.sub("", url))
