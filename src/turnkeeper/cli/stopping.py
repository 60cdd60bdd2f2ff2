"""Commands that go on until the user ends them: Ctrl-C is then their regular end."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import anyio

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def until_stopped() -> Iterator[None]:
    """Run the block until it ends, or until Ctrl-C or SIGTERM."""
    loop, scope = asyncio.get_running_loop(), anyio.CancelScope()
    try:
        for one in SIGNALS:
            loop.add_signal_handler(one, scope.cancel)
    except (RuntimeError, ValueError):  # Not the main thread, which gets the signals.
        yield
        return
    try:
        with scope:
            yield
    finally:
        for one in SIGNALS:
            loop.remove_signal_handler(one)
