"""Transport: how an endpoint becomes a provider that can be asked. One connection pool for all of them."""

from typing import TYPE_CHECKING

from turnkeeper.model.version import __version__
from turnkeeper.providers.catalog import OFFLINE
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.offline import Offline
from turnkeeper.providers.provider import Provider

if TYPE_CHECKING:
    import httpx2


class Network:
    """Real providers over HTTP, and the offline one that needs none."""

    def __init__(self) -> None:
        self._client: httpx2.AsyncClient | None = None

    def provider(self, endpoint: Endpoint) -> Provider:
        """A provider for this endpoint."""
        if endpoint.protocol == OFFLINE.protocol:
            return Offline()
        # Imported and made when first needed: who works offline waits for neither.
        from turnkeeper.providers.http import HttpProvider, new_client

        if self._client is None:
            self._client = new_client(user_agent=f"turnkeeper/{__version__}")
        return HttpProvider(endpoint, self._client)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
