"""Stores to import into: every engine for what depends on it, memory for the rest."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from stores import store_url

from turnkeeper.app import Turnkeeper, open_store
from turnkeeper.store.engine_table import ENGINES


@pytest.fixture(params=ENGINES)
async def each_tk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Turnkeeper]:
    async with open_store(store_url(request.param, tmp_path), directory=tmp_path) as tk:
        yield tk


@pytest.fixture
async def tk(tmp_path: Path) -> AsyncIterator[Turnkeeper]:
    async with open_store("memory:", directory=tmp_path) as opened:
        yield opened
