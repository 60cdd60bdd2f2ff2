"""Service: the state that all requests to one server share."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar, cast, runtime_checkable

import msgspec

from turnkeeper.api import Turnkeeper
from turnkeeper.core.labels import ANY_HOST, HostLabels

P = TypeVar("P")


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that a server is started with."""

    hostname: str = "127.0.0.1"
    username: str = "opencode"
    password: str | None = None
    cors: tuple[str, ...] = ()
    """Further origins whose pages may call the server."""
    body_bytes_max: int = 64 * 1024 * 1024
    body_timeout_s: float = 30.0
    environ: Mapping[str, str] = msgspec.field(default_factory=lambda: os.environ)
    runs: bool = True
    """Whether the server runs sessions itself. Else workers do."""
    labels: HostLabels = ANY_HOST
    """Which sessions it runs. Workers are asked to run the others."""

    def __repr__(self) -> str:
        return f"Options(hostname={self.hostname!r}, password={'set' if self.password else 'not set'})"


@runtime_checkable
class Closing(Protocol):
    """A component that must be closed when the server stops."""

    def close(self) -> None:
        """Close the component, without waiting."""


class Service(msgspec.Struct):
    """A running server: the open store, the server's options, and components that routes keep between requests."""

    turnkeeper: Turnkeeper
    directory: Path
    options: ServerOptions = msgspec.field(default_factory=ServerOptions)
    _parts: dict[Callable[["Service"], object], object] = msgspec.field(default_factory=dict)

    started: int = 0
    """The time of the start, in milliseconds since 1970."""

    def __post_init__(self) -> None:
        self.started = self.turnkeeper.store.mint.now()

    def part(self, make: Callable[["Service"], P]) -> P:
        """A component that routes keep between requests, made at its first use: ``service.part(Metrics)``."""
        if make not in self._parts:
            self._parts[make] = make(self)
        return cast(P, self._parts[make])  # A component is stored under the function that made it.

    def give(self, make: Callable[["Service"], P], part: P) -> None:
        """Use this component instead of making one. Tests pass a hub with their own clock."""
        self._parts[make] = part

    def made(self, kind: type[P]) -> list[P]:
        """The components of a type that have been made so far."""
        return [part for part in self._parts.values() if isinstance(part, kind)]

    def close(self) -> None:
        """Close every component, such as open streams. The store stays open: another server may use it."""
        for part in self._parts.values():
            if isinstance(part, Closing):
                part.close()
