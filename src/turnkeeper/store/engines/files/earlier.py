"""What the files engine of 0.2 may have left, and what a store that today's engine has opened never holds.

That engine kept up to 64 writes in its journal, and ``.store/state`` said how far they were in the files. It wrote
lines to a log before they were committed.
"""

import os
import struct

from turnkeeper.store.engines.files.disk import Disk, read, size_of
from turnkeeper.store.engines.files.logs import Logs
from turnkeeper.store.engines.files.names import decoded

UNCOMMITTED = "uncommitted"
"""The kind of what is set aside although nothing is wrong: lines of a write that was never acknowledged."""

_STATE = struct.Struct("<4sQQQB")


def placed(own: str) -> tuple[int, bool]:
    """The offset in its journal up to which writes were put in place, and whether the next one was being put there."""
    state = read(f"{own}/state") or b""
    if len(state) != _STATE.size:
        return 0, False
    _, _, offset, _, is_placing = _STATE.unpack(state)
    return offset, bool(is_placing)


def take_over(own: str, logs: Logs, disk: Disk) -> None:
    """Set aside the lines that were never committed, and remove what only that engine needs."""
    if size_of(f"{own}/state") is None:
        return
    for name in os.listdir(logs.indexes):
        log = decoded(name, top=False)
        numbers = read(f"{logs.indexes}/{name}") or b""
        end = int.from_bytes(numbers[8:][-8:], "little")
        if log is not None and (size_of(logs.files(log)[0]) or 0) > end:
            logs.cut(log, UNCOMMITTED, end)
    disk.unlink(f"{own}/state")
    disk.sync([own])
