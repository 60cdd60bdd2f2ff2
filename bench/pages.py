"""Pages and lists: the same work in a small and in a large store. The cost must not follow the total."""

from pathlib import Path

import turnkeeper
from bench.data import a_session
from bench.measure import Figure, best_of, ms
from turnkeeper.app import Turnkeeper
from turnkeeper.model.session import ZERO_TOKENS, Session, SessionTime


async def measure(folder: Path) -> list[Figure]:
    """Within half as much again between a small and a large store: noise, not growth."""
    return [*await _pages(folder / "pages.db"), *await _lists(folder)]


async def _pages(path: Path) -> list[Figure]:
    async with turnkeeper.open(f"sqlite:{path}") as tk:
        small = await a_session(tk, messages=100)
        large = await a_session(tk, messages=5000)
        middle = (await tk.messages(large.id, limit=1000)).older
        few = await best_of(30, lambda: tk.messages(small.id, limit=50))
        many = await best_of(30, lambda: tk.messages(large.id, limit=50, before=middle))
        return [_growth("page of 50 out of 5,000 messages", many, few, "page of 50 out of 100")]


async def _lists(folder: Path) -> list[Figure]:
    async with turnkeeper.open(f"sqlite:{folder / 'few.db'}") as tk:
        await fill(tk, 100)
        few = await best_of(30, lambda: tk.list(limit=50))
    async with turnkeeper.open(f"sqlite:{folder / 'many.db'}") as tk:
        await fill(tk, 20_000)
        many = await best_of(30, lambda: tk.list(limit=50))
        found = await best_of(5, lambda: tk.list(limit=50, search="number 77 "))
    return [
        _growth("newest 50 of 20,000 sessions", many, few, "newest 50 of 100"),
        Figure("title search over 20,000 sessions", ms(found), "-", 0, "a scan of titles", True),
    ]


async def fill(tk: Turnkeeper, count: int) -> None:
    """Many sessions fast: thousands of appends share each commit."""
    import anyio

    async def some(start: int) -> None:
        for number in range(start, count, 500):
            time = SessionTime(created=number, updated=number)
            await tk.store.journal.create(
                Session(
                    id=tk.store.mint.session_id(),
                    slug="bench",
                    project_id="global",
                    directory="/somewhere",
                    title=f"number {number} of many",
                    version="0",
                    cost=0,
                    tokens=ZERO_TOKENS,
                    time=time,
                )
            )

    async with anyio.create_task_group() as group:
        for start in range(min(500, count)):
            group.start_soon(some, start)


def _growth(what: str, many: float, few: float, small: str) -> Figure:
    ratio = many / few
    return Figure(what, ms(many), f"{small}: {ms(few)}", ratio, "<= 1.50", ratio <= 1.5)
