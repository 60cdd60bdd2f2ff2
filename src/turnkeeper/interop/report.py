"""ImportReport: what an import added, what it left unchanged, and what it could not read."""

from collections.abc import Callable
from typing import TypeAlias

from turnkeeper.model.value import Value

ProgressReport: TypeAlias = Callable[[int, int, str], None]
"""Called with (done, total, name of the next session) during an import or export."""

TAKEN = "its id is taken by a message of another session; it was left out"


class Finding(Value):
    """A piece of a source that was not imported, and the reason. ``place`` is a file or a row of the source."""

    reason: str
    place: str | None = None
    session_id: str | None = None
    message_id: str | None = None
    part_id: str | None = None


class Counts(Value):
    """How many sessions, messages and parts. No field has a default, so that JSON has the zeros too."""

    sessions: int
    messages: int
    parts: int

    def plus(self, sessions: int = 0, messages: int = 0, parts: int = 0) -> "Counts":
        """The sum of these counts and the given ones."""
        return Counts(sessions=self.sessions + sessions, messages=self.messages + messages, parts=self.parts + parts)


NONE = Counts(sessions=0, messages=0, parts=0)


class LineCounts(Value):
    """How many lines of files were read, and what became of each.

    A line is understood if it became a message, a part or a field of one. ``foreign`` ones are kept unchanged in a
    ForeignPart. ``reported`` ones are not in the store; a finding says why.
    """

    read: int
    understood: int
    foreign: int
    reported: int

    def plus(self, other: "LineCounts") -> "LineCounts":
        """The sum of both."""
        return LineCounts(
            read=self.read + other.read,
            understood=self.understood + other.understood,
            foreign=self.foreign + other.foreign,
            reported=self.reported + other.reported,
        )


NO_LINES = LineCounts(read=0, understood=0, foreign=0, reported=0)


class ImportReport(Value):
    """The result of an import.

    ``imported`` counts what the import added to the store, ``unchanged`` what the store already had. ``grown`` is the
    number of stored sessions that got new messages or parts. In a conflict the stored version was kept. ``lines``
    counts the lines of sources that are files of lines.
    """

    source: str
    imported: Counts
    unchanged: Counts
    grown: int
    conflicts: tuple[Finding, ...]
    skipped: tuple[Finding, ...]
    unreadable: tuple[Finding, ...]
    lines: LineCounts | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the source was read completely and no message was left out because its id is taken."""
        return not self.unreadable and all(one.reason != TAKEN for one in self.conflicts)


class Tally:
    """The mutable counters and findings of a running import."""

    def __init__(self) -> None:
        self.imported = self.unchanged = NONE
        self.grown = 0
        self.conflicts: list[Finding] = []
        self.skipped: list[Finding] = []
        self.unreadable: list[Finding] = []

    def report(self, source: str) -> ImportReport:
        """The report of what was counted so far."""
        return ImportReport(
            source=source,
            imported=self.imported,
            unchanged=self.unchanged,
            grown=self.grown,
            conflicts=tuple(self.conflicts),
            skipped=tuple(self.skipped),
            unreadable=tuple(self.unreadable),
        )
