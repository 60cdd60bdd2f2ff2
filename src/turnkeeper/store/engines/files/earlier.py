"""Takes over a store of the files engine of 0.2.

That engine kept up to 64 writes in its journal, and ``.store/state`` recorded how many were in place. It wrote lines to
a log before they were committed.
"""

import os
import struct

from turnkeeper.store.engines.files.disk import Disk, read, size_of
from turnkeeper.store.engines.files.logs import Logs
from turnkeeper.store.engines.files.names import decoded

UNCOMMITTED = "uncommitted"
"""The name of set-aside lines of a write that was not acknowledged; they are no damage."""

_STATE = struct.Struct("<4sQQQB")


def placed(own: str) -> tuple[int, bool]:
    """The journal offset up to which writes were in place, and whether the next one was being placed."""
    state = read(f"{own}/state") or b""
    if len(state) != _STATE.size:
        return 0, False
    _, _, offset, _, is_placing = _STATE.unpack(state)
    return offset, bool(is_placing)


def take_over(own: str, logs: Logs, disk: Disk) -> None:
    """Set aside lines that were not committed, and remove the state file."""
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
