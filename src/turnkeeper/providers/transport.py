"""Transport: how an endpoint becomes a provider that can be asked. One connection pool for all of them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from turnkeeper.model.version import __version__
from turnkeeper.providers.catalog import OFFLINE
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.provider import Provider

if TYPE_CHECKING:
    import httpx2

PAUSE_VARIABLE: Final = "TURNKEEPER_OFFLINE_PAUSE_MS"


class Network:
    """Real providers over HTTP, and the offline one that needs none."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = environ or {}
        self._client: httpx2.AsyncClient | None = None

    def provider(self, endpoint: Endpoint) -> Provider:
        """A provider for this endpoint."""
        # Imported and made when first needed: who works offline waits for no network, and the other way round.
        if endpoint.protocol == OFFLINE.protocol:
            from turnkeeper.providers.offline import Offline

            return Offline(pause_s=self._pause_s())
        from turnkeeper.providers.http import HttpProvider, new_client

        if self._client is None:
            self._client = new_client(user_agent=f"turnkeeper/{__version__}")
        return HttpProvider(endpoint, self._client)

    def _pause_s(self) -> float:
        """How slowly the offline model speaks, for those who want to watch."""
        try:
            return max(0.0, float(self._environ.get(PAUSE_VARIABLE) or 0)) / 1000
        except ValueError:
            return 0.0

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
