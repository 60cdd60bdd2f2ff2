"""Service: what all requests to one server share."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar, cast, runtime_checkable

import msgspec

from turnkeeper.api import Turnkeeper

P = TypeVar("P")


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a server was started."""

    hostname: str = "127.0.0.1"
    username: str = "opencode"
    password: str | None = None
    cors: tuple[str, ...] = ()
    """Further origins that browsers may call from."""
    body_bytes_max: int = 64 * 1024 * 1024
    body_timeout_s: float = 30.0
    environ: Mapping[str, str] = msgspec.field(default_factory=lambda: os.environ)

    def __repr__(self) -> str:
        return f"Options(hostname={self.hostname!r}, password={'set' if self.password else 'not set'})"


@runtime_checkable
class Closing(Protocol):
    """A part that has something to end when the server stops."""

    def close(self) -> None:
        """End it; nothing may be waited for."""


class Service(msgspec.Struct):
    """One running server: the open store, how it was started, and what its routes keep between requests."""

    turnkeeper: Turnkeeper
    directory: Path
    options: ServerOptions = msgspec.field(default_factory=ServerOptions)
    _parts: dict[Callable[["Service"], object], object] = msgspec.field(default_factory=dict)

    started: int = 0
    """When, in milliseconds since 1970."""

    def __post_init__(self) -> None:
        self.started = self.turnkeeper.store.mint.now()

    def part(self, make: Callable[["Service"], P]) -> P:
        """What a route file keeps between requests, made when it is first asked for: ``service.part(Hub)``."""
        if make not in self._parts:
            self._parts[make] = make(self)
        return cast(P, self._parts[make])  # Each is stored under what made it.

    def give(self, make: Callable[["Service"], P], part: P) -> None:
        """Use this part in place of the one that would be made: a hub with a clock of its own, for example."""
        self._parts[make] = part

    def made(self, kind: type[P]) -> list[P]:
        """The parts of a kind that were asked for so far."""
        return [part for part in self._parts.values() if isinstance(part, kind)]

    def close(self) -> None:
        """Let every part end what it has open, such as streams. The store stays open: another server may use it."""
        for part in self._parts.values():
            if isinstance(part, Closing):
                part.close()
