"""The options that every command takes, and the store or server that they name."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from turnkeeper.cli.failures import UsageError
from turnkeeper.core import flags
from turnkeeper.model.refusal import Invalid
from turnkeeper.store.engine_table import named_store, shown_store, store_names
from turnkeeper.workspace import paths

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.run.runtime import Settings

FILE_NAME: Final = "turnkeeper.db"
[STORE_VARIABLE] = flags.STORE.names
[SERVER_VARIABLE] = flags.SERVER.names
[TRUST_VARIABLE] = flags.TRUST.names


@Parameter(parse=False)  # A command does not read them: `commands.start` does, and passes them to it.
@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of every command: the place of the sessions and the form of the output."""

    store: Annotated[
        str | None,
        Parameter(metavar="STORE", help=f"The store: {store_names()}; also {STORE_VARIABLE}."),
    ] = None
    data: Annotated[
        Path | None,
        Parameter(metavar="DIR", help="The directory of the default store and of auth.json; also TURNKEEPER_DATA."),
    ] = None
    server: Annotated[
        str | None,
        Parameter(metavar="URL", help="Use the sessions of this server, not a store; also TURNKEEPER_SERVER."),
    ] = None
    json: Annotated[bool, Parameter(help="Print JSON and nothing else on standard output.")] = False

    @property
    def address(self) -> str | None:
        """The URL of the server to use: the given one, or that of the environment if no store is given."""
        if self.server and self.store:
            raise UsageError("give --server or --store, not both")
        if self.server is not None:
            return self.server or None
        return None if self.store or self.data else os.environ.get(SERVER_VARIABLE) or None

    @property
    def without_server(self) -> Options:
        """These options for a command that ignores a server in the environment."""
        return replace(self, server=self.server or "")

    @property
    def program(self) -> str:
        """How a command line begins that uses the same sessions. An address with a password is not shown."""
        server = "URL" if self.server and "@" in self.server else self.server
        given = {"--store": self.store and shown_store(self.store), "--data": self.data, "--server": server}
        return shlex.join(["tk", *(str(word) for name, value in given.items() if value for word in (name, value))])

    def require_store(self, what: str) -> None:
        """Raise UsageError if a server is used, for what only works on a store."""
        if self.address is not None:
            raise UsageError(
                f"{what} needs a store, and {self.address} is a server; run it on the machine of the store, without "
                f"--server and {SERVER_VARIABLE}"
            )

    @property
    def url(self) -> str:
        """The store: the given one, the one in the given directory, that of the environment, or the default one."""
        self.require_store("this command")
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
        """Whether the user named the store itself, or a directory for it that does not exist."""
        if self.store is None and self.data is not None:
            return not self.data.expanduser().exists()
        return self.store is not None or bool(os.environ.get(STORE_VARIABLE))

    @property
    def is_missing(self) -> bool:
        """Whether the file or directory of the store does not exist yet.

        Raises Invalid if it never can, because its directory is a file.
        """
        named = named_store(self.url)
        if named is None or not named.entry.is_on_disk or not named.entry.place or not named.place:
            return False
        path = Path(named.place).expanduser()
        if path.exists():
            return False
        nearest = next((above for above in path.parents if above.exists()), None)
        if nearest is not None and not nearest.is_dir():
            raise Invalid(f"{str(nearest)!r} is a file, so no store can be in it; name a directory")
        return True

    @property
    def is_emptied(self) -> bool:
        """Whether the file of the store exists without a byte: it was truncated, or never was a store."""
        scheme, _, place = self.url.partition(":")
        files = [path for path in (Path(place).expanduser(), Path(f"{place}-wal").expanduser()) if path.is_file()]
        return scheme == "sqlite" and bool(files) and not any(path.stat().st_size for path in files)

    @asynccontextmanager
    async def sessions(self, *, read_only: bool = False) -> AsyncIterator[Turnkeeper | Client]:
        """The sessions of the store or of the server. A missing store is created, unless ``read_only``."""
        async with AsyncExitStack() as stack:
            if self.address is not None:
                yield await stack.enter_async_context(self.client())
            else:
                yield await stack.enter_async_context(self.read() if read_only else self.open())

    def client(self, directory: Path | None = None) -> Client:
        """The server, with a working directory on its machine."""
        from turnkeeper.client import Client

        assert self.address is not None
        try:
            return Client(
                self.address,
                directory=directory or (Path.cwd() if self.is_near else None),
                username=flags.SERVER_USERNAME.value(os.environ),
                password=flags.SERVER_PASSWORD.value(os.environ),
            )
        except Invalid as error:
            raise UsageError(str(error)) from error

    @property
    def is_near(self) -> bool:
        """Whether the sessions are on this machine, so that paths are valid: in a store, or on a local server."""
        if self.address is None:
            return True
        from turnkeeper.client.values import is_near

        return is_near(self.address)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Turnkeeper]:
        """The store, created if it does not exist."""
        from turnkeeper.app import look

        async with opened(look(self.url, environ=self.environ)) as tk:
            yield tk

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Turnkeeper]:
        """The store for a command that only reads. A missing store is read as an empty one and is not created."""
        from turnkeeper.app import look

        if self.is_emptied:
            print(f"The store {self.url!r} is an empty file; if it had sessions, restore a copy.", file=sys.stderr)
        elif self.is_missing and self.is_named:
            print(f"There is no store {self.url!r} yet; creating or importing a session makes it.", file=sys.stderr)
        url = "memory:" if self.is_missing or self.is_emptied else self.url
        async with opened(look(url, environ=self.environ)) as tk:
            yield tk

    @asynccontextmanager
    async def run(self, directory: Path, settings: Settings | Callable[[], Settings]) -> AsyncIterator[Turnkeeper]:
        """The store for a command that runs sessions. Raises Forbidden if the process may open too few files."""
        from turnkeeper.app import open_store
        from turnkeeper.cli.file_limit import require_files

        require_files()

        opening = open_store(self.url, directory=directory, settings=settings, environ=self.environ)
        async with opened(opening) as tk:
            yield tk

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment, with the given data directory."""
        if self.server:
            self.require_store("this command")
        if self.data is None:
            return os.environ
        return {**os.environ, paths.DATA_VARIABLE: str(self.data.expanduser().absolute())}

    def trusting(self, trust: bool) -> Mapping[str, str]:
        """The environment, in which the configuration of every project holds if ``trust``."""
        return {**self.environ, TRUST_VARIABLE: "1"} if trust else self.environ


@asynccontextmanager
async def opened(opening: AbstractAsyncContextManager[Turnkeeper]) -> AsyncIterator[Turnkeeper]:
    """Open a store. Raises UsageError if its name is wrong."""
    from turnkeeper.cli import log_lines  # The store has imported the log already.

    log_lines.begin(os.environ)
    async with AsyncExitStack() as stack:
        try:
            tk = await stack.enter_async_context(opening)
        except Invalid as error:  # A wrong name. Nothing else that could raise it was done yet.
            raise UsageError(str(error)) from error
        yield tk


def local_store(sessions: Turnkeeper | Client) -> Turnkeeper | None:
    """The store, for what only a store can do; None if the sessions are those of a server."""
    from turnkeeper.api import Turnkeeper  # Already imported if the sessions are those of a store.

    return sessions if isinstance(sessions, Turnkeeper) else None
