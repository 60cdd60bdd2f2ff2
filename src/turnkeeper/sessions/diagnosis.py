"""Diagnosis: the problems that ``doctor`` found in a store."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from turnkeeper.model.value import Value

ProblemKind: TypeAlias = Literal[
    "altered entry",
    "unreadable entry",
    "impossible event",
    "truncated log",
    "lost log",
    "missing document",
    "stale document",
    "surplus document",
    "different view",
    "missing text",
    "outdated text",
    "missing blob",
    "damaged blob",
    "unused blob",
    "stray part",
    "dangling reference",
    "parent cycle",
    "unfinished revert",
    "unfinished copy",
    "medium",
]
"""The kinds of problems. ``medium`` is an error of the files that the engine reports."""


class Problem(Value):
    """A problem, the number of its event if it has one, and advice.

    Every problem is damage, except four. A dangling reference stays when a message is removed or a session is imported
    without its parent, and readers ignore it. Sessions in a parent cycle were imported so, and are listed only among
    all children. An unfinished revert is finished by the next work on the session. An outdated text was indexed by an
    earlier version, without the inputs of calls.
    """

    kind: ProblemKind
    session_id: str | None
    seq: int | None
    message: str
    fixed: bool
    advice: str

    @property
    def is_damage(self) -> bool:
        """Whether data was lost or contradicts the log."""
        return self.kind not in ("dangling reference", "parent cycle", "unfinished revert", "outdated text")


def problem(
    kind: ProblemKind,
    message: str,
    advice: str,
    *,
    session_id: str | None = None,
    seq: int | None = None,
    fixed: bool = False,
) -> Problem:
    """A problem. The defaults are here, because JSON leaves out fields that have their default."""
    return Problem(kind=kind, session_id=session_id, seq=seq, message=message, fixed=fixed, advice=advice)


class Diagnosis(Value):
    """The result of an examination. ``engine`` has facts about the engine, such as its path and versions."""

    ok: bool
    sessions: int
    messages: int
    parts: int
    events: int
    bytes: int
    problems: tuple[Problem, ...]
    engine: Mapping[str, str | int | tuple[str, ...]]
