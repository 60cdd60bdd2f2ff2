"""Event streams as clients hear them: framing, order, places, heartbeats, and the end."""

from pathlib import Path

import anyio
import pytest
from heard import Event, Heard, listening
from served import Served, served
from shapes import check_event, check_second

from turnkeeper.model import stream as s
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.server.routes.event import hub
from turnkeeper.server.streams.hub import Hub, HubSettings
from turnkeeper.server.streams.stream import HEARTBEAT_S, HEARTBEAT_SECOND_S
from turnkeeper.testing.harness import Told, VirtualTime

STREAMS = ("/event", "/global/event", "/api/event")


def told(heard: Heard) -> list[str]:
    """What was heard after the beginning, in short: parts by their kind and state, neighbouring deltas in one."""
    found: list[str] = []
    for event in heard.events[1:]:
        one = _told(event)
        if one.startswith("delta ") and found and found[-1].startswith("delta "):
            found[-1] = f"{found[-1][:-1]}{one.removeprefix('delta ')[1:]}"
        else:
            found.append(one)
    return found


def _told(event: Event) -> str:
    said = event.said
    match event.type:
        case "message.updated":
            done = "" if "completed" not in said["info"]["time"] else " done"
            return f"{said['info']['role']}{done}"
        case "message.part.updated":
            part = said["part"]
            state = part["state"]["status"] if part["type"] == "tool" else ""
            text = f" {part['text']!r}" if "text" in part else ""
            return f"{part['type']}{text}{' ' if state else ''}{state}"
        case "message.part.delta":
            return f"delta {said['delta']!r}"
        case "session.status":
            return str(said["status"]["type"])
        case kind:
            return kind


@pytest.mark.parametrize("path", STREAMS)
async def test_a_stream_begins_with_its_headers_and_that_it_is_connected(tmp_path: Path, path: str) -> None:
    async with served(tmp_path) as server, listening(server.service, path) as heard:
        await heard.until_type("server.connected")
        assert heard.status == 200
        assert (
            heard.headers.items()
            >= {
                "content-type": "text/event-stream",
                "cache-control": "no-cache, no-transform",
                "x-accel-buffering": "no",
                "x-content-type-options": "nosniff",
            }.items()
        )
        [event] = heard.events
        assert event.said == {}
        assert event.payload["id"].startswith("evt_")


async def test_a_stream_of_a_directory_that_is_a_loop_of_links_is_empty(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    async with served(tmp_path) as server, listening(server.service, f"/event?directory={loop}") as heard:
        await heard.until_type("server.connected")
        assert heard.status == 200


async def test_frames_are_one_line_of_data_and_an_empty_one(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        async with listening(server.service, "/event") as heard:
            await server.session(title="two\nlines")
            await heard.until_type("session.created")
        assert [line[:6] for line in heard.raw.split(b"\n")] == [b"data: ", b""] * 2 + [b""]


async def test_a_turn_is_told_in_the_order_on_record(tmp_path: Path) -> None:
    script = Scripted().thinks("hm ok").says("Hello there").calls("echo", text="x").then().says("done")
    async with served(tmp_path, script) as server:
        session_id = await server.session()
        async with listening(server.service, "/event") as heard:
            await server.ask(session_id, "hi")
            await heard.until_type("session.idle")
    order = [one for one in told(heard) if one != "session.updated"]
    assert order == [
        "user",
        "text 'hi'",
        "busy",
        "user",
        "text 'hi'",
        "assistant",
        "step-start",
        "reasoning ''",
        "delta 'hm ok'",
        "reasoning 'hm ok'",
        "text ''",
        "delta 'Hello there'",
        "text 'Hello there'",
        "tool pending",
        "tool running",
        "assistant",  # The tokens that the answer took.
        "tool completed",
        "step-finish",
        "assistant done",
        "assistant",
        "step-start",
        "text ''",
        "delta 'done'",
        "text 'done'",
        "step-finish",
        "assistant done",
        "idle",
        "session.idle",
    ]


ONE_PACKET: list[s.StreamEvent] = [
    s.Start(),
    s.StartStep(),
    s.ReasoningDelta(id="r", text="hm ok"),
    s.ReasoningEnd(id="r"),
    s.TextDelta(id="t", text="Hello there"),
    s.TextEnd(id="t"),
    s.ToolCall(id="c", name="echo", input={"text": "x"}),
    s.FinishStep(reason="tool-calls"),
    s.Finish(),
]
DONE: list[s.StreamEvent] = [
    s.Start(),
    s.StartStep(),
    s.TextDelta(id="t", text="done"),
    s.TextEnd(id="t"),
    s.FinishStep(reason="stop"),
    s.Finish(),
]


@pytest.mark.parametrize("path", STREAMS)
async def test_an_answer_in_one_packet_has_deltas_and_a_pending_call_on_every_stream(tmp_path: Path, path: str) -> None:
    async with served(tmp_path, Told([ONE_PACKET], [DONE])) as server:
        session_id = await server.session()
        async with listening(server.service, path) as heard:
            await server.ask(session_id, "hi")
            if path == "/api/event":
                await heard.until_type("session.next.step.ended", 2)
            else:
                await heard.until_type("session.idle")
    deltas = [one.said["delta"] for one in heard.events if one.type.endswith(".delta")]
    assert deltas == ["hm ok", "Hello there", "done"]
    if path.startswith("/api"):
        assert heard.types.count("session.next.tool.input.started") == 1
    else:
        assert [one for one in told(heard) if one.startswith("tool")] == [
            "tool pending",
            "tool running",
            "tool completed",
        ]


async def test_an_answer_in_one_packet_has_deltas_for_who_subscribes_in_python(tmp_path: Path) -> None:
    async with served(tmp_path, Told([ONE_PACKET], [DONE])) as server:
        session_id = await server.session()
        async with server.stage.tk.subscribe(session_id=session_id) as heard:
            await server.ask(session_id, "hi")
            heard.close()
            said = [one.delta async for one in heard if isinstance(one, Delta)]
    assert said == ["hm ok", "Hello there", "done"]


async def test_the_final_text_is_heard_before_the_prompt_is_answered(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("the end")) as server:
        session_id = await server.session()
        async with listening(server.service, "/event") as heard:
            await server.ask(session_id, "hi")
            await anyio.wait_all_tasks_blocked()
            assert "text 'the end'" in told(heard)


async def test_an_abort_is_told_as_an_error_and_leaves_nothing_open(tmp_path: Path) -> None:
    gate = Gate()
    async with served(tmp_path, Scripted().says("one two").waits(gate).says("three")) as server:
        session_id = await server.session()
        async with listening(server.service, "/event") as heard:
            await server.post(f"/session/{session_id}/prompt_async", {"parts": [{"type": "text", "text": "go"}]}, 204)
            await heard.until_type("message.part.delta")
            await server.post(f"/session/{session_id}/abort")
            await heard.until_type("session.idle")
    assert told(heard)[-6:] == [
        "delta 'one two'",
        "text 'one two'",
        "assistant done",
        "session.error",
        "idle",
        "session.idle",
    ]


@pytest.mark.parametrize("path", STREAMS)
async def test_every_event_has_its_official_shape(tmp_path: Path, path: str) -> None:
    script = (
        Scripted()
        .thinks("hm")
        .says("so")
        .calls("echo", text="x")
        .calls("asks", text="y")
        .runs("search", output={"found": 1}, query="z")
        .then()
        .fails(429, headers={"retry-after-ms": "1"})
        .then()
        .fails(401)
    )
    async with (
        served(tmp_path, script, config={"permission": {"asks": "ask"}}, in_a_hurry=True) as server,
        listening(server.service, path) as heard,
    ):
        session_id = await server.session()
        body = {"parts": [{"type": "text", "text": "go"}]}
        await server.post(f"/session/{session_id}/prompt_async", body, 204)
        asked = "permission.v2.asked" if path == "/api/event" else "permission.asked"
        await heard.until_type(asked)
        [question] = [one for one in heard.events if one.type == asked]
        await server.post(f"/permission/{question.said['id']}/reply", {"reply": "once"})
        await heard.until_type("session.idle")
        await server.call("DELETE", f"/session/{session_id}")
        await heard.until_type("session.deleted")
        check = check_second if path == "/api/event" else check_event
        for event in heard.events:
            check(event.payload)
        assert {"session.error", "session.status", "session.created"} <= set(heard.types)


async def test_a_stream_hears_its_directory_only_and_the_global_one_all(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    async with served(tmp_path) as server:
        async with (
            listening(server.service, "/event") as here,
            listening(server.service, f"/event?directory={there}") as elsewhere,
            listening(server.service, "/global/event") as everywhere,
        ):
            one = await server.session()
            two = (await server.stage.tk.create(directory=there)).id
            await everywhere.until_type("session.created", 2)
            await elsewhere.until_type("session.created")
        assert [event.said["sessionID"] for event in here.events[1:]] == [one]
        assert [event.said["sessionID"] for event in elsewhere.events[1:]] == [two]
        assert [event.data.get("directory") for event in everywhere.events] == [None, str(tmp_path), str(there)]
        assert [set(event.data) for event in everywhere.events] == [{"payload"}] + [
            {"directory", "project", "payload"}
        ] * 2


async def test_what_happens_while_the_first_event_is_on_its_way_is_heard(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        stall = anyio.Event()
        async with listening(server.service, "/event", stall=stall) as heard:
            await anyio.wait_all_tasks_blocked()
            await server.session()
            stall.set()
            heard.stall = None
            await heard.until_type("session.created")
            assert heard.types == ["server.connected", "session.created"]


def a_hub(server: Served, time: VirtualTime) -> Hub:
    """A hub whose time passes when told to, in the place of the server's own."""
    made = Hub(server.stage.tk, str(server.stage.directory), HubSettings(now=server.stage.mint.now, sleep=time.sleep))
    server.service.give(hub, made)
    return made


@pytest.mark.parametrize(("path", "every_s"), [("/event", HEARTBEAT_S), ("/global/event", HEARTBEAT_S)])
async def test_a_quiet_stream_has_a_heartbeat(tmp_path: Path, path: str, every_s: int) -> None:
    async with served(tmp_path) as server:
        time = VirtualTime(server.stage.mint)
        a_hub(server, time)
        async with listening(server.service, path) as heard:
            for beats in (1, 2):
                await time.asleep(every_s)
                time.advance(every_s * 1000 - 1)
                await anyio.wait_all_tasks_blocked()
                assert heard.types.count("server.heartbeat") == beats - 1
                time.advance(1)
                await heard.until_type("server.heartbeat", beats)
            assert heard.events[-1].said == {}


async def test_the_heartbeat_of_the_second_generation_is_a_comment_at_once_and_regularly(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        time = VirtualTime(server.stage.mint)
        a_hub(server, time)
        async with listening(server.service, "/api/event") as heard:
            await time.asleep(HEARTBEAT_SECOND_S)
            await heard.until(lambda one: one.raw.count(b": heartbeat\n\n") == 1)
            time.advance(HEARTBEAT_SECOND_S * 1000)
            await heard.until(lambda one: one.raw.count(b": heartbeat\n\n") == 2)
            assert heard.types == ["server.connected"]


@pytest.mark.parametrize("path", STREAMS)
async def test_closing_the_server_delivers_all_then_that_it_was_all_and_ends_the_stream(
    tmp_path: Path, path: str
) -> None:
    async with served(tmp_path) as server:
        async with listening(server.service, path) as heard:
            await server.session()
            server.service.close()
            await heard.until(lambda one: one.is_complete)
        last = {"/event": ["server.instance.disposed"], "/global/event": [], "/api/event": ["global.disposed"]}[path]
        assert heard.types == ["server.connected", "session.created", *last]
        check = check_second if path == "/api/event" else check_event
        check(heard.events[-1].payload)
        assert heard.is_over


async def test_the_stream_of_a_session_ends_with_the_server_too(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session_id = await server.session()
        async with listening(server.service, f"/api/session/{session_id}/event") as heard:
            server.service.close()
            await heard.until(lambda one: one.is_complete)
        async with listening(server.service, "/event") as late:
            await late.until(lambda one: one.is_complete)


async def test_a_client_that_hangs_up_leaves_nothing_behind(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session_id = await server.session()
        ours = server.service.part(hub)
        for path in (*STREAMS, f"/api/session/{session_id}/event"):
            async with listening(server.service, path):
                assert ours.subscribers == 1
            assert ours.subscribers == 0
        # Nobody listens any more, so nothing is derived for anybody.
        assert server.stage.tk._bus.subscribers == 0


async def test_what_no_log_holds_has_an_id_as_well(tmp_path: Path) -> None:
    async with served(tmp_path) as server, listening(server.service, "/event") as heard:
        note = Notification(
            type="todo.updated",
            session_id="ses_1",
            directory=str(tmp_path),
            seq=0,
            properties={"sessionID": "ses_1", "todos": ()},
        )
        server.stage.tk.publish(note)
        await heard.until_type("todo.updated")
        check_event(heard.events[-1].payload)
