"""The full screen: on a real terminal, in tmux."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from chat_pane import chat_pane, make_shop
from pane import Pane
from workshop import Shop

Opens = Callable[..., AbstractContextManager[Pane]]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """The project."""
    return make_shop(tmp_path)


@pytest.fixture
def opens(shop: Shop) -> Opens:
    """Opens the full screen in tmux."""
    return partial(chat_pane, shop, size=(100, 40))
