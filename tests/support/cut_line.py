"""A line between a client and a server that can be cut and joined."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Line:
    """Passes bytes on to a server. While it is cut, connections end at once."""

    def __init__(self, url: str) -> None:
        target = urlsplit(url)
        assert target.hostname is not None
        self._target = (target.hostname, target.port or 80)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._is_joined, self._ends, self._lock = True, list[socket.socket](), threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections, and every new one."""
        with self._lock:
            self._is_joined = False
            ends, self._ends = self._ends, []
        for end in ends:
            _shut(end)

    def join(self) -> None:
        """Let new connections pass again."""
        with self._lock:
            self._is_joined = True

    def close(self) -> None:
        self.cut()
        _shut(self._listener)

    def _accept(self) -> None:
        with suppress(OSError):  # The listener was closed.
            while True:
                near, _ = self._listener.accept()
                with self._lock:
                    if not self._is_joined:
                        near.close()
                        continue
                    far = socket.create_connection(self._target)
                    self._ends += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(1 << 16):
            sink.sendall(chunk)
    _shut(source)
    _shut(sink)


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@contextmanager
def cuttable(url: str) -> Iterator[Line]:
    """A line to a server."""
    line = Line(url)
    try:
        yield line
    finally:
        line.close()
