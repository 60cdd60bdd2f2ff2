"""A proxy on loopback before a Postgres server, which cuts a connection at a byte of our choice."""

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, quote, urlsplit

Side = Literal["asked", "answered"]
"""Bytes that go to the server, and bytes that come from it."""


class CuttingProxy:
    """Passes bytes on. Once armed, it cuts the next connection that passes so many more bytes on one side."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._lock = threading.Lock()
        self._armed: tuple[Side, int] | None = None
        self._cuts_for_good = self._is_down = False
        self.cuts = 0
        self._thread = threading.Thread(target=self._run, name="cutting-proxy", daemon=True)

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def arm(self, side: Side, after: int, *, for_good: bool = False) -> None:
        """Cut once so many bytes have passed on this side. What came with them does not arrive.

        With ``for_good`` no connection is made after that, until it is disarmed.
        """
        with self._lock:
            self._armed, self._cuts_for_good = (side, after), for_good

    def disarm(self) -> bool:
        """Cut nothing; whether nothing was cut since it was armed."""
        with self._lock:
            was_armed, self._armed = self._armed is not None, None
            self._is_down = False
        return was_armed

    def start(self) -> None:
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._thread.start()

    def stop(self) -> None:
        self._wake.send(b".")
        self._thread.join()
        self._wake.close()
        self._woken.close()

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._woken:
                    self._close_all()
                    return
                if key.fileobj is self._listener:
                    self._connect()
                elif key.data[0].fileno() >= 0:  # Not closed by what was done a moment ago.
                    self._pass_on(*key.data)

    def _connect(self) -> None:
        client, _ = self._listener.accept()
        if self._is_down:
            client.close()
            return
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._upstream)
        except OSError:
            client.close()
            server.close()
            return
        self._selector.register(client, selectors.EVENT_READ, (client, server, "asked"))
        self._selector.register(server, selectors.EVENT_READ, (server, client, "answered"))

    def _pass_on(self, source: socket.socket, target: socket.socket, side: Side) -> None:
        try:
            arrived = source.recv(65536)
            passed, is_cut = self._allowed(side, arrived)
            if passed:
                target.sendall(passed)
        except OSError:
            arrived, is_cut = b"", False
        if not arrived or is_cut:
            for end in (source, target):
                self._selector.unregister(end)
                end.close()

    def _allowed(self, side: Side, arrived: bytes) -> tuple[bytes, bool]:
        with self._lock:
            if self._armed is None or self._armed[0] != side or not arrived:
                return arrived, False
            left = self._armed[1]
            if len(arrived) <= left:
                self._armed = side, left - len(arrived)
                return arrived, False
            self._armed, self._is_down = None, self._cuts_for_good
            self.cuts += 1
            return arrived[:left], True

    def _close_all(self) -> None:
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                with suppress(OSError):
                    key.fileobj.close()
        self._selector.close()


@contextmanager
def cutting_proxy(url: str) -> Iterator[tuple[CuttingProxy, str]]:
    """A proxy before the server at an address with a socket, and the address of the same store through it."""
    query = parse_qs(urlsplit(url).query)
    [directory] = query["host"]
    proxy = CuttingProxy(str(Path(directory) / ".s.PGSQL.5432"))
    proxy.start()
    try:
        through = url.replace("@/", f"@127.0.0.1:{proxy.port}/").replace(f"host={quote(directory, safe='')}&", "")
        yield proxy, f"{through}&sslmode=disable&gssencmode=disable"
    finally:
        proxy.stop()
