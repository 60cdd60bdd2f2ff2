"""Begun: what is there is had at once, and what is not is waited for as if it had not been begun."""

import anyio
import pytest

from turnkeeper.server.begun import Begun


async def word(ready: anyio.Event, seen: list[str]) -> str:
    """Waits until it is let go, if it is not."""
    seen.append("begun")
    if not ready.is_set():
        try:
            await ready.wait()
        except BaseException as error:
            seen.append(type(error).__name__)
            raise
    seen.append("ended")
    return "word"


async def test_what_need_not_be_waited_for_is_there_at_once_and_can_be_awaited_twice() -> None:
    ready, seen = anyio.Event(), list[str]()
    ready.set()
    begun = Begun(word(ready, seen))
    assert (begun.is_done, seen) == (True, ["begun", "ended"])
    assert [await begun, await begun] == ["word", "word"]


async def test_what_must_be_waited_for_goes_on_where_it_stopped() -> None:
    ready, seen = anyio.Event(), list[str]()
    begun = Begun(word(ready, seen))
    assert (begun.is_done, seen) == (False, ["begun"])
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: _set(ready))
        assert await begun == "word"
    assert seen == ["begun", "ended"]


async def _set(ready: anyio.Event) -> None:
    ready.set()


async def test_it_hears_that_nobody_waits_any_more() -> None:
    seen = list[str]()
    begun = Begun(word(anyio.Event(), seen))
    with anyio.move_on_after(0) as scope:
        await begun
    assert scope.cancelled_caught
    assert seen == ["begun", "CancelledError"]


async def test_what_it_raises_is_raised() -> None:
    async def fails(waits: bool) -> None:
        if waits:
            await anyio.lowlevel.checkpoint()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Begun(fails(waits=False))
    with pytest.raises(ValueError, match="no"):
        await Begun(fails(waits=True))
