"""The store of a contract test, as described by the author of an engine, and its fixtures."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from turnkeeper.store.engine import Engine, Key
from turnkeeper.testing import engine_child


@dataclass(frozen=True)
class StoreUnderTest:
    """An empty store that can be opened repeatedly, also by other processes."""

    opener: Callable[[str], Awaitable[Engine]]
    """A module-level function, so that a child process can import it by name."""
    url: str
    is_durable: bool
    """False if the store ends with its engine; then tests of reopening and of other processes are skipped."""
    crash_points: tuple[str, ...] = ()
    """The values of ``TURNKEEPER_CRASH`` that an append passes."""

    async def open(self) -> Engine:
        """Open the store; the caller closes it."""
        return await self.opener(self.url)

    def child(self, role: str, *arguments: str, crash: str | None = None) -> "subprocess.Popen[str]":
        """Start a process that opens the store and runs a role of ``engine_child``."""
        opener = f"{self.opener.__module__}:{self.opener.__qualname__}"
        command = [sys.executable, "-m", engine_child.__name__, role, opener, self.url, *arguments]
        environment = os.environ | ({"TURNKEEPER_CRASH": crash} if crash else {})
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.fixture
async def engine(store: StoreUnderTest) -> AsyncIterator[Engine]:
    """The open store of a test."""
    opened = await store.open()
    yield opened
    await opened.aclose()


@pytest.fixture
def durable(store: StoreUnderTest) -> StoreUnderTest:
    """The store, if it is durable."""
    if not store.is_durable:
        pytest.skip("this engine's store ends with it")
    return store


async def keys_below(engine: Engine, prefix: Key) -> list[Key]:
    """The keys below a prefix."""
    return [key for key, _ in await engine.scan(prefix)]


async def walk(engine: Engine, prefix: Key, size: int, *, reverse: bool) -> list[Key]:
    """The keys of a scan in pages."""
    found: list[Key] = []
    while True:
        edge = found[-1] if found else None
        after, before = (None, edge) if reverse else (edge, None)
        page = await engine.scan(prefix, after=after, before=before, limit=size, reverse=reverse)
        if not page:
            return found
        found += [key for key, _ in page]
