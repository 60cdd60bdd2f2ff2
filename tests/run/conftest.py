"""A stage: a whole runtime whose model is a script. In memory, unless a test asks for more engines."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from crashes import Crash, crashes
from stores import store_url

from turnkeeper.providers.provider import Provider
from turnkeeper.store.engine import Engine
from turnkeeper.testing.harness import Play, Stage, StageOptions, stage

DEADLINE_S = 240  # Below the time limit of a test; the longest one takes a minute on a busy machine.
"""A test that waits for what never comes fails, and does not hang."""


@pytest.fixture(scope="session")
def crash_at() -> Iterator[Crash]:
    """Lives a life that ends at a crash point; whether the point was reached."""
    with crashes() as crash:
        yield crash


@pytest.fixture
def engine() -> str:
    """Where the sessions of a test live; a test that needs another engine names it by ``parametrize``."""
    return "memory"


@pytest.fixture
def url(engine: str, tmp_path: Path) -> str:
    return store_url(engine, tmp_path)


@pytest.fixture
def play(url: str, tmp_path: Path) -> Play:
    @asynccontextmanager
    async def open_stage(provider: Provider, *, store: Engine | None = None, **options: Any) -> AsyncIterator[Stage]:
        with anyio.fail_after(DEADLINE_S):
            async with stage(store or url, tmp_path / "place", provider, StageOptions(**options)) as opened:
                yield opened

    return open_stage
