"""What every test shares."""

import pytest

pytest.register_assert_rewrite("turnkeeper.testing.engine_contract")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
