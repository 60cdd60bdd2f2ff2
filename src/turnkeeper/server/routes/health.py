"""Health check."""

from typing import Literal

from turnkeeper.model.value import Value
from turnkeeper.model.version import __version__
from turnkeeper.server.request import PlainRequest
from turnkeeper.server.route import Route


class Health(Value):
    """The body of a health check."""

    healthy: Literal[True]
    version: str


async def health(call: PlainRequest) -> Health:
    """Health check, with the version of the server."""
    return Health(healthy=True, version=__version__)


ROUTES = (Route(method="GET", path="/global/health", operation="global.health", handler=health, answer=Health),)
