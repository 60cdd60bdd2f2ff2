"""Whether the server is well."""

from typing import Literal

from turnkeeper.model.value import Value
from turnkeeper.model.version import __version__
from turnkeeper.server.call import PlainRequest
from turnkeeper.server.route import Route


class Health(Value):
    """That it is, and which version it is."""

    healthy: Literal[True]
    version: str


async def health(call: PlainRequest) -> Health:
    """Answer."""
    return Health(healthy=True, version=__version__)


ROUTES = (Route(method="GET", path="/global/health", operation="global.health", handler=health, answer=Health),)
