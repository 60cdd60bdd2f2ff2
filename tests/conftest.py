"""What every test shares."""

import pytest
from hypothesis import settings

# A busy machine must not fail a test: how long an example takes is measured in bench/, not asserted here.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

pytest.register_assert_rewrite("turnkeeper.testing.engine_contract")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
