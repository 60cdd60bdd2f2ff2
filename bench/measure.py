"""How a thing is timed, and how a figure is told."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One row of the report. ``ratio`` is ours to the floor's; ``aim`` says what it should be."""

    what: str
    ours: str
    floor: str
    ratio: float
    aim: str
    good: bool


async def best_of(times: int, work: Callable[[], Awaitable[object]]) -> float:
    """The shortest of several runs, in seconds: the one least disturbed."""
    shortest = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        await work()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def table(figures: list[Figure]) -> str:
    """The report as Markdown."""
    rows = ["| what | ours | floor | ratio | aim | |", "|---|---|---|---|---|---|"]
    for figure in figures:
        mark = "ok" if figure.good else "MISSED"
        rows.append(f"| {figure.what} | {figure.ours} | {figure.floor} | {figure.ratio:.2f} | {figure.aim} | {mark} |")
    return "\n".join(rows)


def ms(seconds: float) -> str:
    """Seconds for people."""
    return f"{seconds * 1000:.2f} ms"
