"""Types of ASGI, the interface between the HTTP protocol and the application."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
"""Facts about a request. ``Any``: the ASGI specification gives each key a type of its own."""

AsgiMessage: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
Send: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

ABORT: Final = "turnkeeper.abort"
"""An extension of the scope: a function that closes the connection at once and discards unsent data."""

PEER: Final = "turnkeeper.peer"
"""An extension of the scope: the ``Peer`` of the connection."""
