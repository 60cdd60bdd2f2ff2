"""Lines break, servers restart: a client comes back by itself, and what it has heard is what is stored."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from lines import Cutting, no_pause
from served import Served, served

from turnkeeper.client import Client
from turnkeeper.client.errors import Unexpected, Unreachable
from turnkeeper.client.memory import ADDRESS, InMemory
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.parts import ReasoningPart, TextPart, ToolPart
from turnkeeper.model.parts.base import BasePart
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.server import routes
from turnkeeper.server.app import App
from turnkeeper.server.asgi import Receive, Scope, Send
from turnkeeper.server.service import Service

EVENTS = 40
"""More than the stream of one answer has; a cut behind the last one cuts nothing."""
CUTS = 30
"""At least so many it has."""


def answers() -> Scripted:
    return (
        Scripted()
        .thinks("First I think.", pieces=3)
        .says("Then I look at it.", pieces=4)
        .calls("echo", text="x")
        .then()
        .says("And that is all I have to say.", pieces=6)
    )


class Screen:
    """What a person sees who hears only notifications: texts by part, deltas put where they belong."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.settled: list[str] = []
        self.began: list[str] = []

    def take(self, one: Notification | Delta) -> None:
        match one:
            case Delta(part_id=part_id, offset=offset, delta=delta):
                assert len(self.texts[part_id]) == offset, "a gap, or a repetition"
                self.texts[part_id] += delta
            case Notification(type="message.part.updated", properties={"part": BasePart() as part}):
                if isinstance(part, TextPart | ReasoningPart):
                    self.texts[part.id] = part.text
                    if part.time is not None and part.time.end is not None:
                        self.settled.append(part.id)
            case Notification(
                type="message.updated", properties={"info": UserMessage() | AssistantMessage() as message}
            ):
                if message.id not in self.began:
                    self.began.append(message.id)


async def stored(server: Served, session_id: str) -> dict[str, str]:
    """The texts of a session as they are kept."""
    messages = await server.stage.messages(session_id)
    parts = [part for one in messages for part in one.parts]
    return {part.id: part.text for part in parts if isinstance(part, TextPart | ReasoningPart)}


@asynccontextmanager
async def cut_client(server: Served, after: "dict[int, int]") -> AsyncIterator[tuple[Client, Cutting]]:
    """A client whose nth stream breaks behind so many events."""
    cutting = Cutting(InMemory(server.app), after.get)
    async with Client(ADDRESS, transport=cutting, sleep=no_pause) as client:
        yield client, cutting


@pytest.mark.parametrize("after", range(EVENTS))
async def test_a_stream_cut_behind_any_event_leaves_the_text_that_is_stored(tmp_path: Path, after: int) -> None:
    async with served(tmp_path, answers()) as server, cut_client(server, {1: after + 1}) as (client, cutting):
        session_id = (await client.create(title="T")).id
        screen = Screen()
        async with client.subscribe(session_id=session_id) as heard:
            await client.prompt(session_id, "go")
            heard.close()
            async for one in heard:
                screen.take(one)
        kept = await stored(server, session_id)
        assert {name: text for name, text in screen.texts.items() if name in kept} == kept
        assert sorted(screen.settled) == sorted(set(screen.settled)), "a part was told twice"
        assert screen.began == [one.info.id for one in (await client.messages(session_id)).items]
        assert cutting.streams == 2 or after >= CUTS, "nothing was cut"


@pytest.mark.parametrize("every", [1, 2, 3, 5, 8])
async def test_a_stream_that_is_cut_again_and_again_is_heard_whole(tmp_path: Path, every: int) -> None:
    gate = Gate()
    provider = answers().then().waits(gate).says("The end.")
    async with served(tmp_path, provider) as server:
        cutting = Cutting(InMemory(server.app), lambda _: every + 1)
        async with Client(ADDRESS, transport=cutting, sleep=no_pause) as client:
            session_id = (await client.create(title="T")).id
            screen = Screen()
            async with client.subscribe(session_id=session_id) as heard:
                await client.prompt_async(session_id, "go")
                async for one in heard:
                    screen.take(one)
                    if one.type == "session.idle":
                        break
            assert screen.texts == await stored(server, session_id)
            assert cutting.streams > 2


@pytest.mark.parametrize("every", [1, 2, 7])
async def test_who_listens_to_everything_hears_it_whole_on_a_line_that_breaks(tmp_path: Path, every: int) -> None:
    async with (
        served(tmp_path, answers()) as server,
        Client.in_memory(server.app) as whole,
        whole.subscribe() as steady,
    ):
        cutting = Cutting(InMemory(server.app), lambda nth: 3 if nth == 1 else every + 1)
        async with Client(ADDRESS, transport=cutting, sleep=no_pause) as client, client.subscribe() as heard:
            session_id = (await client.create(title="T")).id
            await client.prompt(session_id, "go")
            expected = [one async for one in _until_idle(steady)]
            assert [one async for one in _until_idle(heard)] == expected
            assert cutting.streams > 4


async def _until_idle(heard: AsyncIterator[Notification | Delta]) -> AsyncIterator[Notification | Delta]:
    async for one in heard:
        yield one
        if one.type == "session.idle":
            return


@pytest.mark.parametrize("after", range(1, 24, 2))
async def test_the_events_of_a_session_have_no_gap_and_no_repetition(tmp_path: Path, after: int) -> None:
    async with served(tmp_path, answers()) as server:
        cutting = Cutting(InMemory(server.app), lambda _: after)
        async with Client(ADDRESS, transport=cutting, sleep=no_pause) as client:
            session_id = (await client.create(title="T")).id
            await client.prompt(session_id, "go")
            past, _ = await client.history(session_id, limit=100)
            tail = client.events(session_id)
            try:
                assert [await anext(tail) for _ in past] == list(past)
            finally:
                await tail.aclose()  # type: ignore[attr-defined] # A generator has it.


class Restarting:
    """An application in whose place another one comes: nothing of what the first remembered is known."""

    def __init__(self, server: Served) -> None:
        self._server = server
        self.app = server.app

    def restart(self) -> None:
        old = self._server.service
        again = Service(old.turnkeeper, old.directory, old.options)
        self.app = App(again, routes.load)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


async def test_what_another_server_cannot_tell_any_more_is_read(tmp_path: Path) -> None:
    gate = Gate()
    provider = Scripted().says("One.").calls("echo", text="x").then().waits(gate).says("Two.")
    async with served(tmp_path, provider) as server:
        place = Restarting(server)
        cutting = Cutting(InMemory(place), lambda nth: 12 if nth == 1 else None)
        async with Client(ADDRESS, transport=cutting, sleep=no_pause) as client:
            session_id = (await client.create(title="T")).id
            screen, types = Screen(), []
            async with client.subscribe(session_id=session_id) as heard:
                place.restart()
                await client.prompt_async(session_id, "go")
                await gate.wait_reached()
                gate.open()
                async for one in heard:
                    types.append((one.type, one.properties.get("resumed") if isinstance(one, Notification) else None))
                    screen.take(one)
                    if one.type == "session.idle":
                        break
            assert ("server.connected", False) in types
            assert screen.texts == await stored(server, session_id)
            tools = [part for one in (await client.messages(session_id)).items for part in one.parts]
            assert any(isinstance(part, ToolPart) for part in tools)


async def test_who_listens_to_everything_is_told_of_a_gap(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        place = Restarting(server)
        cutting = Cutting(InMemory(place), lambda nth: 2 if nth == 1 else None)
        async with Client(ADDRESS, transport=cutting, sleep=no_pause) as client, client.subscribe() as heard:
            await client.create(title="heard")
            assert (await anext(heard)).type == "session.created"
            place.restart()
            gap = await anext(heard)
            assert isinstance(gap, Notification)
            assert (gap.type, gap.properties) == ("server.connected", {"resumed": False})
            await client.create(title="after")
            assert (await anext(heard)).type == "session.created"


class Failing(httpx2.AsyncBaseTransport):
    """A line that breaks before any answer, so many times after the first answer."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, times: int) -> None:
        self._inner, self.left, self.requests = inner, times, 0

    async def __aenter__(self) -> "Failing":
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._inner.__aexit__(*error)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        answer = await self._inner.handle_async_request(request)
        if self.requests > 1 and self.left > 0:
            self.left -= 1
            await answer.aread()
            raise httpx2.ReadError("the line was cut")
        return answer


async def test_a_prompt_whose_answer_was_lost_is_sent_again_and_admitted_once(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("Hello.")) as server:
        failing = Failing(InMemory(server.app), 3)
        async with Client(ADDRESS, transport=failing, sleep=no_pause) as client:
            session_id = (await client.create(title="T")).id
            answer = await client.prompt(session_id, "hi")
            assert [part.text for part in answer.parts if isinstance(part, TextPart)] == ["Hello."]
            assert len((await client.messages(session_id)).items) == 2
            assert failing.left == 0


async def test_what_is_not_harmless_is_not_sent_again(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        failing = Failing(InMemory(server.app), 1)
        async with Client(ADDRESS, transport=failing, sleep=no_pause) as client:
            await client.health()
            with pytest.raises(Unreachable):
                await client.create(title="T")
            assert len((await client.list()).items) == 1


async def test_a_server_that_stays_away_is_given_up_after_a_while(tmp_path: Path) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async with served(tmp_path) as server:
        failing = Failing(InMemory(server.app), 1000)
        async with Client(ADDRESS, transport=failing, sleep=pause) as client:
            await client.health()
            with pytest.raises(Unreachable, match="turnkeeper serve"):
                await client.list()
    assert pauses == sorted(pauses)
    assert 10 < sum(pauses) < 60


async def test_nobody_at_the_address_is_said_at_once() -> None:
    async with Client("http://127.0.0.1:1", sleep=_never) as client:
        with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:1 .*turnkeeper serve"):
            await client.list()
        with pytest.raises(Unreachable, match="turnkeeper serve"):
            async with client.subscribe():
                pass


async def _never(seconds: float) -> None:
    raise AssertionError("nobody waits for what was never there")


async def test_another_program_at_the_address_is_no_server_of_ours() -> None:
    async def other(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"<h1>Welcome</h1>"})

    async with Client.in_memory(other) as client:
        with pytest.raises(Unexpected, match="does not answer like a Turnkeeper server"):
            await client.list()


async def test_what_an_application_raises_is_raised_and_ends_only_its_request() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise LookupError("a bug")

    async with Client.in_memory(broken) as client:
        for _ in range(2):
            with pytest.raises(LookupError, match="a bug"):
                await client.health()


async def test_who_stops_listening_leaves_no_stream_open(tmp_path: Path) -> None:
    async with served(tmp_path) as server, Client.in_memory(server.app) as client:
        async with client.subscribe():
            pass
        with anyio.move_on_after(0.01):
            async with client.subscribe() as heard:
                async for _ in heard:
                    pass
        from turnkeeper.server.streams.hub import Hub

        [hub] = server.service.made(Hub)
        with anyio.fail_after(60):
            while hub.subscribers:
                await anyio.lowlevel.checkpoint()
