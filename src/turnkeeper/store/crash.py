"""Named places where a test may kill this process: just before and just after something became durable.

``TURNKEEPER_CRASH=sqlite.before-commit:3`` kills when that point is reached for the third time.
"""

import os

WRITES: tuple[str, ...] = ("admit", "promote", "attempt", "record", "settle", "end")
"""What the loop writes: a prompt, its promotion, the begin of a turn, what is streamed, what a call gave, the end."""

ASKS: tuple[str, ...] = ("ask", "reply", "answer", "leave")
"""What is written of a request to the user: that it is asked, its answer, that its call goes on or is left waiting."""

COMPACTIONS: tuple[str, ...] = ("marker", "compact", "compacted", "prune")
"""What makes room: the request for a compaction, its beginning, its end with all that follows, and a pruning."""


POINTS: tuple[str, ...] = (
    *(f"run.{when}-{what}" for what in (*WRITES, *ASKS, *COMPACTIONS) for when in ("before", "after")),
    "run.tool-begin",
    "boundary.before-admit",
    "boundary.after-admit",
    "journal.before-append",
    "journal.after-append",
    "sqlite.begin",
    "sqlite.before-commit",
    "sqlite.after-commit",
    "sqlite.before-checkpoint",
    "sqlite.after-checkpoint",
    "sqlite.begin-tidying",
    "sqlite.before-tidied",
    "sqlite.before-migration",
    "sqlite.after-migration",
    "files.staged",
    "files.intent-written",
    "files.intent-synced",
    "files.place-begun",
    "files.document-placed",
    "files.log-placed",
    "files.placed",
    "files.synced",
    "files.emptied",
)
"""Every name that may be armed."""

VARIABLE = "TURNKEEPER_CRASH"
EXIT_CODE = 137
"""What a shell reports for a process that was killed with SIGKILL."""


class _Fuse:
    """Counts down to the moment this process dies."""

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
            # Not sys.exit: no finally block, no buffer and no lock may notice, as with SIGKILL.
            os._exit(EXIT_CODE)


_fuse = _Fuse(os.environ[VARIABLE]) if VARIABLE in os.environ else None


def crash_point(name: str) -> None:
    """Die here, at once and without clean-up, if the environment says so."""
    if _fuse is not None:
        _fuse.burn(name)
