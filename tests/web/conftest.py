"""Our server as a process with a scripted provider, and one Chromium for all tests of the web page."""

from collections.abc import Iterator
from pathlib import Path

import anyio.from_thread
import pytest
from browser import Browser, Tab, browsing, program
from clients import Served, configured, serving

from turnkeeper.testing.server import ScriptedServer


@pytest.fixture(scope="session")
def provider() -> Iterator[str]:
    """Where a provider answers by the directives in prompts."""
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
    """A directory whose configuration names the scripted provider."""
    return configured(tmp_path / "project", served)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One Chromium for all tests."""
    if program() is None:
        pytest.skip("no Chromium is installed: make browser could not, or was not run")
    with browsing(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def tab(browser: Browser, served: Served) -> Iterator[Tab]:
    """A new tab. What its console complained about fails the test, and so does a request to another host."""
    opened = browser.tab()
    yield opened
    opened.close()
    assert opened.errors == []
    foreign = [url for url in opened.requests if not url.startswith(("http://127.0.0.1:", "data:", "blob:", "about:"))]
    assert foreign == []
