"""A place to work in, and a store with a scripted model."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

import turnkeeper

Opened = Callable[..., AbstractAsyncContextManager[turnkeeper.Turnkeeper]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory without git, where the sessions of a test work."""
    directory = tmp_path / "place"
    directory.mkdir()
    return directory


@pytest.fixture
def settings(tmp_path: Path) -> turnkeeper.Settings:
    """Settings that read nothing of this machine."""
    return turnkeeper.Settings(titles=False, snapshots=False, environ={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})


@pytest.fixture
def opened(place: Path, settings: turnkeeper.Settings) -> Opened:
    """Opens a store whose model plays a script."""

    def open(script: turnkeeper.Provider, store: str = "memory:", **given: object) -> object:
        options: dict[str, object] = {"directory": place, "settings": settings, "provider": script, **given}
        return turnkeeper.open(store, **options)  # type: ignore[arg-type]  # The keywords of ``open``.

    return open  # type: ignore[return-value]  # Its keywords are those of ``open``.
