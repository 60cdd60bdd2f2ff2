"""Bus: everybody hears the same order, nobody waits for anybody, and who falls behind is told so."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.bus import Bus, Overflow, Subscription


@dataclass(frozen=True)
class Delta:
    number: int
    droppable: bool = True


async def everything(subscription: Subscription[object]) -> list[object]:
    return [notification async for notification in subscription]


async def test_every_subscriber_hears_everything_in_order() -> None:
    bus: Bus[object] = Bus()
    async with bus.subscribe() as first, bus.subscribe() as second:
        for number in range(100):
            bus.publish(number)
        bus.close()
        assert await everything(first) == list(range(100))
        assert await everything(second) == list(range(100))


async def test_a_subscriber_hears_only_what_it_asked_for() -> None:
    bus: Bus[object] = Bus()
    async with bus.subscribe(match=lambda number: number in {2, 4}) as even:
        for number in range(6):
            bus.publish(number)
        bus.close()
        assert await everything(even) == [2, 4]


async def test_a_subscriber_hears_what_is_published_from_its_entry_to_its_leaving() -> None:
    bus: Bus[object] = Bus()
    bus.publish("before")
    subscription = bus.subscribe()
    bus.publish("not yet entered")
    async with subscription:
        bus.publish("during")
        assert await anext(subscription) == "during"
        assert bus.subscribers == 1
        bus.publish("not yet heard")
    bus.publish("after")
    assert bus.subscribers == 0
    assert await everything(subscription) == []


async def test_a_waiting_subscriber_is_woken_by_the_next_notification() -> None:
    bus: Bus[object] = Bus()
    heard: list[object] = []

    async def listen(subscription: Subscription[object]) -> None:
        heard.extend(await everything(subscription))

    async with bus.subscribe() as subscription, anyio.create_task_group() as tasks:
        tasks.start_soon(listen, subscription)
        for number in range(3):
            await anyio.wait_all_tasks_blocked()
            bus.publish(number)
        await anyio.wait_all_tasks_blocked()
        bus.close()
    assert heard == [0, 1, 2]


async def test_several_tasks_may_share_one_subscription() -> None:
    bus: Bus[object] = Bus()
    heard: list[object] = []

    async def listen() -> None:
        async for notification in subscription:
            heard.append(notification)
            await checkpoint()

    async with bus.subscribe() as subscription, anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(listen)
        await anyio.wait_all_tasks_blocked()
        for number in range(20):
            bus.publish(number)
        await anyio.wait_all_tasks_blocked()
        bus.publish(20)
        bus.close()
    assert sorted(map(int, map(str, heard))) == list(range(21))


async def test_a_cancelled_listener_loses_nothing() -> None:
    bus: Bus[object] = Bus()
    async with bus.subscribe() as subscription:
        with anyio.move_on_after(0):
            await anext(subscription)
        bus.publish("kept")
        assert await anext(subscription) == "kept"


async def test_leaving_ends_the_iterator_of_another_task() -> None:
    bus: Bus[object] = Bus()
    heard: list[object] = []

    async def listen(subscription: Subscription[object]) -> None:
        heard.append(await everything(subscription))

    async with anyio.create_task_group() as tasks, bus.subscribe() as subscription:
        tasks.start_soon(listen, subscription)
        await anyio.wait_all_tasks_blocked()
    assert heard == [[]]


async def test_a_full_queue_does_not_take_a_delta() -> None:
    bus: Bus[object] = Bus()
    async with bus.subscribe(size=2) as subscription:
        for notification in ["a", Delta(1), Delta(2), Delta(3)]:
            bus.publish(notification)
        bus.close()
        assert await everything(subscription) == ["a", Delta(1)]
        assert (subscription.dropped, bus.dropped, bus.overflows) == (2, 2, 0)


async def test_waiting_deltas_make_room_for_what_must_be_heard() -> None:
    bus: Bus[object] = Bus()
    async with bus.subscribe(size=4) as subscription:
        for notification in ["a", Delta(1), "b", Delta(2), "c", Delta(3)]:
            bus.publish(notification)
        bus.close()
        assert await everything(subscription) == ["a", "b", "c", Delta(3)]
        assert (subscription.dropped, bus.dropped, bus.overflows) == (2, 2, 0)


async def test_who_falls_behind_hears_what_was_queued_and_then_overflow() -> None:
    bus: Bus[object] = Bus()
    async with bus.subscribe(size=2) as slow, bus.subscribe() as quick:
        for number in range(4):
            bus.publish(number)
        assert (bus.overflows, bus.subscribers) == (1, 1)
        assert [await anext(slow), await anext(slow)] == [0, 1]
        for _ in range(2):
            with pytest.raises(Overflow, match="subscribe again"):
                await anext(slow)
        bus.close()
        assert await everything(quick) == [0, 1, 2, 3]


async def test_a_broken_filter_ends_only_its_own_subscription() -> None:
    bus: Bus[object] = Bus()

    def broken(notification: object) -> bool:
        return 1 / int(str(notification)) > 0

    async with bus.subscribe(match=broken) as wrong, bus.subscribe() as right:
        for number in (1, 0, 2):
            bus.publish(number)
        bus.close()
        assert await everything(right) == [1, 0, 2]
        assert await anext(wrong) == 1
        with pytest.raises(ZeroDivisionError):
            await anext(wrong)


async def test_a_closed_bus_says_nothing_more() -> None:
    bus: Bus[object] = Bus()
    bus.close()
    async with bus.subscribe() as subscription:
        bus.publish("late")
        assert await everything(subscription) == []


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    script=st.lists(st.one_of(st.just("read"), st.booleans()), max_size=40),
)
def test_whatever_is_dropped_the_rest_is_in_order_and_only_deltas_are_missing(
    sizes: list[int], script: list[str | bool]
) -> None:
    """``True`` publishes a delta, ``False`` what must be heard; ``read`` lets each listener take one."""

    async def play() -> None:
        bus: Bus[Delta] = Bus()
        subscriptions = [await bus.subscribe(size=size).__aenter__() for size in sizes]
        heard: list[list[int]] = [[] for _ in sizes]
        published = [Delta(number, step) for number, step in enumerate(script) if isinstance(step, bool)]
        for number, step in enumerate(script):
            if isinstance(step, bool):
                bus.publish(Delta(number, step))
                continue
            for subscription, numbers in zip(subscriptions, heard, strict=True):
                with suppress(Overflow), anyio.move_on_after(0):
                    numbers.append((await anext(subscription)).number)
        bus.close()
        for subscription, numbers in zip(subscriptions, heard, strict=True):
            overflowed = False
            try:
                numbers += [delta.number async for delta in subscription]
            except Overflow:
                overflowed = True
            assert numbers == sorted(numbers)
            missing = [each for each in published if each.number not in numbers]
            assert overflowed or all(each.droppable for each in missing)
            assert overflowed or len(missing) == subscription.dropped

    asyncio.run(play())


async def test_a_listener_is_handed_everything_at_once_until_it_closes() -> None:
    bus: Bus[object] = Bus()
    heard: list[object] = []
    listener = bus.listen(heard.append)
    bus.publish(1)
    assert (heard, bus.subscribers) == ([1], 1)
    listener.close()
    bus.publish(2)
    assert (heard, bus.subscribers) == ([1], 0)


async def test_a_listener_that_raises_is_let_go_and_the_others_hear_on() -> None:
    bus: Bus[object] = Bus()
    heard: list[object] = []

    def broken(notification: object) -> None:
        raise ValueError("broken")

    bus.listen(broken)
    bus.listen(heard.append)
    bus.publish(1)
    bus.publish(2)
    assert (heard, bus.subscribers) == ([1, 2], 1)


async def test_closing_the_bus_ends_its_listeners() -> None:
    bus: Bus[object] = Bus()
    heard: list[object] = []
    bus.listen(heard.append)
    bus.close()
    bus.publish(1)
    assert (heard, bus.subscribers) == ([], 0)
