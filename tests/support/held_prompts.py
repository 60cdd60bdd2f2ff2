"""A proxy in front of a server that holds a prompt back until its session was stopped twice.

So it is with a prompt on a slow road: the server is told to stop before there is anything to stop. A client that has
gone since is no reason to drop the prompt, which may be in the server's buffers by then.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

DEADLINE_S: Final = 120
STOPS: Final = 2


class HeldPrompts:
    """What was seen on the road."""

    def __init__(self, server: str) -> None:
        self._server = urlsplit(server)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = [self._listener]
        self._stops = 0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.arrived, self.released, self.answered = threading.Event(), threading.Event(), threading.Event()
        """A prompt came; it went on; the server has answered it."""

    def serve(self) -> None:
        """Take connections until it is closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection((self._server.hostname or "", self._server.port or 80))
                self._open += [client, server]
                road = _Road(self, client, server)
                for work in (road.there, road.back):
                    threading.Thread(target=work, daemon=True).start()

    def stopped(self) -> None:
        """The server has answered that it stopped a session."""
        self._stops += 1
        if self._stops == STOPS:
            self.released.set()

    def close(self) -> None:
        """End all connections."""
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class _Road:
    """One connection of a client, and the one to the server that belongs to it."""

    def __init__(self, held: HeldPrompts, client: socket.socket, server: socket.socket) -> None:
        self._held, self._client, self._server = held, client, server
        self._answers: threading.Event | None = None
        self._is_stop = False

    def there(self) -> None:
        """Bring requests to the server."""
        with suppress(OSError):
            while piece := self._client.recv(1 << 16):
                line = piece.partition(b"\r\n")[0]
                if line.startswith(b"POST ") and b"/message " in line:
                    self._held.arrived.set()
                    assert self._held.released.wait(DEADLINE_S)
                    self._answers = self._held.answered
                self._is_stop = line.startswith(b"POST ") and b"/abort " in line
                self._server.sendall(piece)

    def back(self) -> None:
        """Bring answers to the client, if it is still there."""
        with suppress(OSError):
            while piece := self._server.recv(1 << 16):
                if self._answers is not None:
                    self._answers.set()
                if self._is_stop:
                    self._is_stop = False
                    self._held.stopped()
                with suppress(OSError):
                    self._client.sendall(piece)


@contextmanager
def held_prompts(server: str) -> Iterator[HeldPrompts]:
    """The proxy of a server with this address."""
    held = HeldPrompts(server)
    threading.Thread(target=held.serve, daemon=True).start()
    try:
        yield held
    finally:
        held.close()
