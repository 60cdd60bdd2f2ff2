"""The options that every command takes, and the store they name."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from turnkeeper.cli import words
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.reach import NotServed, Sessions
from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace import paths

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.run.runtime import Settings

FILE_NAME: Final = "turnkeeper.db"
STORE_VARIABLE: Final = "TURNKEEPER_STORE"
SERVER_VARIABLE: Final = "TURNKEEPER_SERVER"
PASSWORD_VARIABLES: Final = ("TURNKEEPER_SERVER_PASSWORD", "OPENCODE_SERVER_PASSWORD")
USERNAME_VARIABLES: Final = ("TURNKEEPER_SERVER_USERNAME", "OPENCODE_SERVER_USERNAME")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Where the sessions are and how to answer."""

    store: Annotated[
        str | None,
        words.Parameter(metavar="STORE", help="The store: sqlite:PATH, files:DIR or memory: (or TURNKEEPER_STORE)."),
    ] = None
    data: Annotated[
        Path | None,
        words.Parameter(
            metavar="DIR", help="The directory of the default store and of auth.json (or TURNKEEPER_DATA)."
        ),
    ] = None
    server: Annotated[
        str | None,
        words.Parameter(metavar="URL", help="Work through a server and not on a store (or TURNKEEPER_SERVER)."),
    ] = None
    json: Annotated[bool, words.Parameter(help="Print JSON, and nothing else, on standard output.")] = False

    @property
    def address(self) -> str | None:
        """The server to work through: the one given, else what the environment says if no store is named."""
        if self.server and self.store:
            raise UsageError("give --server or --store, not both")
        if self.server is not None:
            return self.server or None
        return None if self.store or self.data else os.environ.get(SERVER_VARIABLE) or None

    @property
    def here(self) -> Options:
        """The same for a command that has no use for a server, whatever the environment says."""
        return replace(self, server=self.server or "")

    def only_here(self, what: str) -> None:
        """Refuse what no server does."""
        if self.address is not None:
            raise NotServed(
                f"{what} works on a store, and {self.address} is a server; use it where the store is, without "
                f"--server and {SERVER_VARIABLE}"
            )

    @property
    def url(self) -> str:
        """The store: the one given, else the one in the given directory, else what the environment says."""
        self.only_here("this command")
        if self.store is not None:
            return self.store
        if self.data is not None:
            return f"sqlite:{self.data.expanduser().absolute() / FILE_NAME}"
        if given := os.environ.get(STORE_VARIABLE):
            return given
        try:
            return f"sqlite:{paths.data(os.environ) / FILE_NAME}"
        except ValueError as error:
            raise Invalid(str(error)) from error

    @property
    def is_named(self) -> bool:
        """Whether somebody named the store itself, and not only where the default one lies."""
        return self.store is not None or (self.data is None and bool(os.environ.get(STORE_VARIABLE)))

    @property
    def is_missing(self) -> bool:
        """Whether the store is not there yet. Raises Invalid if it could never be: it would lie below a file."""
        scheme, _, place = self.url.partition(":")
        path = Path(place).expanduser()
        if scheme not in ("sqlite", "files") or not place or path.exists():
            return False
        nearest = next((above for above in path.parents if above.exists()), None)
        if nearest is not None and not nearest.is_dir():
            raise Invalid(f"{str(nearest)!r} is a file, so no store can be in it; name a directory")
        return True

    @asynccontextmanager
    async def sessions(self, *, looks: bool = False) -> AsyncIterator[Sessions]:
        """The sessions wherever they are; ``looks`` for a command that changes nothing."""
        async with self.client() if self.address is not None else self.read() if looks else self.open() as found:
            yield found

    def client(self, directory: Path | None = None) -> Client:
        """The server, as one who works in a directory of its machine."""
        from turnkeeper.client import Client

        assert self.address is not None
        return Client(
            self.address,
            directory=directory or (Path.cwd() if self.is_near else None),
            username=from_environment(USERNAME_VARIABLES),
            password=from_environment(PASSWORD_VARIABLES),
        )

    @property
    def is_near(self) -> bool:
        """Whether paths mean here what they mean where the sessions are: no server is used, or one of this machine."""
        if self.address is None:
            return True
        from turnkeeper.client.values import is_near

        return is_near(self.address)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Turnkeeper]:
        """The store, made if it is not there."""
        async with AsyncExitStack() as stack:
            yield await _open(stack, self.url)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Turnkeeper]:
        """The store for a command that only looks: one that is not there is empty, and is not made by looking."""
        if self.is_missing and self.is_named:
            print(f"There is no store {self.url!r} yet; creating or importing a session makes it.", file=sys.stderr)
        async with AsyncExitStack() as stack:
            yield await _open(stack, "memory:" if self.is_missing else self.url)

    @asynccontextmanager
    async def run(self, directory: Path, settings: Settings | Callable[[], Settings]) -> AsyncIterator[Turnkeeper]:
        """The store for a command that runs sessions."""
        from turnkeeper.app import open_store

        async with AsyncExitStack() as stack:
            opened = open_store(self.url, directory=directory, settings=settings)
            yield await _entered(stack, opened)

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment, with the data directory that was given."""
        if self.server:
            self.only_here("this command")
        if self.data is None:
            return os.environ
        return {**os.environ, paths.DATA_VARIABLE: str(self.data.expanduser().absolute())}


def from_environment(names: tuple[str, ...]) -> str | None:
    """The first of these variables that says something."""
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


async def _open(stack: AsyncExitStack, url: str) -> Turnkeeper:
    from turnkeeper.app import look

    return await _entered(stack, look(url))


async def _entered(stack: AsyncExitStack, opening: AbstractAsyncContextManager[Turnkeeper]) -> Turnkeeper:
    try:
        return await stack.enter_async_context(opening)
    except ValueError as error:
        # What names no store. Nothing has been done yet that a ValueError could be a bug in.
        raise Invalid(str(error)) from error


EVERYWHERE: Final = Options()
"""What a command gets if nothing was said."""
