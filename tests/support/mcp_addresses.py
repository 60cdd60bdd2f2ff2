"""MCP servers at addresses of this machine: programs that listen on ports, for as long as a test wants them."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

SUPPORT = Path(__file__).parent


class Listening(NamedTuple):
    """A server that takes connections."""

    url: str
    process: "subprocess.Popen[bytes]"
    port: int
    callback_port: int = 0


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def over_http(manner: str, port: int | None = None) -> Iterator[Listening]:
    """One of the servers of ``mcp_server``."""
    port = port or free_port()
    with _started([str(SUPPORT / "mcp_server.py"), manner, str(port)], 1) as process:
        yield Listening(f"http://127.0.0.1:{port}/mcp", process, port)


@contextmanager
def locked(manner: str) -> Iterator[Listening]:
    """One of the servers of ``mcp_oauth_server``."""
    port, its_port, callback_port = free_port(), free_port(), free_port()
    words = [str(SUPPORT / "mcp_oauth_server.py"), manner, *map(str, (port, its_port, callback_port))]
    with _started(words, 2) as process:
        yield Listening(f"http://127.0.0.1:{port}/mcp", process, port, callback_port)


@contextmanager
def _started(words: list[str], listeners: int) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            listeners -= b"Uvicorn running" in line
            if listeners == 0:
                break
        assert listeners == 0, b"".join(said).decode()
        yield process
    finally:
        process.kill()
        process.communicate()
