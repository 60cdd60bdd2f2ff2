"""Many streams at once: what happens is encoded once, sent joined, and who does not read is let go alone."""

from pathlib import Path

import anyio
from heard import Heard, listening
from hypothesis import given
from hypothesis import strategies as st
from served import served

from turnkeeper.model.notification import Delta, Notification
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.server.routes.event import hub
from turnkeeper.server.streams.channel import Channel, Recent, StreamFilter
from turnkeeper.server.streams.frame import OutgoingFrame, joined
from turnkeeper.server.streams.hub import Hub, HubSettings
from turnkeeper.server.streams.stream import Stream
from turnkeeper.server.streams.subscriber import Subscriber
from turnkeeper.testing.harness import EachSession

SESSIONS, LISTENERS = 128, 256


def a_delta(part: int, offset: int, text: str, session: int = 0) -> Delta:
    return Delta(
        session_id=f"ses_{session}",
        directory="/here",
        message_id=f"msg_{session}",
        part_id=f"prt_{part}",
        field="text",
        delta=text,
        offset=offset,
    )


def a_note(session: int = 0, kind: str = "session.idle") -> Notification:
    return Notification(
        type=kind, session_id=f"ses_{session}", directory="/here", seq=1, properties={"sessionID": f"ses_{session}"}
    )


def test_deltas_of_a_part_are_joined_until_something_else_happens_in_their_session() -> None:
    happened: list[Notification | Delta]
    happened = [a_delta(1, 0, "a"), a_delta(2, 0, "x", 1), a_delta(1, 1, "b"), a_note(0), a_delta(1, 2, "c")]
    assert joined(happened) == [a_delta(1, 0, "ab"), a_delta(2, 0, "x", 1), a_note(0), a_delta(1, 2, "c")]


def test_deltas_with_a_gap_between_them_stay_apart() -> None:
    happened: list[Notification | Delta]
    happened = [a_delta(1, 0, "a"), a_delta(1, 5, "b")]
    assert joined(happened) == happened


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["a", "bc", "!"])), max_size=30))
def test_joined_or_not_each_part_has_the_same_text_and_each_session_the_same_order(
    steps: list[tuple[int, str]],
) -> None:
    happened: list[Notification | Delta] = []
    lengths = {0: 0, 1: 0, 2: 0}
    for part, text in steps:
        if text == "!":
            happened.append(a_note(part % 2))
        else:
            happened.append(a_delta(part, lengths[part], text, part % 2))
            lengths[part] += len(text)

    def heard(events: list[Notification | Delta], session: str) -> list[tuple[str, str]]:
        """What a session's client has after each of its notifications: the text of all parts by then."""
        texts: dict[str, str] = {}
        seen = []
        for one in events:
            if one.session_id != session:
                continue
            if isinstance(one, Delta):
                assert len(texts.get(one.part_id, "")) == one.offset
                texts[one.part_id] = texts.get(one.part_id, "") + one.delta
            else:
                seen.append((one.type, str(sorted(texts.items()))))
        return [*seen, ("end", str(sorted(texts.items())))]

    for session in ("ses_0", "ses_1"):
        assert heard(joined(happened), session) == heard(happened, session)


def test_a_frame_is_encoded_once_however_many_hear_it() -> None:
    frame = OutgoingFrame(a_delta(1, 0, "a"), 1, "evt_1", 0)
    assert frame.first is frame.first
    assert frame.second is frame.second
    channels = [
        Channel(StreamFilter("local", "/here")),
        Channel(StreamFilter("local", "/there")),
        Channel(StreamFilter("global")),
    ]
    here, there, everywhere = (channel.chunk([frame]) for channel in channels)
    assert (frame.first in here, there, frame.first in everywhere) == (True, b"", True)


def test_what_is_kept_for_those_who_come_back_is_bounded() -> None:
    recent = Recent(frames_max=3)
    recent.add(OutgoingFrame(a_note(), nth, "evt_1", 0) for nth in range(1, 6))
    assert [one.nth for one in recent.after(3) or ()] == [4, 5]
    assert [one.nth for one in recent.after(2) or ()] == [3, 4, 5]
    assert recent.after(1) is None
    small = Recent(bytes_max=1)
    small.add(OutgoingFrame(a_note(), nth, "evt_1", 0) for nth in range(1, 4))
    assert (small.after(1), [one.nth for one in small.after(2) or ()]) == (None, [3])


async def test_what_waits_is_taken_in_one_piece() -> None:
    subscriber = Subscriber()
    for chunk in (b"a", b"b", b"c"):
        subscriber.offer(chunk)
    assert await subscriber.take() == b"abc"
    subscriber.offer(b"d")
    subscriber.end()
    assert (await subscriber.take(), await subscriber.take(), subscriber.offer(b"e")) == (b"d", None, False)


async def test_who_can_wait_waits_for_room() -> None:
    subscriber = Subscriber(4)
    async with anyio.create_task_group() as group:
        await subscriber.put(b"abc")
        group.start_soon(subscriber.put, b"def")
        await anyio.wait_all_tasks_blocked()
        assert await subscriber.take() == b"abc"
        await anyio.wait_all_tasks_blocked()
        assert (await subscriber.take(), subscriber.is_dropped) == (b"def", False)


async def test_who_does_not_read_is_let_go_and_nobody_else_notices(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        ours = Hub(server.stage.tk, str(tmp_path), HubSettings(now=server.stage.mint.now, waiting_max=2_000))
        server.service.give(hub, ours)
        async with (
            listening(server.service, "/event") as reads,
            listening(server.service, "/event", stall=anyio.Event()) as stalled,
        ):
            await anyio.wait_all_tasks_blocked()
            for number in range(20):
                await server.session(title=f"number {number}")
            await reads.until_type("session.created", 20)
            await anyio.wait_all_tasks_blocked()
            assert (stalled.is_over, stalled.is_complete, ours.subscribers, ours.counts.dropped) == (True, False, 1, 1)
            await server.session(title="and on")
            await reads.until_type("session.created", 21)


async def test_128_sessions_stream_to_256_listeners_of_whom_one_is_stalled(tmp_path: Path) -> None:
    gates = [Gate() for _ in range(SESSIONS)]
    left = list(gates)

    def script() -> Scripted:
        return Scripted().says("one two ").waits(left.pop()).says("three four")

    async def never(_: float) -> None:
        """Without heartbeats, which each stream has for itself: on a slow machine they would fall into this test."""
        await anyio.sleep_forever()

    async with served(tmp_path, EachSession(script)) as server:
        ours = Hub(server.stage.tk, str(tmp_path), HubSettings(now=server.stage.mint.now, sleep=never))
        server.service.give(hub, ours)
        ids = [await server.session() for _ in range(SESSIONS)]
        listeners = [Heard() for _ in range(LISTENERS)]
        stalled = Heard(stall=anyio.Event())
        async with anyio.create_task_group() as group:
            for one in (*listeners, stalled):
                group.start_soon(Stream(ours, StreamFilter("local", str(tmp_path))), {}, one.receive, one.send)
            for session_id in ids:
                await server.stage.tk.prompt(session_id, "go")
            for gate in gates:
                gate.open()
            for session_id in ids:
                await server.stage.tk.wait(session_id)
            for one in listeners:
                await one.until(lambda heard: heard.raw.count(b'"session.idle"') == SESSIONS)
            stalled.hang_up()
            server.service.close()
        whole, *others = (one.raw.partition(b"\n\n")[2] for one in listeners)  # Each is greeted by itself.
        assert all(other == whole for other in others)
        assert whole.count(b'"session.idle"') == SESSIONS
        texts: dict[str, str] = {}
        for event in listeners[0].events:
            if event.type == "message.part.delta":
                assert len(texts.get(event.said["partID"], "")) == event.said["offset"]
                texts[event.said["partID"]] = texts.get(event.said["partID"], "") + event.said["delta"]
        assert sorted(texts.values()) == ["one two "] * SESSIONS + ["three four"] * SESSIONS
        # Far fewer sendings than events for each of them.
        assert listeners[0].chunks < len(listeners[0].events)
