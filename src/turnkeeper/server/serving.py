"""Serving: a socket, a store and an application, from start to stop."""

import gc
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

from turnkeeper.model.refusal import Conflict, Forbidden, Invalid, Refusal
from turnkeeper.server import routes
from turnkeeper.server.app import App
from turnkeeper.server.gate import is_loopback
from turnkeeper.server.http_server import HttpServer, limits
from turnkeeper.server.service import ServerOptions, Service

if TYPE_CHECKING:
    from turnkeeper.run.recover import Left

log = logging.getLogger(__name__)

PORT_MAX: Final = 65_535

REQUESTS_S: Final = 5
"""Time for requests that are under way when the server stops. Then they are cancelled."""

PAUSE_S: Final = 0.01
"""How long what is loaded beside the first requests lets the very first one go ahead."""

LOADED: Final = (
    "turnkeeper.server.catalogue",
    "turnkeeper.server.streams.hub",
    "turnkeeper.run.boundary",
    "turnkeeper.run.compact",
    "turnkeeper.run.prepare",
    "turnkeeper.run.runtime",
    "turnkeeper.sessions.prompt",
    *(f"{routes.__name__}.{file}" for file in routes.FILES),
    "httpx2",
    "turnkeeper.providers.http",
)
"""What the first prompt needs, in an order in which no step takes long."""


COLLECTED_OBJECTS: Final = 10_000
"""So many objects more than there were before have the garbage collector look."""


def check(options: ServerOptions, *, insecure: bool = False) -> None:
    """Refuse to serve everybody without a password, unless that is what is wanted."""
    if options.password is None and not insecure and not is_loopback(options.hostname):
        raise Forbidden(
            f"{options.hostname} can be reached by others, who could then run commands here; set "
            "OPENCODE_SERVER_PASSWORD, or add --insecure if that is what you want"
        )


def listen(hostname: str, port: int) -> socket.socket:
    """A socket that listens. Raises Conflict if the port is taken, Invalid if there is no such host."""
    if not 0 <= port <= PORT_MAX:
        raise Invalid(f"a port is a number up to {PORT_MAX}, not {port}")
    try:
        family, kind, _, _, address = socket.getaddrinfo(hostname.strip("[]"), port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise Invalid(f"{hostname!r} is no place to listen: {error}") from error
    # The protocol is named: asyncio sends small packets at once only on sockets that say they are TCP, and a client
    # would wait 40 ms for the second of two.
    bound = socket.socket(family, kind, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
        bound.listen(2048)
    except OSError as error:
        bound.close()
        raise Conflict(
            f"port {port} of {hostname} cannot be had: {error.strerror}; choose another with --port, or 0 for any"
        ) from error
    bound.setblocking(False)
    return bound


def address(bound: socket.socket) -> str:
    """Where a socket can be called."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@asynccontextmanager
async def serving(service: Service, bound: socket.socket, *, requests_s: float = REQUESTS_S) -> AsyncIterator[App]:
    """Serve while the scope is open. Leaving it stops turns, ends streams and waits for requests that are under way.

    Each of these has a deadline: ``Turnkeeper.stop`` its own, requests ``requests_s``.
    """
    app = App(service, routes.load)
    server = HttpServer(app, limits())
    await server.open(bound)
    async with anyio.create_task_group() as group:
        group.start_soon(server.watch)
        try:
            yield app
        finally:
            with anyio.CancelScope(shield=True):
                # Turns first, so that their last events are recorded and published; then the streams that carry them.
                server.refuse_connections()
                await service.turnkeeper.stop()
                service.close()
                await server.close(requests_s)
            group.cancel_scope.cancel()


async def settle_in(app: App, service: Service, left: Sequence["Left"] = ()) -> None:
    """Load what the first prompt will need, then run on what dead processes left and may go on."""
    await anyio.sleep(PAUSE_S)
    try:
        await _load(app, service)
    except Exception:
        # The top of a background job: whoever needs what could not be loaded will be told.
        log.exception("not all that turns need could be loaded")
    # What is loaded now stays for good, and most of what comes and goes cannot hold itself: to look through the first
    # again and again for what of the second does would take longer than many a request.
    gc.freeze()
    gc.set_threshold(COLLECTED_OBJECTS, *gc.get_threshold()[1:])
    if left:
        log.warning("%d sessions that a dead process left open were looked after", len(left))
    await service.turnkeeper.resume_taken_over(left)


async def _load(app: App, service: Service) -> None:
    for name in LOADED:
        await anyio.lowlevel.checkpoint()  # Whoever calls meanwhile is answered between two steps.
        import_module(name)
    app.load()
    with suppress(Refusal):  # The first prompt will be told.
        await service.turnkeeper.runtime.preload(service.directory)
