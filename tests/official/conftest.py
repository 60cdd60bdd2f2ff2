"""Our server as a process, with a scripted provider behind it, for clients that others wrote."""

from collections.abc import Iterator
from pathlib import Path

import anyio.from_thread
import pytest
from clients import Served, configured, serving

from turnkeeper.testing.server import ScriptedServer


@pytest.fixture(scope="session")
def provider() -> Iterator[str]:
    """Where a provider answers by the directives in prompts. It lives on a loop of its own: tests here wait outside."""
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(ScriptedServer()) as scripted,
    ):
        yield scripted.url


@pytest.fixture(scope="session")
def served(provider: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Our server, in a home and a directory that are its own."""
    with serving(tmp_path_factory.mktemp("elsewhere"), tmp_path_factory.mktemp("home"), provider) as started:
        yield started


@pytest.fixture
def project(served: Served, tmp_path: Path) -> Path:
    """A directory whose configuration names the scripted provider: sessions of one test are no other's."""
    return configured(tmp_path / "project", served)


@pytest.fixture(scope="module")
def place(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Like ``project``, for all the tests of a module."""
    return configured(tmp_path_factory.mktemp("place") / "project", served)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where a client keeps its own things."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"
