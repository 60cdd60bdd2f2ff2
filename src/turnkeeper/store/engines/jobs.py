"""Jobs of an engine that writes on a thread of its own: what is written, and how its caller is answered."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec


class Append(msgspec.Struct, eq=False):
    """Entries, documents and texts to write, under paths. ``log`` is None if there are documents only."""

    log: str | None
    after: int
    entries: Sequence[bytes]
    documents: Sequence[tuple[str, bytes | None]]
    texts: Sequence[tuple[str, str | None]]
    fence: int | None
    last: bytes | None


class Removal(msgspec.Struct, eq=False):
    """Logs and subtrees to remove. ``orphans`` are keys that are removed if their path is then empty."""

    logs: Mapping[str, int]
    paths: Sequence[str]
    orphans: Sequence[tuple[str, str]]


Job = Append | Removal
Call = tuple[Job, "asyncio.Future[None]"]
"""A job and the future that its caller awaits."""


def answer(group: Sequence[Call], failures: Sequence[Exception | None]) -> None:
    """Resolve the futures of a group. Each event loop is woken once: that costs as much as writing a job."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[None], Exception | None]]] = {}
    for (_, done), failure in zip(group, failures, strict=True):
        by_loop.setdefault(done.get_loop(), []).append((done, failure))
    for loop, answers in by_loop.items():
        with suppress(RuntimeError):  # The event loop has ended, with its callers.
            loop.call_soon_threadsafe(_resolve, answers)


def _resolve(answers: "list[tuple[asyncio.Future[None], Exception | None]]") -> None:
    for done, failure in answers:
        if done.done():
            continue
        if failure is None:
            done.set_result(None)
        else:
            done.set_exception(failure)
