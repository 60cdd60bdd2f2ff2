"""Ctrl-C and SIGTERM, as what a command does at them; for some they are the regular end."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import anyio

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def until_stopped() -> Iterator[None]:
    """Run the block until it ends, or until Ctrl-C or SIGTERM."""
    with anyio.CancelScope() as scope, at_signals(scope.cancel):
        yield


@contextmanager
def at_signals(act: Callable[[], None]) -> Iterator[None]:
    """Do this at Ctrl-C and at SIGTERM while the block runs."""
    loop = asyncio.get_running_loop()
    try:
        for one in SIGNALS:
            loop.add_signal_handler(one, act)
    except (RuntimeError, ValueError):  # Not the main thread, which gets the signals.
        yield
        return
    try:
        yield
    finally:
        for one in SIGNALS:
            loop.remove_signal_handler(one)
