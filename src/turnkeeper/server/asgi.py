"""ASGI's own words: the interface between what speaks HTTP and what answers."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
"""What is known of a connection. ``Any``: its values are of a dozen types, named in ASGI's own document."""

AsgiMessage: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
Send: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

ABORT: Final = "turnkeeper.abort"
"""An extension of the scope: a function that closes the connection at once, without sending what waits to be sent."""
