"""The store a contract test runs on: what an engine's author describes, and the fixtures made of it."""

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
    """One store, empty at first, that can be opened again and again, also by other processes."""

    opener: Callable[[str], Awaitable[Engine]]
    """A function at the top of an importable module, so that a child process finds it by name."""
    url: str
    is_durable: bool
    """False for a store that ends with its engine; reopening and other processes are then skipped."""
    crash_points: tuple[str, ...] = ()
    """Names for ``TURNKEEPER_CRASH`` that an append passes through."""

    async def open(self) -> Engine:
        """Open the store; the caller closes it."""
        return await self.opener(self.url)

    def child(self, role: str, *arguments: str, crash: str | None = None) -> "subprocess.Popen[str]":
        """Start a process that opens the store and plays a role of ``engine_child``."""
        opener = f"{self.opener.__module__}:{self.opener.__qualname__}"
        command = [sys.executable, "-m", engine_child.__name__, role, opener, self.url, *arguments]
        environment = os.environ | ({"TURNKEEPER_CRASH": crash} if crash else {})
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.fixture
async def engine(store: StoreUnderTest) -> AsyncIterator[Engine]:
    """The store, open for the length of a test."""
    opened = await store.open()
    yield opened
    await opened.aclose()


@pytest.fixture
def durable(store: StoreUnderTest) -> StoreUnderTest:
    """The store, if it outlives its engine."""
    if not store.is_durable:
        pytest.skip("this engine's store ends with it")
    return store


async def keys_below(engine: Engine, prefix: Key) -> list[Key]:
    """The keys of a whole scan."""
    return [key for key, _ in await engine.scan(prefix)]


async def walk(engine: Engine, prefix: Key, size: int, *, reverse: bool) -> list[Key]:
    """The keys of a scan made page by page."""
    found: list[Key] = []
    while True:
        edge = found[-1] if found else None
        after, before = (None, edge) if reverse else (edge, None)
        page = await engine.scan(prefix, after=after, before=before, limit=size, reverse=reverse)
        if not page:
            return found
        found += [key for key, _ in page]
