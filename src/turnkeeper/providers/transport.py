"""Transport: makes the provider of an endpoint. All HTTP providers share one connection pool."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from turnkeeper.core import flags
from turnkeeper.model.version import __version__
from turnkeeper.providers.catalog import OFFLINE
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.provider import Provider

if TYPE_CHECKING:
    import httpx2

[PAUSE_VARIABLE] = flags.OFFLINE_PAUSE.names


class Network:
    """Makes HTTP providers and the offline provider."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = environ or {}
        self._client: httpx2.AsyncClient | None = None

    def provider(self, endpoint: Endpoint) -> Provider:
        """The provider of an endpoint."""
        # Imported on first use: either provider is useless to users of the other and takes time to load.
        if endpoint.protocol == OFFLINE.protocol:
            from turnkeeper.providers.offline import Offline

            return Offline(pause_s=self.pause_s)
        from turnkeeper.providers.http import HttpProvider, new_client

        if self._client is None:
            self._client = new_client(user_agent=f"turnkeeper/{__version__}")
        return HttpProvider(endpoint, self._client)

    @property
    def pause_s(self) -> float:
        """The pause before each event of the offline model, so that people can watch."""
        try:
            return max(0.0, float(self._environ.get(PAUSE_VARIABLE) or 0)) / 1000
        except ValueError:
            return 0.0

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
