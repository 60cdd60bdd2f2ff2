"""The second generation of the API: the same sessions, in its words and shapes."""

from pathlib import Path
from typing import Any

import pytest
from heard import listening
from served import Served, served
from shapes import faults

from turnkeeper.core.lowering import DELEGATED
from turnkeeper.model import event as e
from turnkeeper.model.parts import CompactionPart
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.builders import a_text, a_user, an_assistant

LISTS = {
    "agent": "AgentV2Info",
    "model": "ModelV2Info",
    "provider": "ProviderV2Info",
    "integration": "IntegrationInfo",
    "reference": "ReferenceInfo",
    "command": "CommandV2Info",
    "skill": "SkillV2Info",
}


async def made(server: Served, **given: object) -> str:
    """A session made through the second generation."""
    answered: Any = await server.post("/api/session", given)
    assert faults("SessionV2Info", answered["data"]) == []
    return str(answered["data"]["id"])


async def say(server: Served, session_id: str, text: str, **given: object) -> dict[str, Any]:
    """Admit a prompt and wait until the session rests."""
    answered: Any = await server.post(f"/api/session/{session_id}/prompt", {"prompt": {"text": text}, **given})
    assert faults("SessionInputAdmitted", answered["data"]) == []
    await server.post(f"/api/session/{session_id}/wait", status=204)
    data: dict[str, Any] = answered["data"]
    return data


async def messages(server: Served, session_id: str, query: str = "") -> list[dict[str, Any]]:
    answered: Any = await server.get(f"/api/session/{session_id}/message{query}")
    assert faults("SessionMessagesResponse", answered) == []
    data: list[dict[str, Any]] = answered["data"]
    return data


async def history(server: Served, session_id: str, query: str = "?limit=100") -> list[dict[str, Any]]:
    answered: Any = await server.get(f"/api/session/{session_id}/history{query}")
    assert faults("SessionHistory", answered) == []
    data: list[dict[str, Any]] = answered["data"]
    return data


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("session.next.") for event in events]


async def test_a_plain_turn_is_told_as_on_record(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("hello")) as server:
        session_id = await made(server)
        await say(server, session_id, "hi")
        events = await history(server, session_id)
        assert kinds(events) == [
            "prompt.admitted",
            "prompted",
            "step.started",
            "text.started",
            "text.ended",
            "step.ended",
        ]
        assert [event["durable"]["version"] for event in events] == [1, 1, 1, 1, 1, 2]
        assert {event["durable"]["aggregateID"] for event in events} == {session_id}
        [answer, prompt] = await messages(server, session_id)
        assert (prompt["type"], prompt["text"]) == ("user", "hi")
        assert [one["text"] for one in answer["content"]] == ["hello"]
        assert (answer["type"], answer["finish"]) == ("assistant", "stop")


async def test_tools_and_reasoning_are_told_and_shown(tmp_path: Path) -> None:
    script = Scripted().thinks("hm").calls("echo", text="x").calls("nope", text="y").then().says("done")
    async with served(tmp_path, script) as server:
        session_id = await made(server)
        await say(server, session_id, "go")
        told = kinds(await history(server, session_id))
        assert told[2:5] == ["step.started", "reasoning.started", "reasoning.ended"]
        for kind in ("tool.input.started", "tool.input.ended", "tool.called"):
            assert told.count(kind) == 2
        assert (told.count("tool.success"), told.count("tool.failed")) == (1, 1)
        [_, answer, _] = await messages(server, session_id)
        assert [one["type"] for one in answer["content"]] == ["reasoning", "tool", "tool"]
        done, failed = answer["content"][1:]
        assert (done["state"]["status"], done["state"]["content"][0]["text"]) == ("completed", "x")
        assert failed["state"]["status"] == "error"


async def test_a_failure_ends_its_step(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().fails(401)) as server:
        session_id = await made(server)
        await say(server, session_id, "go")
        assert kinds(await history(server, session_id))[-2:] == ["step.started", "step.failed"]
        [answer, _] = await messages(server, session_id)
        assert (answer["finish"], answer["error"]["type"]) == ("error", "unknown")


async def test_an_interrupt_keeps_what_was_said(tmp_path: Path) -> None:
    gate = Gate()
    async with served(tmp_path, Scripted().says("half").waits(gate)) as server:
        session_id = await made(server)
        async with listening(server.service, "/api/event") as heard:
            await server.post(f"/api/session/{session_id}/prompt", {"prompt": {"text": "go"}})
            await heard.until_type("session.next.text.delta")
        assert await server.get("/api/session/active") == {"data": {session_id: {"type": "running"}}}
        await server.post(f"/api/session/{session_id}/interrupt", status=204)
        await server.post(f"/api/session/{session_id}/interrupt", status=204)
        assert await server.get("/api/session/active") == {"data": {}}
        [answer, _] = await messages(server, session_id)
        assert (answer["content"][0]["text"], answer["finish"]) == ("half", "error")


async def test_the_same_prompt_again_is_the_same_admission_and_another_one_a_conflict(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("once")) as server:
        session_id = await made(server)
        first = await say(server, session_id, "go", id="msg_mine")
        assert await say(server, session_id, "go", id="msg_mine") == first
        refused: Any = await server.post(
            f"/api/session/{session_id}/prompt", {"id": "msg_mine", "prompt": {"text": "other"}}, 409
        )
        assert (refused["_tag"], refused["resource"]) == ("ConflictError", "msg_mine")
        assert first["admittedSeq"] == (await history(server, session_id))[0]["durable"]["seq"]


async def test_a_prompt_may_only_be_admitted(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted()) as server:
        session_id = await made(server)
        body = {"prompt": {"text": "later"}, "resume": False, "delivery": "queue"}
        answered: Any = await server.post(f"/api/session/{session_id}/prompt", body)
        assert answered["data"]["delivery"] == "queue"
        assert kinds(await history(server, session_id)) == ["prompt.admitted"]
        assert await messages(server, session_id) == []


async def test_files_and_agents_of_a_prompt_are_shown_with_it(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("words")
    uri = (tmp_path / "note.txt").as_uri()
    async with served(tmp_path, Scripted().says("read")) as server:
        session_id = await made(server)
        given = {
            "text": "see @note.txt",
            "files": [{"uri": uri, "source": {"start": 4, "end": 13, "text": "@note.txt"}}],
        }
        answered: Any = await server.post(f"/api/session/{session_id}/prompt", {"prompt": given})
        assert faults("SessionInputAdmitted", answered["data"]) == []
        assert answered["data"]["prompt"]["files"][0]["mime"] == "text/plain"
        await server.post(f"/api/session/{session_id}/wait", status=204)
        [_, prompt] = await messages(server, session_id)
        assert prompt["text"] == "see @note.txt"
        assert prompt["files"][0]["source"] == {"start": 4, "end": 13, "text": "@note.txt"}


async def test_a_session_of_either_generation_is_whole_in_the_other(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("one").then().says("two").then().says("three")) as server:
        first, second = await server.session(title="Old"), await made(server)
        await server.ask(first, "from the first")
        await say(server, first, "from the second")
        shown = [one["text"] for one in await messages(server, first) if one["type"] == "user"]
        assert shown == ["from the second", "from the first"]
        await say(server, second, "new")
        listed: Any = await server.get(f"/session/{second}/message")
        assert [one["info"]["role"] for one in listed] == ["user", "assistant"]
        assert listed[1]["parts"][1]["text"] == "three"
        both: Any = await server.get("/api/session")
        assert faults("SessionsResponse", both) == []
        assert {one["id"] for one in both["data"]} == {first, second}
        old: Any = await server.get("/session")
        assert {one["id"] for one in old} == {first, second}


async def test_pages_of_messages_follow_each_other_both_ways(tmp_path: Path) -> None:
    script = Scripted().says("a").then().says("b").then().says("c")
    async with served(tmp_path, script) as server:
        session_id = await made(server)
        for text in ("1", "2", "3"):
            await say(server, session_id, text)
            await server.post(f"/api/session/{session_id}/agent", {"agent": "plan" if text == "2" else "build"}, 204)
        whole = [one["id"] for one in await messages(server, session_id)]
        switches = [one for one in await messages(server, session_id) if one["type"] == "agent-switched"]
        assert [one["agent"] for one in switches] == ["build", "plan"]
        for order, expected in (("desc", whole), ("asc", whole[::-1])):
            seen: list[str] = []
            page: Any = await server.get(f"/api/session/{session_id}/message?limit=2&order={order}")
            first = page
            while True:
                seen += [one["id"] for one in page["data"]]
                if page["cursor"].get("next") is None:
                    break
                before = page
                page = await server.get(f"/api/session/{session_id}/message?limit=2&cursor={page['cursor']['next']}")
            assert seen == expected
            back: Any = await server.get(
                f"/api/session/{session_id}/message?limit=2&cursor={page['cursor']['previous']}"
            )
            assert back["data"] == before["data"]
            assert first["cursor"].get("previous") is None


async def test_a_switch_is_an_event_and_a_message(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session_id = await made(server)
        await server.post(f"/api/session/{session_id}/agent", {"agent": "plan"}, 204)
        await server.post(f"/api/session/{session_id}/model", {"model": {"providerID": "acme", "id": "other"}}, 204)
        events = await history(server, session_id)
        assert kinds(events) == ["agent.switched", "model.switched"]
        for event, shown in zip(events[::-1], await messages(server, session_id), strict=True):
            assert event["data"]["messageID"] == shown["id"]
            assert await server.get(f"/api/session/{session_id}/message/{shown['id']}") == {"data": shown}
        info: Any = await server.get(f"/api/session/{session_id}")
        assert (info["data"]["agent"], info["data"]["model"]["id"]) == ("plan", "other")


async def test_a_switch_right_after_a_prompt_that_waits_is_told_too(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session_id = await made(server)
        waiting = {"prompt": {"text": "later"}, "resume": False}
        await server.post(f"/api/session/{session_id}/prompt", waiting)
        await server.post(f"/api/session/{session_id}/agent", {"agent": "plan"}, 204)
        await server.post(f"/api/session/{session_id}/model", {"model": {"providerID": "acme", "id": "other"}}, 204)
        events = await history(server, session_id)
        assert kinds(events) == ["prompt.admitted", "agent.switched", "model.switched"]
        shown = [one["id"] for one in await messages(server, session_id)]
        assert shown == [event["data"]["messageID"] for event in events[:0:-1]]


async def test_a_command_of_the_users_is_one_message(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session_id = await made(server)
        await server.post(f"/session/{session_id}/shell", {"agent": "build", "command": "echo hi"})
        [shell] = await messages(server, session_id)
        assert (shell["type"], shell["command"], shell["output"]) == ("shell", "echo hi", "hi")
        assert kinds(await history(server, session_id)) == ["shell.started", "shell.ended"]


async def test_summaries_and_what_the_runtime_says_have_kinds_of_their_own(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted()) as server:
        session_id = await made(server)
        asked, synthetic = a_user(session_id, "msg_asked"), a_user(session_id, "msg_synthetic")
        mark = CompactionPart(id="prt_mark", session_id=session_id, message_id=asked.id, auto=False)
        turn = an_assistant(session_id, "msg_summary", asked.id, summary=True)
        done = turn.but(time=turn.time.but(completed=turn.time.created + 1), finish="stop")
        await server.stage.tk.store.journal.append(
            session_id,
            e.MessageRecorded(
                message=a_user(session_id, "msg_old"), parts=(a_text(a_user(session_id, "msg_old"), "prt_0", "old"),)
            ),
            e.MessageRecorded(message=asked, parts=(mark,)),
            e.TurnStarted(message=turn),
            e.PartRecorded(part=a_text(turn, "prt_1", "in short")),
            e.TurnEnded(message=done),
            e.MessageRecorded(message=synthetic, parts=(a_text(synthetic, "prt_2", "go on", synthetic=True),)),
        )
        assert kinds(await history(server, session_id)) == [
            "prompted",
            "compaction.started",
            "compaction.ended",
            "synthetic",
        ]
        shown = await messages(server, session_id)
        assert [one["type"] for one in shown] == ["synthetic", "compaction", "user"]
        assert (shown[1]["summary"], shown[1]["reason"]) == ("in short", "manual")
        context: Any = await server.get(f"/api/session/{session_id}/context")
        assert [one["type"] for one in context["data"]] == ["compaction", "synthetic"]
        assert DELEGATED not in str(shown)


async def test_a_fork_has_the_history_of_its_origin_told_anew(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("one").calls("echo", text="x").then().says("two")) as server:
        session_id = await made(server)
        await say(server, session_id, "go")
        forked = await server.stage.tk.fork(session_id)
        before, after = await history(server, session_id), await history(server, forked.id)
        assert kinds(after) == [kind for kind in kinds(before) if kind != "prompt.admitted"]
        numbers = [event["durable"]["seq"] for event in after]
        assert numbers == sorted(set(numbers))
        shown = [[one["type"] for one in await messages(server, one_id)] for one_id in (session_id, forked.id)]
        assert shown[0] == shown[1]


async def test_history_comes_in_pages_behind_a_number(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("hello")) as server:
        session_id = await made(server)
        await say(server, session_id, "hi")
        whole = await history(server, session_id)
        page: Any = await server.get(f"/api/session/{session_id}/history?limit=4")
        assert (page["data"], page["hasMore"]) == (whole[:4], True)
        after = page["data"][-1]["durable"]["seq"]
        rest: Any = await server.get(f"/api/session/{session_id}/history?limit=4&after={after}")
        assert (rest["data"], rest["hasMore"]) == (whole[4:], False)


async def test_pages_of_sessions_follow_each_other(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        for _ in range(5):
            server.stage.mint.advance(1000)
            await made(server)
        whole: Any = await server.get("/api/session")
        every = [one["id"] for one in whole["data"]]
        assert len(every) == 5
        for order, expected in (("desc", every), ("asc", every[::-1])):
            seen: list[str] = []
            page: Any = await server.get(f"/api/session?limit=2&order={order}")
            pages = [page["data"]]
            while (following := page["cursor"].get("next")) is not None:
                seen += [one["id"] for one in page["data"]]
                page = await server.get(f"/api/session?limit=2&cursor={following}")
                pages.append(page["data"])
            assert [*seen, *(one["id"] for one in page["data"])] == expected
            back: Any = await server.get(f"/api/session?limit=2&cursor={page['cursor']['previous']}")
            assert back["data"] == pages[-2]


@pytest.mark.parametrize("name", LISTS)
async def test_the_lists_of_the_start_have_their_official_shape(tmp_path: Path, name: str) -> None:
    async with served(tmp_path) as server:
        answered: Any = await server.get(f"/api/{name}")
        assert faults("LocationInfo", answered["location"]) == []
        for one in answered["data"]:
            assert faults(LISTS[name], one) == []
        assert answered["data"] or name not in ("agent", "model", "provider")


async def test_health_and_place_are_told(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        assert await server.get("/api/health") == {"healthy": True}
        place: Any = await server.get(f"/api/location?location[directory]={tmp_path}")
        assert (faults("LocationInfo", place), place["directory"]) == ([], str(tmp_path))


async def test_a_question_is_listed_read_and_answered(tmp_path: Path) -> None:
    script = Scripted().calls("asks", text="x").then().says("done")
    async with served(tmp_path, script, config={"permission": {"asks": "ask"}}) as server:
        session_id = await made(server)
        async with listening(server.service, "/api/event") as heard:
            await server.post(f"/api/session/{session_id}/prompt", {"prompt": {"text": "go"}})
            await heard.until_type("permission.v2.asked")
        listed: Any = await server.get(f"/api/session/{session_id}/permission")
        [question] = listed["data"]
        assert faults("PermissionV2Request", question) == []
        everywhere: Any = await server.get("/api/permission/request")
        assert everywhere["data"] == [question]
        path = f"/api/session/{session_id}/permission/{question['id']}"
        assert await server.get(path) == {"data": question}
        await server.post(f"{path}/reply", {"reply": "once"}, 204)
        await server.post(f"/api/session/{session_id}/wait", status=204)
        gone: Any = await server.get(path, 404)
        assert (gone["_tag"], gone["requestID"]) == ("PermissionNotFoundError", question["id"])


REFUSED = [
    ("GET", "/api/session/ses_nope", 404, "SessionNotFoundError"),
    ("GET", "/api/session/ses_nope/context", 404, "SessionNotFoundError"),
    ("GET", "/api/session/ses_nope/message", 404, "SessionNotFoundError"),
    ("GET", "/api/session/ses_nope/history", 404, "SessionNotFoundError"),
    ("GET", "/api/session/ses_nope/permission", 404, "SessionNotFoundError"),
    ("POST", "/api/session/ses_nope/interrupt", 404, "SessionNotFoundError"),
    ("POST", "/api/session/ses_nope/wait", 404, "SessionNotFoundError"),
    ("POST", "/api/session/ses_nope/compact", 404, "SessionNotFoundError"),
    ("GET", "/api/session/{id}/message/msg_nope", 404, "MessageNotFoundError"),
    ("GET", "/api/session/{id}/message/msg_1e07b173a00200000000000001", 404, "MessageNotFoundError"),
    ("GET", "/api/session/{id}/message?cursor=zzz", 400, "InvalidCursorError"),
    ("GET", "/api/session/{id}/message?limit=500", 400, "InvalidRequestError"),
    ("GET", "/api/session/{id}/history?limit=101", 400, "InvalidRequestError"),
    ("GET", "/api/session/{id}/history?after=-1", 400, "InvalidRequestError"),
    ("GET", "/api/session?cursor=zz", 400, "InvalidCursorError"),
    ("GET", "/api/session?limit=0", 400, "InvalidRequestError"),
    ("GET", "/api/provider/nope", 404, "ProviderNotFoundError"),
    ("POST", "/api/session/{id}/prompt", 400, "InvalidRequestError"),
    ("POST", "/api/session/{id}/agent", 400, "InvalidRequestError"),
    ("POST", "/api/session/{id}/question/que_nope/reject", 404, "QuestionNotFoundError"),
]


@pytest.mark.parametrize(("method", "path", "status", "tag"), REFUSED)
async def test_what_is_refused_is_said_as_on_record(
    tmp_path: Path, method: str, path: str, status: int, tag: str
) -> None:
    async with served(tmp_path) as server:
        session_id = await made(server)
        refused: Any = await server.call(method, path.replace("{id}", session_id), status)
        assert refused["_tag"] == tag
        assert refused["message"]
