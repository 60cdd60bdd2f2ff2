"""The engine contract: every guarantee of ``turnkeeper.store.engine`` as a test for any engine.

The author of an engine writes a test module with one fixture and imports the tests::

    from turnkeeper.testing.engine_contract import *

    @pytest.fixture
    def store(tmp_path):
        return StoreUnderTest(open_my_engine, f"mine:{tmp_path}/store", is_durable=True)

Tests run with anyio's pytest plugin on asyncio (``anyio_mode = "auto"``) and use the marker ``soak``. To see
values when a test fails, call ``pytest.register_assert_rewrite`` with this package in ``conftest.py``.
"""

# ruff: noqa: F403 - all tests of the contract are exported.

from turnkeeper.testing.engine_contract.documents import *
from turnkeeper.testing.engine_contract.logs import *
from turnkeeper.testing.engine_contract.processes import *
from turnkeeper.testing.engine_contract.search import *
from turnkeeper.testing.engine_contract.sharing import *
from turnkeeper.testing.engine_contract.store import *
