"""A stream of the second generation says of each entry what the history says of it, wherever it was opened."""

import asyncio
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from heard import Event, listening
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from served import Served, served

from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.mint import Mint
from turnkeeper.model import event as e
from turnkeeper.model.context import Prefix
from turnkeeper.model.failure import AbortedFailure, MessageData
from turnkeeper.model.message import AssistantMessage, AssistantTime, ModelChoice, UserMessage
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import CompactionPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import ToolPending, ToolRunning
from turnkeeper.model.session import SessionModel
from turnkeeper.providers.script import Gate
from turnkeeper.server.service import Service
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.store.journal import Journal
from turnkeeper.testing.builders import MODEL, NOW, a_call, a_text, a_user, an_assistant, completed, running

PREFIX = Prefix(pieces=1, bytes=1, hash="x")
FAILED = AbortedFailure(data=MessageData(message="stopped"))
LONG = "long " * (BLOB_CHARS_MIN // 4)

ACTS = (
    *("admit", "admit as plan", "admit with another model", "promote", "withdraw", "select plan", "select other"),
    *("marker by hand", "marker", "summary", "copied summary", "remove marker"),
    *("turn", "shell", "step", "text", "long text", "extend", "close", "call", "run", "settle", "rewrite", "drop"),
    *("end", "fail", "remove turn", "status"),
)
"""What may happen next; what cannot happen then is left out."""


class Life:
    """Makes events that may follow each other."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.seq = 1
        self.places: dict[str, int] = {}
        self.inbox: list[str] = []
        self.marker: UserMessage | None = None
        self.turn: AssistantMessage | None = None
        self.parts: dict[str, Any] = {}
        self._names = count(1)

    def events(self, act: str) -> list[e.Event]:
        """The events of an act; none if it cannot happen now."""
        made = self._events(act)
        for event in made:
            self.seq += 1
            if isinstance(event, e.MessageRecorded | e.TurnStarted):
                self.places.setdefault(event.message.id, self.seq)
        return made

    def _events(self, act: str) -> list[e.Event]:
        if act.startswith("admit"):
            return self._admission(act)
        if act in ("promote", "withdraw"):
            kind = e.PromptPromoted if act == "promote" else e.PromptWithdrawn
            return [kind(message_id=self.inbox.pop(0))] if self.inbox else []
        if act == "select plan":
            return [e.AgentSelected(agent="plan")]
        if act == "select other":
            return [e.ModelSelected(model=SessionModel(id="other", provider_id="acme"))]
        if act == "status":
            return [e.SessionTouched()]
        if act.startswith(("marker", "remove marker", "copied")):
            return self._boundary(act)
        if self.turn is None:
            return self._start(act) if act in ("turn", "shell", "summary") else []
        return self._in_turn(act, self.turn)

    def _admission(self, act: str) -> list[e.Event]:
        agent = "plan" if act == "admit as plan" else "build"
        model = ModelChoice(provider_id="acme", model_id="other") if act == "admit with another model" else MODEL
        user = a_user(self.session_id, self._name("msg"), agent=agent, model=model)
        self.inbox.append(user.id)
        words = a_text(user, self._name("prt"), LONG if agent == "plan" else "go")
        facts: list[e.Event] = [e.PromptAdmitted(message=user, parts=(words,), delivery="queue")]
        if agent == "plan":
            facts.append(e.AgentSelected(agent=agent))
        if act != "admit":
            facts.append(e.ModelSelected(model=SessionModel(id=model.model_id, provider_id="acme")))
        return facts

    def _boundary(self, act: str) -> list[e.Event]:
        if act == "remove marker":
            marker, self.marker = self.marker, None
            return [e.MessageRemoved(message_id=marker.id, seq=self.places[marker.id])] if marker else []
        if act == "copied summary":
            copy = an_assistant(self.session_id, self._name("msg"), self._parent(), summary=True)
            done = copy.but(time=AssistantTime(created=NOW, completed=NOW + 1))
            return [e.MessageRecorded(message=done, parts=(a_text(done, self._name("prt"), "in short"),))]
        self.marker = marker = a_user(self.session_id, self._name("msg"))
        part = CompactionPart(
            id=self._name("prt"), session_id=self.session_id, message_id=marker.id, auto=act == "marker"
        )
        return [e.MessageRecorded(message=marker, parts=(part,))]

    def _start(self, act: str) -> list[e.Event]:
        self.turn = an_assistant(
            self.session_id, self._name("msg"), self._parent(), summary=True if act == "summary" else None
        )
        self.parts = {}
        return [e.TurnStarted(message=self.turn, prefix=PREFIX if act == "turn" else None)]

    def _in_turn(self, act: str, turn: AssistantMessage) -> list[e.Event]:
        texts = [part for part in self.parts.values() if isinstance(part, TextPart) and part.time is not None]
        calls = [part for part in self.parts.values() if isinstance(part, ToolPart)]
        match act:
            case "step":
                return self._record(StepStartPart(id=self._name("prt"), session_id=self.session_id, message_id=turn.id))
            case "text" | "long text":
                words = LONG if act == "long text" else ""
                return self._record(a_text(turn, self._name("prt"), words, time=Span(start=NOW)))
            case "extend" if texts and len(texts[-1].text) < BLOB_CHARS_MIN:
                last = texts[-1]
                self.parts[last.id] = last.but(text=last.text + "more")
                return [e.PartExtended(message_id=turn.id, part_id=last.id, offset=len(last.text), text="more")]
            case "close" if texts:
                return self._record(texts[-1].but(time=Span(start=NOW, end=NOW + 1)))
            case "call":
                return self._record(a_call(turn, self._name("prt")))
            case "run" if calls and isinstance(calls[-1].state, ToolPending):
                return self._record(calls[-1].but(state=running()))
            case "settle" if calls and isinstance(calls[-1].state, ToolPending | ToolRunning):
                return self._record(calls[-1].but(state=completed(LONG)))
            case "rewrite":
                part = a_text(turn, self._name("prt"), "at once")
                self.parts[part.id] = part
                return [e.MessageRecorded(message=turn.but(seq=self.places[turn.id], variant="high"), parts=(part,))]
            case "drop" if self.parts:
                name, _ = self.parts.popitem()
                return [e.PartRemoved(message_id=turn.id, part_id=name)]
            case "end" | "fail":
                self.turn = None
                ended = turn.but(time=AssistantTime(created=NOW, completed=NOW + 1))
                return [e.TurnEnded(message=ended.but(error=FAILED) if act == "fail" else ended)]
            case "remove turn":
                self.turn = None
                return [e.MessageRemoved(message_id=turn.id, seq=self.places[turn.id], part_ids=tuple(self.parts))]
            case _:
                return []

    def _record(self, part: Any) -> list[e.Event]:
        self.parts[part.id] = part
        return [e.PartRecorded(part=part)]

    def _parent(self) -> str:
        return self.marker.id if self.marker is not None else "msg_parent"

    def _name(self, kind: str) -> str:
        return f"{kind}_{next(self._names):04d}"


def told(events: list[Event]) -> list[Any]:
    """The durable events of the session among what was heard, without the place, which a history does not say."""
    found = [one.payload for one in events if one.type.startswith("session.next.") and "durable" in one.payload]
    return [{name: value for name, value in one.items() if name != "location"} for one in found]


async def history(server: Served, session_id: str, after: int = 0) -> list[Any]:
    found: list[Any] = []
    while True:
        page: Any = await server.get(f"/api/session/{session_id}/history?limit=100&after={after}")
        found += page["data"]
        if not page["hasMore"]:
            return found
        after = found[-1]["durable"]["seq"]


def a_mark(session_id: str) -> Notification:
    """What is published last, so that a listener knows it has heard all before it."""
    return Notification(type="session.idle", session_id=session_id, directory="", seq=0, properties={})


async def shown_switches(server: Served, session_id: str) -> list[str]:
    page: Any = await server.get(f"/api/session/{session_id}/message?limit=200&order=asc")
    return [one["id"] for one in page["data"] if one["type"].endswith("-switched")]


async def live(acts: list[tuple[str, str, bool]], directory: Path) -> None:
    """Live through the acts with a stream that is open during some of them, and compare."""
    async with served(directory) as server:
        session_id = await server.session()
        tk = server.stage.tk
        life, other = Life(session_id), Journal(tk.store.engine, Mint.fixed(), lambda _: None)
        heard: list[Any] = []
        seqs: set[int] = set()
        for act, who, is_heard in acts:
            begin, events = life.seq, life.events(act)
            if not events:
                continue
            if who == "forgetful":
                tk.store.journal.cache.forget(session_id)
            writer = other if who == "another process" else tk.store.journal
            await tk.store.journal.view(session_id)
            await writer.view(session_id)
            if not is_heard:
                await writer.append(session_id, *events)
                continue
            async with listening(server.service, "/api/event") as stream:
                await writer.append(session_id, *events)
                await tk.store.journal.view(session_id)
                tk.publish(a_mark(session_id))
                heard += told((await stream.until_type("session.idle")).events)
            seqs |= set(range(begin + 1, life.seq + 1))
        whole = await history(server, session_id)
        assert heard == [one for one in whole if one["durable"]["seq"] // 10_000 in seqs]
        assert await shown_switches(server, session_id) == [
            one["data"]["messageID"] for one in whole if one["type"].endswith(".switched")
        ]
        numbers = [one["durable"]["seq"] for one in whole]
        for nth, number in enumerate(numbers):
            assert await history(server, session_id, number) == whole[nth + 1 :]


WRITERS = ("this process", "forgetful", "another process")
acts = st.lists(st.tuples(st.sampled_from(ACTS), st.sampled_from(WRITERS), st.booleans()), min_size=8, max_size=40)
BY_HAND = [("marker by hand", WRITERS[0], False), ("summary", WRITERS[0], False)]


async def test_a_stream_opened_during_a_compaction_hears_who_asked_for_it(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session_id = await server.session()
        journal, life = server.stage.tk.store.journal, Life(session_id)
        for act, reason in (("marker by hand", "manual"), ("marker", "auto")):
            await journal.append(session_id, *life.events(act), *life.events("summary"))
            async with listening(server.service, "/api/event") as stream:
                await journal.append(session_id, *life.events("end"))
                await stream.until_type("session.next.compaction.ended")
            [ended] = [one for one in stream.events if one.type == "session.next.compaction.ended"]
            assert ended.said["reason"] == reason


async def test_two_servers_of_one_store_hear_each_event_once_and_one_goes_on_without_the_other(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session_id = await server.session()
        tk, life = server.stage.tk, Life(session_id)
        other = Service(tk, tmp_path, server.service.options)
        async with (
            listening(server.service, "/api/event") as first,
            listening(other, "/api/event") as second,
        ):
            await tk.store.journal.append(session_id, *life.events("admit"))
            tk.publish(a_mark(session_id))
            for stream in (first, second):
                await stream.until_type("session.idle")
                assert stream.types.count("session.next.prompt.admitted") == 1
            other.close()
            await tk.store.journal.append(session_id, *life.events("promote"))
            tk.publish(a_mark(session_id))
            await first.until_type("session.idle", 2)
            assert first.types.count("session.next.prompted") == 1


class Pausing(MemoryEngine):
    """Appends wait in the middle as long as there is a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate: Gate | None = None

    async def append(self, *given: Any, **more: Any) -> None:
        if self.gate is not None:
            await self.gate.pass_through()
        await super().append(*given, **more)


async def test_a_stream_opened_while_an_event_is_written_hears_it(tmp_path: Path) -> None:
    engine = Pausing()
    async with served(tmp_path, store=engine) as server, anyio.create_task_group() as group:
        session_id = await server.session()
        engine.gate = Gate()
        group.start_soon(server.stage.tk.store.journal.append, session_id, *Life(session_id).events("admit"))
        await engine.gate.wait_reached()
        async with listening(server.service, "/api/event") as stream:
            engine.gate.open()
            await stream.until_type("session.next.prompt.admitted")


def lives(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


def compare(acts: list[tuple[str, str, bool]]) -> None:
    with TemporaryDirectory() as directory:
        asyncio.run(live(acts, Path(directory).resolve()))


@lives(60)
@example([*BY_HAND, ("end", WRITERS[0], True)])
@example([*BY_HAND, ("text", WRITERS[0], False), ("extend", WRITERS[0], False), ("end", WRITERS[0], True)])
@example([*BY_HAND, ("rewrite", WRITERS[0], False), ("end", WRITERS[0], True)])
@given(acts)
def test_a_stream_opened_anywhere_says_what_the_history_says(acts: list[tuple[str, str, bool]]) -> None:
    compare(acts)


@pytest.mark.soak
@lives(2000)
@given(acts)
def test_every_stream_opened_anywhere_says_what_the_history_says(acts: list[tuple[str, str, bool]]) -> None:
    compare(acts)
