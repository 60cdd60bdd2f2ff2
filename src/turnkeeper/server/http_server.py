"""HttpServer: accepts connections on a socket and serves an ASGI application until it is closed."""

import logging
import resource
import socket
from typing import Final

import anyio
from uvicorn import Server

from turnkeeper.server.asgi import Application
from turnkeeper.server.connection import ConnectionLimits, HttpConfig, HttpConnection

log = logging.getLogger(__name__)

TICK_S: Final = 1.0
"""How often connections are checked and the Date header is renewed."""

CANCEL_S: Final = 0.5
"""Time for requests to end after their connection is aborted, and again after they are cancelled."""

_LOOK_AGAIN_S: Final = 0.01


def limits() -> ConnectionLimits:
    """The limits of this process: connections use at most half of its file descriptors."""
    files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ConnectionLimits(connections_max=min(ConnectionLimits().connections_max, files_max // 2))


class HttpServer(Server):
    """uvicorn's server without its signal handlers and its main loop: the caller decides when it starts and stops.

    uvicorn's own shutdown waits for open event streams, which never end by themselves.
    """

    def __init__(self, application: Application, limits: ConnectionLimits) -> None:
        super().__init__(HttpConfig(application, limits))

    async def open(self, bound: socket.socket) -> None:
        """Accept connections on a socket."""
        self.config.load()
        self.lifespan = self.config.lifespan_class(self.config)
        await self.startup(sockets=[bound])

    async def watch(self, tick_s: float = TICK_S) -> None:
        """Renew the Date header and abort connections whose client does not read, until cancelled."""
        while True:
            await self.on_tick(0)
            now = anyio.current_time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, HttpConnection):
                    connection.check_progress(now)
            await anyio.sleep(tick_s)

    def refuse_connections(self) -> None:
        """Accept no further connection; open ones are still served."""
        for listener in self.servers:
            listener.close()

    async def close(self, patience_s: float) -> None:
        """Close idle connections now, and the others after their response or after ``patience_s``."""
        self.refuse_connections()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await self._wait_empty(patience_s)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await self._wait_empty(CANCEL_S)  # Most requests end when their client disconnects.
        for task in list(self.server_state.tasks):
            task.cancel()
        await self._wait_empty(CANCEL_S)
        if self.server_state.tasks:
            log.error("%d requests did not end when they were cancelled", len(self.server_state.tasks))

    async def _wait_empty(self, timeout_s: float) -> None:
        with anyio.move_on_after(timeout_s):
            while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 # They are plain sets.
                await anyio.sleep(_LOOK_AGAIN_S)
