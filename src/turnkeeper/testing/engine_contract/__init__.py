"""The engine contract: every promise of ``turnkeeper.store.engine`` as a test any engine can be put under.

An engine's author writes a test module with one fixture and takes the tests over::

    from turnkeeper.testing.engine_contract import *

    @pytest.fixture
    def store(tmp_path):
        return StoreUnderTest(open_my_engine, f"mine:{tmp_path}/store", is_durable=True)

Tests run with anyio's pytest plugin on asyncio (``anyio_mode = "auto"``) and use the marker ``soak``. To see
values when a promise is broken, call ``pytest.register_assert_rewrite`` with this package in ``conftest.py``.
"""

# ruff: noqa: F403 - the contract is taken over whole, and so are its parts.

from turnkeeper.testing.engine_contract.documents import *
from turnkeeper.testing.engine_contract.logs import *
from turnkeeper.testing.engine_contract.processes import *
from turnkeeper.testing.engine_contract.search import *
from turnkeeper.testing.engine_contract.sharing import *
from turnkeeper.testing.engine_contract.store import *
