"""Diagnosis: what ``doctor`` found in a store."""

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
    "missing blob",
    "damaged blob",
    "unused blob",
    "stray part",
    "dangling reference",
    "medium",
]
"""What can be wrong. ``medium`` is what the engine itself says of its files."""


class Problem(Value):
    """One thing that is wrong, the place of the event if it has one, and what to do about it.

    Everything is damage but a dangling reference: removing a message or importing half a family leaves those behind,
    every reader copes with them, and so they are only told.
    """

    kind: ProblemKind
    session_id: str | None
    seq: int | None
    message: str
    fixed: bool
    advice: str

    @property
    def is_damage(self) -> bool:
        """Whether something was lost or contradicts the log."""
        return self.kind != "dangling reference"


class Diagnosis(Value):
    """The whole finding. ``engine`` holds what the engine says of itself: path, build versions."""

    ok: bool
    sessions: int
    messages: int
    parts: int
    events: int
    bytes: int
    problems: tuple[Problem, ...]
    engine: Mapping[str, str | int | tuple[str, ...]]
