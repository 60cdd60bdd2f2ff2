"""A store of each kind, open for the length of a test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from stores import store_url

import turnkeeper
from turnkeeper.app import Turnkeeper
from turnkeeper.mint import FixedMint, Mint
from turnkeeper.store.engine_table import ENGINES


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return store_url(request.param, tmp_path)


@pytest.fixture
def mint() -> FixedMint:
    # Each reading of the clock is a millisecond later, so that "newest" has one answer.
    return Mint.fixed(step_ms=1)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory without git, where the sessions of a test work."""
    directory = tmp_path / "place"
    directory.mkdir()
    return directory


@pytest.fixture
async def tk(url: str, mint: FixedMint, place: Path) -> AsyncIterator[Turnkeeper]:
    async with turnkeeper.open(url, directory=place, mint=mint) as opened:
        yield opened
