"""Coming back to a stream: what was missed is heard, nothing twice; and text put together from it is what is stored."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from heard import Event, listening
from served import Served, served

from turnkeeper.model.parts import TextPart
from turnkeeper.providers.scripted import Scripted
from turnkeeper.server.routes.event import hub
from turnkeeper.server.streams.hub import Hub, HubSettings
from turnkeeper.server.streams.stream import HEARTBEAT_S
from turnkeeper.server.v2.replay import page
from turnkeeper.store import keys
from turnkeeper.store.engine import Key, StoreUnavailable
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.testing.harness import VirtualTime

SAID = "One two three four five six. "


def a_script() -> Scripted:
    return Scripted().thinks("let me see").says(SAID * 3).calls("echo", text="x").then().says(SAID * 2)


async def stored(server: Served, session_id: str) -> dict[str, str]:
    """The text of each part as it is stored."""
    history = await server.stage.messages(session_id)
    return {part.id: part.text for one in history for part in one.parts if hasattr(part, "text")}


class Reader:
    """A client that keeps the text of each part, as the terminal UI does: parts are set, deltas added."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.ids: list[str] = []

    def hear(self, events: list[Event]) -> None:
        for event in events:
            if event.id is not None:
                self.ids.append(event.id)
            said: Any = event.said
            if event.type == "message.part.updated" and "text" in said["part"]:
                self.texts[said["part"]["id"]] = said["part"]["text"]
            elif event.type == "message.part.delta":
                # One that is not known would be ignored by clients, and its text lost.
                assert len(self.texts[said["partID"]]) == said["offset"]
                self.texts[said["partID"]] += said["delta"]


@pytest.mark.parametrize("path", ["/event", "/global/event"])
async def test_a_stream_that_is_cut_after_every_event_loses_and_repeats_nothing(tmp_path: Path, path: str) -> None:
    async with served(tmp_path, a_script()) as server:
        session_id = await server.session()
        reader, is_over = Reader(), False
        # One that is never cut, so that there is always somebody to compare with.
        async with listening(server.service, f"{path}?ids=true") as whole:
            body = {"parts": [{"type": "text", "text": "go"}]}
            await server.post(f"/session/{session_id}/prompt_async", body, 204)
            headers: dict[str, str] = {"last-event-id": f"{server.service.part(hub).id_prefix}0"}
            while not is_over:
                async with listening(server.service, path, headers) as heard:
                    await heard.until(lambda one: len(one.events) > 1)
                connected, *events = heard.events
                assert connected.said == {"resumed": True}
                # The connection was cut in the middle of the event after the first one: only that one was read.
                reader.hear(events[:1])
                headers = {"last-event-id": reader.ids[-1]}
                is_over = events[0].type == "session.idle"
            await whole.until_type("session.idle")
        assert reader.ids == [event.id for event in whole.events[1:]]
        assert len(set(reader.ids)) == len(reader.ids)
        assert reader.texts == await stored(server, session_id)


async def test_who_comes_back_too_late_is_told_so(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        for last in ("0123abcd-5", f"{server.service.part(hub).id_prefix}{'9' * 5000}", "nonsense"):
            async with listening(server.service, "/event", {"last-event-id": last}) as heard:
                await heard.until_type("server.connected")
                assert heard.events[0].said == {"resumed": False}
        async with listening(server.service, f"/event?after={last}") as heard:
            await heard.until_type("server.connected")
            assert heard.events[0].said == {"resumed": False}


async def test_ids_are_only_told_to_who_wants_them(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        async with listening(server.service, "/event") as plain, listening(server.service, "/event?ids=true") as ided:
            await server.session()
            await plain.until_type("session.created")
            await ided.until_type("session.created")
        assert b"id: " not in plain.raw
        assert ided.events[1].id is not None


async def all_durable(server: Served, session_id: str) -> list[int]:
    found, _ = await page(server.stage.tk.store, session_id, 0, 10_000)
    return [one.number for one in found]


async def test_a_session_is_replayed_from_every_number_without_gap_or_repeat(tmp_path: Path) -> None:
    async with served(tmp_path, a_script()) as server:
        session_id = await server.session()
        await server.ask(session_id, "go")
        numbers = await all_durable(server, session_id)
        assert numbers == sorted(set(numbers))
        assert len(numbers) > 15
        whole: dict[int, Any] = {}
        for place in range(len(numbers)):
            after = numbers[place - 1] if place else 0
            async with listening(server.service, f"/api/session/{session_id}/event?after={after}&ids=true") as heard:
                await heard.until_count(len(numbers) - place)
            assert [int(event.id or 0) for event in heard.events] == numbers[place:]
            assert [event.data["durable"]["seq"] for event in heard.events] == numbers[place:]
            for event in heard.events:  # However it was reached, it is the same event.
                assert whole.setdefault(event.data["durable"]["seq"], event.data) == event.data


async def test_the_replay_of_a_session_runs_on_into_what_happens_now(tmp_path: Path) -> None:
    async with served(tmp_path, a_script()) as server:
        session_id = await server.session()
        texts: dict[str, str] = {}
        seen: list[int] = []
        body = {"parts": [{"type": "text", "text": "go"}]}
        await server.post(f"/session/{session_id}/prompt_async", body, 204)
        is_over = False
        while not is_over:
            after = seen[-1] if seen else 0
            async with listening(server.service, f"/api/session/{session_id}/event?after={after}") as heard:
                await heard.until(lambda one: bool(one.events))
            event = heard.events[0]  # Cut after the first: the rest is heard again by the next.
            seen.append(event.data["durable"]["seq"])
            if event.type.endswith("text.ended"):
                texts[event.said["textID"]] = event.said["text"]
            is_over = event.type == "session.next.step.ended" and event.said["finish"] == "stop"
        await server.stage.tk.wait(session_id)
        assert seen == await all_durable(server, session_id)
        history = await server.stage.messages(session_id)
        own = [part for one in history for part in one.parts if isinstance(part, TextPart) and part.time]
        assert texts == {part.id: part.text for part in own}


async def test_what_is_told_live_is_what_is_told_again(tmp_path: Path) -> None:
    async with served(tmp_path, a_script()) as server:
        session_id = await server.session()
        async with listening(server.service, "/api/event") as live:
            await server.ask(session_id, "go")
            await live.until_type("session.idle")
        told = [event.data for event in live.events if "durable" in event.data]
        async with listening(server.service, f"/api/session/{session_id}/event") as heard:
            await heard.until(lambda one: len(one.events) >= len(told))
        again = [event.data for event in heard.events]
        assert [{**one, "location": None} for one in told] == [{**one, "location": None} for one in again]


@pytest.mark.parametrize("after", ["x", "-1", "1.5"])
async def test_a_place_that_is_no_number_is_refused(tmp_path: Path, after: str) -> None:
    async with served(tmp_path) as server:
        session_id = await server.session()
        refused = await server.get(f"/api/session/{session_id}/event?after={after}", 400)
        assert isinstance(refused, dict)
        assert refused["_tag"] == "InvalidRequestError"


async def test_there_is_no_stream_of_a_session_that_is_not_there(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        refused = await server.get("/api/session/ses_nope/event", 404)
        assert refused == {"_tag": "SessionNotFoundError", "sessionID": "ses_nope"} | refused


async def test_the_stream_of_a_session_ends_when_the_session_is_removed(tmp_path: Path) -> None:
    async with served(tmp_path, a_script()) as server:
        session_id = await server.session()
        await server.ask(session_id, "go")
        with anyio.fail_after(60):
            async with listening(server.service, f"/api/session/{session_id}/event") as heard:
                await heard.until_type("session.next.prompted")
                await server.stage.tk.remove(session_id)
                await heard.until(lambda one: one.is_complete)
        assert heard.raw.endswith(f"\n\n: session '{session_id}' was removed\n\n".encode())


async def test_a_long_text_is_replayed_whole(tmp_path: Path) -> None:
    text = "long " * 20_000
    async with served(tmp_path, Scripted().says("ok")) as server:
        session_id = await server.session()
        await server.ask(session_id, text)
        async with listening(server.service, f"/api/session/{session_id}/event") as heard:
            await heard.until_type("session.next.prompted")
        prompts = [one.said["prompt"]["text"] for one in heard.events if "prompt" in one.type.split(".")[2]]
        assert prompts == [text, text]


ASKING = {"permission": {"asks": "ask"}}


class Away(MemoryEngine):
    """A store that can be away."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away, self.missed = False, anyio.Event()

    async def scan(self, prefix: Key, **given: Any) -> list[tuple[Key, bytes]]:
        if self.is_away and prefix == ("ask",):
            self.missed.set()
            raise StoreUnavailable("the network is cut")
        return await super().scan(prefix, **given)


async def test_a_stream_outlives_a_store_that_is_away(tmp_path: Path) -> None:
    engine = Away()
    async with served(tmp_path, Scripted().calls("asks", text="x"), store=engine, config=ASKING) as server:
        session = await server.session()
        async with server.stage.tk.subscribe(session_id=session) as told:
            await server.post(f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": "go"}]}, 204)
            async for one in told:
                if one.type == "permission.asked":
                    break
        time = VirtualTime(server.stage.mint)
        ours = Hub(server.stage.tk, str(tmp_path), HubSettings(now=server.stage.mint.now, sleep=time.sleep))
        server.service.give(hub, ours)
        engine.is_away = True
        async with listening(server.service, "/event") as heard:
            await engine.missed.wait()
            engine.is_away = False
            await time.asleep(HEARTBEAT_S)
            time.advance(HEARTBEAT_S * 1000)
            await heard.until_type("permission.asked")


async def test_a_stream_outlives_a_request_to_the_user_that_cannot_be_read(tmp_path: Path) -> None:
    engine = MemoryEngine()
    async with served(tmp_path, store=engine) as server:
        await engine.put({keys.asks("ses_damaged"): b"{"})
        async with listening(server.service, "/event") as heard:
            await heard.until_type("server.connected")
            await server.session()
            await heard.until_type("session.created")
