"""Endpoint: where a provider is reached, with which key, and how long we wait for it."""

from turnkeeper.model.value import JsonObject, Value

ERROR_BYTES_MAX = 16 * 1024
"""How much of an error's body is kept."""


class Timeouts(Value):
    """Seconds; None waits for ever. A stream that is silent for ``idle_s`` is broken off, and so on."""

    connect_s: float | None = 30.0
    first_byte_s: float | None = 300.0
    idle_s: float | None = 600.0
    total_s: float | None = None


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

    def __repr__(self) -> str:
        """Never shows the key, nor headers, which may hold one."""
        return f"Endpoint({self.protocol!r}, {self.provider_id!r}, {self.base_url!r})"
