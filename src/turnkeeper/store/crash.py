"""Crash points: named places, before and after a durable step, where a test may kill this process.

``TURNKEEPER_CRASH=sqlite.before-commit:3`` kills when that point is reached for the third time.
"""

import os

from turnkeeper.store.engine_table import ENGINES

WRITES: tuple[str, ...] = ("admit", "promote", "attempt", "record", "settle", "end")
"""Writes of the loop: a prompt, its promotion, the start of a turn, streamed parts, a settled call, the end."""

ASKS: tuple[str, ...] = ("ask", "reply", "answer", "leave")
"""Writes of a request to the user: the request, its answer, and that its call continues or is left waiting."""

CHILDREN: tuple[str, ...] = ("child", "create", "deliver")
"""Writes of a Child Session: its begin by a call, the session, and a result that is delivered as a prompt."""

COMPACTIONS: tuple[str, ...] = ("marker", "compact", "compacted", "prune")
"""Writes of a compaction: its marker, its start, its end with the repeated prompts, and a pruning."""

REVERTS: tuple[str, ...] = ("restore", "revert", "commit")
"""Writes of a revert: that files are about to be restored, that they are, and the removal of what was set aside."""

POINTS: tuple[str, ...] = (
    *(
        f"run.{when}-{what}"
        for what in (*WRITES, *ASKS, *CHILDREN, *COMPACTIONS, *REVERTS)
        for when in ("before", "after")
    ),
    "restore.before-file",
    "restore.file-written",
    "restore.file-linked",
    "restore.file-replaced",
    "restore.after-file",
    "run.tool-begin",
    "boundary.before-admit",
    "boundary.after-admit",
    "journal.before-append",
    "journal.after-append",
    *(f"{engine}.{point}" for engine, entry in ENGINES.items() for point in entry.crash_points),
)
"""All crash points."""

VARIABLE = "TURNKEEPER_CRASH"
EXIT_CODE = 137
"""The exit code that a shell reports after SIGKILL."""


class _Fuse:
    """Counts down to the exit of this process."""

    def __init__(self, setting: str) -> None:
        self.name, _, count = setting.partition(":")
        if self.name not in POINTS:
            raise ValueError(f"{VARIABLE} names no crash point: {setting!r}; the points are {', '.join(POINTS)}")
        self.left = int(count or 1)

    def burn(self, name: str) -> None:
        if name != self.name:
            return
        self.left -= 1
        if self.left == 0:
            # Not sys.exit: as with SIGKILL, no finally block runs and no buffer is flushed.
            os._exit(EXIT_CODE)


_fuse = _Fuse(os.environ[VARIABLE]) if VARIABLE in os.environ else None


def crash_point(name: str) -> None:
    """Exit at once, without clean-up, if the environment variable names this point."""
    if _fuse is not None:
        _fuse.burn(name)
