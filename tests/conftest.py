"""What every test shares."""

import os
import signal

import pytest
from hypothesis import settings
from stores import begin_run, end_run

# A busy machine must not fail a test: how long an example takes is measured in bench/, not asserted here.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

pytest.register_assert_rewrite("turnkeeper.testing.engine_contract")


# Tests write the configuration of their projects themselves; those about trust say so.
os.environ["TURNKEEPER_TRUST"] = "1"

# A shell ignores Ctrl-C for what it starts in the background, and the commands that tests interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SOAK_TIMEOUT_S = 3600


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # Not in the workers of xdist, which share one Postgres server.
        begin_run()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        end_run()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that repeat something thousands of times have more time than the limit in pyproject.toml."""
    for item in items:
        if item.get_closest_marker("soak") is not None:
            item.add_marker(pytest.mark.timeout(SOAK_TIMEOUT_S))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
