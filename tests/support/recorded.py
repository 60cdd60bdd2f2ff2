"""Recorded answers of real providers, which lie beside the project in continuous integration and are not part of it."""

import functools
from pathlib import Path

import msgspec
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "recordings"

needs_recordings = pytest.mark.skipif(
    not (FOLDER / "index.jsonl").is_file(),
    reason="there are no recordings of providers in ../shared/recordings beside the project; this test needs them",
)
"""Marks a test that is skipped where the recordings are not there."""


class Recording(msgspec.Struct, frozen=True):
    """One recorded answer: ``kind`` is ``sse`` (a stream), ``json`` (a whole answer) or ``err`` (an error status)."""

    id: str
    file: str
    kind: str
    protocol: str
    family: str
    model: str | None = None
    source: str = ""
    status: int = 200
    headers: dict[str, str] = {}

    def body(self) -> bytes:
        """The body as it was recorded."""
        return (FOLDER / self.file).read_bytes()


class Pair(msgspec.Struct, frozen=True):
    """The messages that the recorded client added to its next request after the answer ``of``."""

    of: str
    protocol: str
    family: str
    model: str
    added: list[dict[str, object]]


@functools.cache
def recordings() -> tuple[Recording, ...]:
    """Every recording of the index; none where the recordings are not there."""
    index = FOLDER / "index.jsonl"
    lines = index.read_bytes().splitlines() if index.is_file() else ()
    return tuple(msgspec.json.decode(line, type=Recording) for line in lines)


def of_kind(*kinds: str) -> tuple[Recording, ...]:
    """The recordings of these kinds."""
    return tuple(one for one in recordings() if one.kind in kinds)


@functools.cache
def pairs() -> tuple[Pair, ...]:
    """Every recorded next request; none where the recordings are not there."""
    index = FOLDER / "pairs.jsonl"
    lines = index.read_bytes().splitlines() if index.is_file() else ()
    return tuple(msgspec.json.decode(line, type=Pair) for line in lines)
