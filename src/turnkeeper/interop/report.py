"""ImportReport: what an import did, what it left alone and why."""

from collections.abc import Callable
from typing import TypeAlias

from turnkeeper.model.value import Value

ProgressReport: TypeAlias = Callable[[int, int, str], None]
"""Called with (done, total, what comes next) as an import or export goes on."""


TAKEN = "its id is taken by a message of another session; it was left out"


class Finding(Value):
    """One thing an import did not take as it was, and the reason. ``place`` is a file or a row of the source."""

    reason: str
    place: str | None = None
    session_id: str | None = None
    message_id: str | None = None
    part_id: str | None = None


class Counts(Value):
    """How many of each."""

    sessions: int = 0
    messages: int = 0
    parts: int = 0

    def plus(self, sessions: int = 0, messages: int = 0, parts: int = 0) -> "Counts":
        """These and some more."""
        return Counts(sessions=self.sessions + sessions, messages=self.messages + messages, parts=self.parts + parts)


class ImportReport(Value):
    """What came of an import.

    ``imported`` counts what is new here, ``unchanged`` what was here already and equal. ``grown`` is the number of
    sessions that were here and got new messages or parts. In a conflict ours was kept.
    """

    source: str
    imported: Counts = Counts()
    unchanged: Counts = Counts()
    grown: int = 0
    conflicts: tuple[Finding, ...] = ()
    skipped: tuple[Finding, ...] = ()
    unreadable: tuple[Finding, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether all that the source has is stored here now, but for what is skipped on purpose or differs."""
        return not self.unreadable and all(one.reason != TAKEN for one in self.conflicts)


class Tally:
    """Adds up a report while an import runs."""

    def __init__(self) -> None:
        self.imported = Counts()
        self.unchanged = Counts()
        self.grown = 0
        self.conflicts: list[Finding] = []
        self.skipped: list[Finding] = []
        self.unreadable: list[Finding] = []

    def report(self, source: str) -> ImportReport:
        """What was counted so far."""
        return ImportReport(
            source=source,
            imported=self.imported,
            unchanged=self.unchanged,
            grown=self.grown,
            conflicts=tuple(self.conflicts),
            skipped=tuple(self.skipped),
            unreadable=tuple(self.unreadable),
        )
