"""Every engine of the table keeps the engine contract."""

from pathlib import Path

import pytest
from stores import store_url

from turnkeeper.store.crash import POINTS
from turnkeeper.store.engine_table import ENGINES
from turnkeeper.store.engines import open_engine
from turnkeeper.testing.engine_contract import *  # noqa: F403 - the contract is taken over whole.
from turnkeeper.testing.engine_contract import StoreUnderTest


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StoreUnderTest:
    name = request.param
    url = store_url(name, tmp_path / "deep")
    if name == "memory":
        return StoreUnderTest(open_engine, url, is_durable=False)
    crash_points = tuple(point for point in POINTS if point.startswith(f"{name}.") and not is_rare(point))
    return StoreUnderTest(open_engine, url, is_durable=True, crash_points=crash_points)


def is_rare(point: str) -> bool:
    """Not every append passes here; these points have tests of their own."""
    return "migration" in point or "checkpoint" in point
