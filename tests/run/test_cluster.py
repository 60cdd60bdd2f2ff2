"""Several hosts on one store, simulated: whatever fails, one writes at a time, and every prompt gets its answer.

A failure names its seed; ``simulate(SEED)`` shows it again, step by step.
"""

from collections.abc import Mapping, Sequence

import pytest
from cluster import Hub, simulate

from turnkeeper.store.engine import NO_DOCUMENTS, NO_TEXTS, Key

FEW, MANY, AT_ONCE = 200, 10_000, 25
ONCE_LOST = (317, 746, 814, 816, 1048, 3280)
"""Seeds of the long run that have found something. 317: an owner gave up because the store failed, its late release
made the session idle, and it died before it could run the session again. The others: a session was taken over and its
turn closed; then the store failed, or a wake ran the session, before it was noted that it goes on. 3280:
its run was stopped for its lease before it had taken the session, and that it goes on was forgotten."""


@pytest.mark.parametrize("first", range(0, FEW, AT_ONCE))
def test_hosts_that_fail_lose_nothing_and_do_nothing_twice(first: int) -> None:
    assert problems(first, AT_ONCE) == {}


@pytest.mark.parametrize("seed", ONCE_LOST)
def test_what_the_long_run_has_found_stays_mended(seed: int) -> None:
    assert problems(seed, 1) == {}


@pytest.mark.soak
@pytest.mark.parametrize("first", range(FEW, FEW + MANY, 500))
def test_hosts_that_fail_lose_nothing_and_do_nothing_twice_ten_thousand_times(first: int) -> None:
    assert problems(first, 500) == {}


def problems(first: int, count: int, hub: type[Hub] = Hub) -> dict[int, list[str]]:
    """What went wrong, by seed."""
    found = {seed: simulate(seed, hub).problems for seed in range(first, first + count)}
    return {seed: said for seed, said in found.items() if said}


def test_a_seed_gives_the_same_history_again() -> None:
    assert simulate(7) == simulate(7)


class WithoutFences(Hub):
    """A store that checks the length of a log and lets any owner write."""

    async def append(
        self,
        log: str,
        after: int,
        entries: Sequence[bytes],
        documents: Mapping[Key, bytes | None] = NO_DOCUMENTS,
        *,
        texts: Mapping[Key, str | None] = NO_TEXTS,
        fence: int | None = None,
        last: bytes | None = None,
        by: str = "",
    ) -> None:
        known = self._fences.pop(log, 0)
        try:
            await super().append(log, after, entries, documents, texts=texts, fence=fence, last=last, by=by)
        finally:
            self._fences[log] = max(known, self._fences.get(log, 0))


def test_without_fences_the_simulation_finds_two_writers() -> None:
    seeds = (simulate(seed, WithoutFences).problems for seed in range(FEW))
    assert any("wrote under fence" in said for found in seeds for said in found)
