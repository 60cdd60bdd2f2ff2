"""A chat on a terminal that can be looked at, with lines that stay."""

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
    """Opens a chat in tmux."""
    return partial(chat_pane, shop, TURNKEEPER_PLAIN="1")
