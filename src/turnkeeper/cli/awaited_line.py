"""A line that is typed on the terminal. It is awaited: other tasks run meanwhile, and the wait can be cancelled."""

import asyncio
import os
import sys
from typing import Final

LINE_BYTES_MAX: Final = 64 * 1024


async def awaited_line() -> str | None:
    """The next line; None at the end of the input, or if the terminal is gone. No thread waits for it."""
    loop, typed, handle = asyncio.get_running_loop(), asyncio.Event(), sys.stdin.fileno()
    loop.add_reader(handle, typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(handle)
    try:
        line = os.read(handle, LINE_BYTES_MAX)
    except OSError:  # The terminal is gone.
        return None
    return line.decode("utf-8", "replace") if line else None
