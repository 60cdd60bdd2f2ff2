"""Serving: a socket, a store and an application, from start to stop."""

import errno
import gc
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

from turnkeeper.core import flags
from turnkeeper.model.refusal import Conflict, Forbidden, Invalid, Refusal
from turnkeeper.server import routes
from turnkeeper.server.app import App
from turnkeeper.server.gate import is_loopback
from turnkeeper.server.http_server import HttpServer, limits
from turnkeeper.server.service import ServerOptions, Service
from turnkeeper.store.engine import EngineError

if TYPE_CHECKING:
    from turnkeeper.run.recover import Left

log = logging.getLogger(__name__)

PORT_MAX: Final = 65_535

REQUESTS_S: Final = 5
"""Time for running requests to finish when the server stops; then they are cancelled."""

SHARES_S: Final = 1.0
"""Interval of polling for shares on other hosts, in seconds."""

PAUSE_S: Final = 0.01
"""Delay before modules are loaded in the background, so that the first request is answered first."""

FILES_RETRY_S: Final = 1.0
"""Interval of attempts to load modules while no file can be opened, in seconds."""

LOADED: Final = (
    "turnkeeper.server.catalogue",
    "turnkeeper.server.streams.hub",
    "turnkeeper.run.boundary",
    "turnkeeper.run.compact",
    "turnkeeper.run.ownership",
    "turnkeeper.run.prepare",
    "turnkeeper.run.runtime",
    "turnkeeper.sessions.prompt",
    *(f"{routes.__name__}.{file}" for file in routes.FILES),
    "httpx2",
    "turnkeeper.providers.http",
)
"""Modules that the first prompt needs, ordered so that requests are answered between two imports."""


COLLECTED_OBJECTS: Final = 10_000
"""Allocated objects that trigger a garbage collection."""


def check(options: ServerOptions, *, insecure: bool = False) -> None:
    """Refuse to serve other machines without a password, unless ``insecure`` is set."""
    if options.password is None and not insecure and not is_loopback(options.hostname):
        raise Forbidden(
            f"{options.hostname} can be reached by others, who could then run commands here; set "
            "OPENCODE_SERVER_PASSWORD, or add --insecure if that is what you want"
        )


def listen(hostname: str, port: int) -> socket.socket:
    """A listening socket. Raises Conflict if the port is taken, Invalid if the host is unknown."""
    if not 0 <= port <= PORT_MAX:
        raise Invalid(f"a port is a number up to {PORT_MAX}, not {port}")
    try:
        family, kind, _, _, address = socket.getaddrinfo(hostname.strip("[]"), port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise Invalid(f"{hostname!r} cannot be listened on: {error}") from error
    # The protocol is named: asyncio sets TCP_NODELAY only on sockets whose protocol is TCP. Without it a client waits
    # 40 ms for the second of two small packets.
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
    """The URL of a listening socket."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def address_here(bound: socket.socket) -> str:
    """The URL under which a listening socket is reached on this machine."""
    return address(bound).replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


@asynccontextmanager
async def serving(service: Service, bound: socket.socket, *, requests_s: float = REQUESTS_S) -> AsyncIterator[App]:
    """Serve while the scope is open. Leaving it stops turns, ends streams and waits for running requests.

    Each of these steps has a deadline: ``Turnkeeper.stop`` its own, requests ``requests_s``.
    """
    app = App(service, routes.load)
    server = HttpServer(app, limits())
    await server.open(bound)
    async with anyio.create_task_group() as group:
        group.start_soon(server.watch)
        group.start_soon(service.turnkeeper.run_answered)
        group.start_soon(service.turnkeeper.follow)
        group.start_soon(_follow_shares, service)
        if flags.watches(service.options.environ):
            group.start_soon(service.turnkeeper.runtime.directories.watch, anyio.sleep)
        try:
            yield app
        finally:
            with anyio.CancelScope(shield=True):
                # Turns first, so that their last events are published; then the streams that send these events.
                server.refuse_connections()
                await service.turnkeeper.stop()
                service.close()
                await server.close(requests_s)
            group.cancel_scope.cancel()


async def _follow_shares(service: Service) -> None:
    """Keep shares on other hosts up to date. A server without any asks its store once a second, and loads nothing."""
    while True:
        await anyio.sleep(SHARES_S)
        try:
            if shared := await service.turnkeeper.store.queries.remote_shares():
                await service.turnkeeper.remote_shares.send_all(shared)
        except EngineError as error:  # The store may come back; a server must not end because it is away.
            log.warning("shares on other hosts could not be brought up to date: %s", error)


async def settle_in(app: App, service: Service, bound: socket.socket, left: Sequence["Left"] = ()) -> None:
    """Load the modules that turns need, resume sessions of dead processes, and watch for more of them."""
    await anyio.sleep(PAUSE_S)
    try:
        await _load_once_files_are_free(app, service)
    except Exception:
        # The top of a background job: a request that needs a missing module reports the error itself.
        log.exception("some modules that turns need could not be loaded")
    # Freeze start-up objects so that the garbage collector skips them, and collect less often: few later objects form
    # reference cycles.
    gc.freeze()
    gc.set_threshold(COLLECTED_OBJECTS, *gc.get_threshold()[1:])
    if left:
        log.warning("sessions that a dead process left open were looked after: %d", len(left))
    from turnkeeper.run.ownership import SHARED  # Not before: the first request is answered first.

    async with anyio.create_task_group() as group:
        if service.options.runs:
            group.start_soon(service.turnkeeper.watch_leases)
        # A server that runs sessions on one machine writes its address once, and then nothing while it has none.
        is_shared = not service.options.runs or service.turnkeeper.store.engine.name in SHARED
        service.turnkeeper.runtime.lease_keeper.announce("server", always=is_shared, address=address_here(bound))
        await service.turnkeeper.resume_taken_over(left)


async def _load_once_files_are_free(app: App, service: Service) -> None:
    """Load the modules; while connections use every file of this process, wait until some have ended."""
    is_told = False
    while True:
        try:
            return await _load(app, service)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            if not is_told:
                log.warning("modules wait to be loaded: %s; close clients, or raise the limit (`ulimit -n`)", error)
            is_told = True
        await anyio.sleep(FILES_RETRY_S)


async def _load(app: App, service: Service) -> None:
    for name in LOADED:
        await anyio.lowlevel.checkpoint()  # Requests are answered between two imports.
        import_module(name)
    app.load()
    with suppress(Refusal):  # The first prompt reports it.
        await service.turnkeeper.runtime.directories.preload(service.directory)
