"""The journal beside other processes: what they write between two of its reads is never mixed in."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import pytest

from turnkeeper.core import entry
from turnkeeper.core.entry import Damaged
from turnkeeper.core.limits import BLOB_CHARS_MIN, VIEWS_CACHED_MAX
from turnkeeper.core.projector import project
from turnkeeper.core.view import SessionView
from turnkeeper.mint import Mint
from turnkeeper.model import event as e
from turnkeeper.model.notification import Notification
from turnkeeper.model.refusal import Busy, Invalid, NotFound
from turnkeeper.store import keys
from turnkeeper.store.engine import Key, StoreUnavailable
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.store.journal import Journal
from turnkeeper.testing.builders import SOME_TOKENS, a_session, a_text, a_turn, a_user

OWN = "ses_own"
DEADLINE_S = 20
USAGE = e.UsageRecorded(purpose="turn", provider_id="acme", model_id="large", tokens=SOME_TOKENS, cost=1)


class InterruptedEngine(MemoryEngine):
    """A store in which something happens just before a document is read for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[Key, Callable[[], Awaitable[object]]] = {}

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """See Engine.get."""
        for key in keys:
            if (happens := self.before.pop(key, None)) is not None:
                await happens()
        return await super().get(keys)


class CountingEngine(MemoryEngine):
    """A store that notes what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """See Engine.get."""
        self.asked.append("get")
        return await super().get(keys)

    async def read(self, log: str, *, after: int = 0, limit: int | None = None) -> list[bytes]:
        """See Engine.read."""
        self.asked.append("read")
        return await super().read(log, after=after, limit=limit)


def a_journal(engine: MemoryEngine) -> tuple[Journal, list[Notification]]:
    heard: list[Notification] = []
    return Journal(engine, Mint.fixed(step_ms=1), heard.append), heard


@pytest.mark.parametrize("key", [keys.session("prj", OWN), keys.todo(OWN), keys.message(OWN, "msg_a1_own")])
async def test_a_view_loaded_while_another_process_writes_is_of_one_moment(key: Key) -> None:
    engine = InterruptedEngine()
    other, _ = a_journal(engine)
    await other.create(a_session(OWN), *a_turn(OWN, 1)[:8])
    started = a_turn(OWN, 1)[3]
    assert isinstance(started, e.TurnStarted)
    engine.before[key] = lambda: other.append(OWN, USAGE, e.TurnEnded(message=started.message))
    ours, _ = a_journal(engine)
    view = await ours.view(OWN)
    assert not engine.before
    assert view == project(await ours.read(OWN))
    assert view.session.cost == 1
    await ours.append(OWN, USAGE)
    assert (await ours.view(OWN)).session.cost == 2


async def test_documents_that_are_gone_are_written_again_from_the_log() -> None:
    engine = MemoryEngine()
    journal, _ = a_journal(engine)
    await journal.create(a_session(OWN), *a_turn(OWN, 1), *a_turn(OWN, 2, answer="x" * 40_000))
    documents = dict(await engine.scan(()))
    await engine.put({key: None for key in documents if key[0] != "blob"})
    fresh, _ = a_journal(engine)
    assert await fresh.view(OWN) == project(await fresh.read(OWN))
    assert dict(await engine.scan(())) == documents


async def test_a_log_shorter_than_its_documents_say_is_not_written_on() -> None:
    engine = MemoryEngine()
    journal, _ = a_journal(engine)
    await journal.create(a_session(OWN), e.SessionTouched(), e.SessionTouched())
    [first, *_] = await engine.read(OWN)
    kept = dict(await engine.scan(()))
    await engine.remove({OWN: 3}, [()])
    await engine.append(OWN, 0, [first], kept)
    fresh, _ = a_journal(engine)
    with pytest.raises(Damaged, match="event 2: is missing from the log of ses_own, which once had 3"):
        await fresh.append(OWN, e.SessionTouched())


async def test_a_write_that_fails_changes_no_view_and_is_not_told() -> None:
    journal, heard = a_journal(MemoryEngine())
    view = await journal.create(a_session(OWN))
    heard.clear()
    with pytest.raises(Damaged):
        await journal.append(OWN, e.SessionTitled(title="b"), e.PromptPromoted(message_id="msg_none"))
    assert (await journal.view(OWN), heard) == (view, [])


async def test_a_decision_is_taken_again_when_another_process_was_first() -> None:
    engine = InterruptedEngine()
    ours, heard = a_journal(engine)
    other, _ = a_journal(engine)
    await ours.create(a_session(OWN))
    heard.clear()
    asked: list[str] = []

    def decide(view: SessionView) -> list[e.Event]:
        title = view.session.title
        asked.append(title)
        return [e.SessionTitled(title=f"{title}!")]

    await other.append(OWN, e.SessionTitled(title="theirs"))
    await ours.append(OWN, e.SessionTouched())  # Found out here that the log had grown.
    await ours.change(OWN, decide)
    assert asked == ["theirs"]
    assert [one.seq for one in heard] == [2, 3, 4]


async def test_a_session_removed_elsewhere_is_gone_here() -> None:
    engine = MemoryEngine()
    journal, _ = a_journal(engine)
    await journal.create(a_session(OWN))
    await engine.remove({OWN: 1}, [()])
    with pytest.raises(NotFound):
        await journal.append(OWN, e.SessionTouched())
    with pytest.raises(NotFound):
        await journal.view(OWN)


async def test_what_another_process_wrote_is_told_with_its_text() -> None:
    engine = MemoryEngine()
    ours, heard = a_journal(engine)
    other, _ = a_journal(engine)
    await ours.create(a_session(OWN))
    user = a_user(OWN, "msg_u")
    part = a_text(user, "prt_u", "x" * 40_000)
    await other.append(OWN, e.MessageRecorded(message=user, parts=(part,)))
    await ours.view(OWN)
    assert heard[-1].properties["part"] == part.but(seq=2)


async def test_a_log_ahead_of_its_documents_is_written_on_by_who_knew_the_session_before() -> None:
    engine = MemoryEngine()
    (ours, heard), (other, _) = a_journal(engine), a_journal(engine)
    await ours.create(a_session(OWN))
    documents = dict(await engine.scan(()))
    await other.append(OWN, USAGE)
    written = dict(await engine.scan(()))
    # As if the other process had been killed between its entries and its documents.
    await engine.put({**dict.fromkeys(written), **documents})
    heard.clear()
    view = await ours.append(OWN, USAGE)
    assert (view.seq, view.session.cost) == (3, 2)
    assert view == project(await ours.read(OWN))
    assert len(heard) > 1


async def test_a_session_without_news_is_looked_at_once() -> None:
    engine = CountingEngine()
    (ours, _), (other, _) = a_journal(engine), a_journal(engine)
    await ours.create(a_session(OWN))
    engine.asked.clear()
    await ours.view(OWN)
    assert engine.asked == ["get"]
    await other.append(OWN, USAGE)
    engine.asked.clear()
    assert (await ours.view(OWN)).session.cost == 1
    assert engine.asked == ["get", "read"]


async def test_a_change_needs_no_look_while_nobody_else_writes() -> None:
    engine = CountingEngine()
    ours, _ = a_journal(engine)
    await ours.create(a_session(OWN))
    engine.asked.clear()
    await ours.change(OWN, lambda _: [USAGE])
    assert engine.asked == []


async def test_a_change_refused_by_an_old_view_is_asked_of_the_newest() -> None:
    engine = MemoryEngine()
    (ours, _), (other, _) = a_journal(engine), a_journal(engine)
    await ours.create(a_session(OWN))
    await other.append(OWN, USAGE)

    def decide(view: SessionView) -> list[e.Event]:
        if view.session.cost == 0:
            raise Busy("not yet")
        return [USAGE]

    assert (await ours.change(OWN, decide)).view.session.cost == 2
    await other.append(OWN, USAGE)
    assert (await ours.change(OWN, lambda view: [USAGE] if view.session.cost == 3 else [])).view.session.cost == 4


@pytest.mark.parametrize("how", ["append", "change"])
async def test_a_session_begun_anew_elsewhere_and_just_as_long_is_written_on_as_it_is(how: str) -> None:
    engine = MemoryEngine()
    (ours, _), (other, _) = a_journal(engine), a_journal(engine)
    await ours.create(a_session(OWN), USAGE)
    await engine.remove({OWN: 2}, [()])
    await other.create(a_session(OWN), e.SessionTitled(title="anew"))
    if how == "append":
        view = await ours.append(OWN, USAGE)
    else:
        view = (await ours.change(OWN, lambda _: [USAGE])).view
    assert (view.session.title, view.session.cost, view.seq) == ("anew", 1, 3)
    assert view == project(await ours.read(OWN))
    assert list(entry.chain(OWN, await engine.read(OWN)))  # Raises if a link is wrong.


WRONG: list[e.Event] = [
    e.ModelSelected(model="acme/large"),  # type: ignore[arg-type] # Wrong on purpose.
    e.AgentSelected(agent=3),  # type: ignore[arg-type] # Wrong on purpose.
    e.MetadataSet(metadata=[1]),  # type: ignore[arg-type] # Wrong on purpose.
    e.MetadataSet(metadata={"key": object()}),
    e.SessionTitled(title="\ud800"),
    e.SessionArchived(at=float("nan")),
]


@pytest.mark.parametrize("event", WRONG, ids=lambda event: event.KIND)
async def test_an_event_that_could_not_be_read_again_is_not_appended(event: e.Event) -> None:
    engine = MemoryEngine()
    journal, heard = a_journal(engine)
    view = await journal.create(a_session(OWN))
    heard.clear()
    with pytest.raises(Invalid):
        await journal.append(OWN, e.SessionTitled(title="Good"), event)
    assert (await journal.view(OWN), await engine.length(OWN), heard) == (view, 1, [])


async def test_the_view_holds_what_was_written_and_not_what_the_caller_had() -> None:
    engine = MemoryEngine()
    journal, _ = a_journal(engine)
    await journal.create(a_session(OWN))
    view = await journal.append(OWN, e.MetadataSet(metadata={"tags": ("a", "b"), "at": 1}))
    assert view.session.metadata == {"tags": ["a", "b"], "at": 1}
    assert view == await a_journal(engine)[0].view(OWN)


class UnreadableEngine(MemoryEngine):
    """A store whose blobs cannot be read after an append, once ``fails_after_append``."""

    fails_after_append = False
    _is_failing = False

    async def append(self, log: str, after: int, entries: Sequence[bytes], *arguments: Any, **named: Any) -> None:
        """See Engine.append."""
        await super().append(log, after, entries, *arguments, **named)
        self._is_failing = self.fails_after_append

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        """See Engine.get."""
        if self._is_failing and any(key[0] == "blob" for key in keys):
            raise StoreUnavailable("the disk failed")
        return await super().get(keys)


async def test_an_append_that_is_durable_never_fails_because_its_notifications_cannot_be_made() -> None:
    engine = UnreadableEngine()
    journal, heard = a_journal(engine)
    long = a_text(a_user(OWN, "msg_1"), "prt_1", "long " * BLOB_CHARS_MIN)
    await journal.create(a_session(OWN), e.MessageRecorded(message=a_user(OWN, "msg_1")))
    await journal.append(OWN, e.PartRecorded(part=long))
    marked = (await journal.read(OWN))[-1].event
    engine.fails_after_append = True
    await journal.append(OWN, marked)
    assert await engine.length(OWN) == 4
    assert heard


async def test_a_tail_that_waits_is_woken_by_an_append_however_many_sessions_were_read_meanwhile() -> None:
    journal, _ = a_journal(MemoryEngine())
    await journal.create(a_session(OWN))
    tail = journal.tail(OWN, after=1, poll_s=3600)
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(read_other_sessions_and_append, journal)
            assert (await anext(tail)).seq == 2
    await tail.aclose()


async def read_other_sessions_and_append(journal: Journal) -> None:
    await anyio.wait_all_tasks_blocked()
    for number in range(VIEWS_CACHED_MAX + 1):
        with pytest.raises(NotFound):
            await journal.view(f"ses_{number}")
    await journal.append(OWN, e.SessionTouched())


async def test_a_session_whose_tail_has_ended_may_be_forgotten() -> None:
    journal, _ = a_journal(MemoryEngine())
    await journal.create(a_session(OWN))
    async with anyio.create_task_group() as group:
        group.start_soon(anext, journal.tail(OWN, after=1, poll_s=3600))
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    for number in range(VIEWS_CACHED_MAX + 1):
        journal.cache.slot(f"ses_{number}")
    assert journal.cache.view(OWN) is None
