"""The HTTP server: thin routes over the use cases, with the operations and shapes of opencode's API."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnkeeper.api import Turnkeeper
    from turnkeeper.server.app import App

__all__ = ["application"]


def application(tk: "Turnkeeper", directory: str | Path | None = None) -> "App":
    """The server of an open store as an ASGI application. ``directory`` is that of requests that name none.

    The store is opened with ``Settings(ask=None, question=None)``, so that clients answer what calls ask.
    """
    from turnkeeper.server import routes
    from turnkeeper.server.app import App
    from turnkeeper.server.service import Service

    return App(Service(tk, Path(directory or Path.cwd())), routes.load)
