"""Transport: how an endpoint becomes a provider that can be asked. One connection pool for all of them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from turnkeeper.model.version import __version__
from turnkeeper.providers.catalog import OFFLINE
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.offline import Offline
from turnkeeper.providers.provider import Provider
from turnkeeper.run.means import Transport

if TYPE_CHECKING:
    import httpx2


@asynccontextmanager
async def network() -> AsyncIterator[Transport]:
    """Real providers over HTTP, and the offline one that needs none."""
    clients: list[httpx2.AsyncClient] = []

    def provider(endpoint: Endpoint) -> Provider:
        if endpoint.protocol == OFFLINE.protocol:
            return Offline()
        # Imported and made when first needed: who works offline waits for neither.
        from turnkeeper.providers.http import HttpProvider, new_client

        if not clients:
            clients.append(new_client(user_agent=f"turnkeeper/{__version__}"))
        return HttpProvider(endpoint, clients[0])

    async with AsyncExitStack() as stack:
        stack.push_async_callback(_close, clients)
        yield provider


async def _close(clients: "list[httpx2.AsyncClient]") -> None:
    for client in clients:
        await client.aclose()
