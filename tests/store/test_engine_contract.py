"""Every engine of the table keeps the engine contract."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from turnkeeper.store.engines import ENGINES, open_engine
from turnkeeper.testing.engine_contract import *  # noqa: F403 - the contract is taken over whole.
from turnkeeper.testing.engine_contract import StoreUnderTest


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StoreUnderTest:
    name = request.param
    if find_spec(ENGINES[name].partition(":")[0]) is None:
        pytest.skip(f"the {name} engine is not there yet")
    if name == "memory":
        return StoreUnderTest(open_engine, "memory:", is_durable=False)
    points = ("begin", "before-commit", "after-commit") if name == "sqlite" else ()
    crash_points = tuple(f"{name}.{point}" for point in points)
    return StoreUnderTest(open_engine, f"{name}:{tmp_path}/deep/store", is_durable=True, crash_points=crash_points)
