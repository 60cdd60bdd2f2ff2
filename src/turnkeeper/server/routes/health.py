"""Health and readiness: whether the server lives, and whether it can do its work."""

from typing import Literal

import anyio

from turnkeeper.core.limits import READY_S
from turnkeeper.model.value import Value
from turnkeeper.model.version import __version__
from turnkeeper.server.request import PlainRequest
from turnkeeper.server.route import route
from turnkeeper.store.engine import StoreUnavailable


class Health(Value):
    """The body of a health check."""

    healthy: Literal[True]
    version: str


async def health(call: PlainRequest) -> Health:
    """Health check, with the version of the server."""
    return Health(healthy=True, version=__version__)


class Ready(Value):
    """The body of a readiness check."""

    ready: Literal[True]
    runs: bool
    """Whether this server runs sessions itself. Else workers do."""


async def ready(call: PlainRequest) -> Ready:
    """Readiness check: whether the store can be read now. Answered with 503 if not."""
    try:
        with anyio.fail_after(READY_S):
            await call.turnkeeper.store.engine.version()
    except TimeoutError as error:
        raise StoreUnavailable(f"the store has not answered within {READY_S:g} s") from error
    return Ready(ready=True, runs=call.service.options.runs)


ROUTES = (
    route("GET", "/global/health", "global.health", health),
    route("GET", "/global/ready", "global.ready", ready),
)
