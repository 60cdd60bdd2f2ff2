"""Prompts, commands of the user's and stopping, over HTTP."""

from pathlib import Path
from typing import Any

import anyio
from served import DEADLINE_S, Served, served

from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.server.routes.event import hub
from turnkeeper.server.streams.channel import StreamFilter


def words(message: Any) -> list[str]:
    """The text of a message."""
    return [part["text"] for part in message["parts"] if part["type"] == "text"]


async def test_a_prompt_answers_with_what_the_assistant_said_last(tmp_path: Path) -> None:
    provider = Scripted().says("I look.").calls("echo", text="x").then().says("It is x.")
    async with served(tmp_path, provider) as server:
        session = await server.session()
        answer = await server.ask(session, "look", messageID="msg_0000000000010000000000abcd")
        assert (answer["info"]["role"], answer["info"]["finish"], words(answer)) == ("assistant", "stop", ["It is x."])
        told = await server.get(f"/session/{session}/message")
        assert [one["info"]["role"] for one in told] == ["user", "assistant", "assistant"]
        assert told[-1] == answer
        assert told[0]["info"]["id"] == "msg_0000000000010000000000abcd"
        one = await server.get(f"/session/{session}/message/{answer['info']['id']}")
        assert one == answer


async def test_a_prompt_without_an_agent_is_for_the_agent_of_the_session(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("yes").forever()) as server:
        session = str((await server.post("/api/session", {"agent": "plan"}))["data"]["id"])
        answer = await server.ask(session, "go")
        assert (answer["info"]["agent"], (await server.get(f"/session/{session}"))["agent"]) == ("plan", "plan")
        answer = await server.ask(session, "go", agent="build")
        assert answer["info"]["agent"] == "build"
        answer = await server.ask(session, "go")
        assert (answer["info"]["agent"], (await server.get(f"/session/{session}"))["agent"]) == ("build", "build")
        await server.post(f"/api/session/{session}/agent", {"agent": "plan"}, 204)
        await server.post(f"/api/session/{session}/prompt", {"prompt": {"text": "go"}})
        await server.stage.tk.wait(session)
        assert [turn.agent for turn, _ in await server.stage.turns(session)] == ["plan", "build", "build", "plan"]


async def test_messages_and_parts_have_no_places_in_a_log(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("hello")) as server:
        session = await server.session()
        await server.ask(session, "hi")
        for one in await server.get(f"/session/{session}/message"):
            for value in (one["info"], *one["parts"]):
                assert not {"seq", "nth", "$extra"} & set(value)


async def test_two_prompts_at_once_both_answer_with_the_last_message(tmp_path: Path) -> None:
    gate = Gate()
    async with served(tmp_path, Scripted().waits(gate).says("one").then().says("two").forever()) as server:
        session = await server.session()
        answers = []

        async def ask(text: str) -> None:
            answers.append(await server.ask(session, text))

        async with anyio.create_task_group() as group:
            group.start_soon(ask, "first")
            await gate.wait_reached()
            group.start_soon(ask, "second")
            async with server.stage.tk.subscribe(session_id=session) as heard:
                gate.open()
                async for _ in heard:
                    break
        assert answers[0] == answers[1]
        assert words(answers[0]) == ["two"]


async def test_a_prompt_that_a_stopped_session_did_not_take_up_is_not_answered_with_something_else(
    tmp_path: Path,
) -> None:
    gate, statuses = Gate(), []
    async with served(tmp_path, Scripted().says("half").waits(gate).then().says("two").forever()) as server:
        session = await server.session()
        await server.post(f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": "one"}]}, 204)
        await gate.wait_reached()

        async def ask() -> None:
            body = {"parts": [{"type": "text", "text": "second"}]}
            statuses.append((await server.http.post(f"/session/{session}/message", json=body)).status_code)

        async with anyio.create_task_group() as group, server.stage.tk.subscribe(session_id=session) as heard:
            group.start_soon(ask)
            async for _ in heard:
                if (await server.stage.tk.store.journal.view(session)).inbox:
                    break
            await server.post(f"/session/{session}/abort", {})
        assert statuses == [409]


async def test_a_prompt_that_wants_no_reply_answers_with_itself(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session = await server.session()
        answer = await server.ask(session, "a note", noReply=True)
        assert (answer["info"]["role"], words(answer)) == ("user", ["a note"])


async def test_a_note_to_a_busy_session_answers_with_itself_and_again_when_sent_twice(tmp_path: Path) -> None:
    """It waits in the inbox until the turn under way is over."""
    gate, mine = Gate(), "msg_0000000000010000000000abcd"
    async with served(tmp_path, Scripted().waits(gate).says("one").then().says("two")) as server:
        session = await server.session()
        await server.post(f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": "hi"}]}, 204)
        await gate.wait_reached()
        first = await server.ask(session, "a note", noReply=True, messageID=mine)
        assert (first["info"]["id"], first["info"]["role"], words(first)) == (mine, "user", ["a note"])
        assert await server.ask(session, "a note", noReply=True, messageID=mine) == first
        gate.open()
        await server.stage.tk.wait(session)
        assert await server.ask(session, "a note", noReply=True, messageID=mine) == first
        assert await server.get(f"/session/{session}/message/{mine}") == first


async def test_a_prompt_that_waits_is_in_the_history_from_the_moment_it_is_safe(tmp_path: Path) -> None:
    gate = Gate()
    async with served(tmp_path, Scripted().waits(gate).says("one").then().says("two").forever()) as server:
        session = await server.session()
        path = f"/session/{session}/message"
        await server.post(f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": "hi"}]}, 204)
        await gate.wait_reached()
        for text in ("next", "then"):
            await server.post(f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": text}]}, 204)

        async def shown(query: str = "") -> list[list[str]]:
            return [words(one) for one in await server.get(path + query)]

        assert await shown() == [["hi"], [], ["next"], ["then"]]
        assert await shown("?limit=3") == [[], ["next"], ["then"]]
        newest = await server.http.get(path, params={"limit": 1})
        assert [words(one) for one in newest.json()] == [["then"]]
        assert await shown(f"?limit=9&before={newest.headers['x-next-cursor']}") == [["hi"], []]
        waiting = (await server.get(path))[-1]
        assert await server.get(f"{path}/{waiting['info']['id']}") == waiting
        gate.open()
        await server.stage.tk.wait(session)
        assert [one for one in await shown() if one in (["hi"], ["next"], ["then"])] == [["hi"], ["next"], ["then"]]


async def test_an_aborted_prompt_answers_with_its_failure(tmp_path: Path) -> None:
    gate = Gate()
    async with served(tmp_path, Scripted().says("half").waits(gate)) as server:
        session = await server.session()
        answers = []

        async def ask() -> None:
            answers.append(await server.ask(session, "go"))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await gate.wait_reached()
            assert await server.post(f"/session/{session}/abort") is True
        assert answers[0]["info"]["error"]["name"] == "MessageAbortedError"
        assert words(answers[0]) == ["half"]


async def test_abort_is_always_true(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        assert await server.post(f"/session/{await server.session()}/abort") is True
        assert await server.post("/session/ses_nope/abort") is True


async def test_a_command_of_the_users_is_run_and_recorded(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session = await server.session()
        done = await server.post(f"/session/{session}/shell", {"agent": "build", "command": "echo hello"})
        [part] = done["parts"]
        assert (part["tool"], part["state"]["output"]) == ("bash", "hello")


async def test_a_command_waits_for_no_turn(tmp_path: Path) -> None:
    gate = Gate()
    async with served(tmp_path, Scripted().waits(gate).says("done")) as server:
        session = await server.session()
        await server.post(f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": "go"}]}, 204)
        await gate.wait_reached()
        refused = await server.post(f"/session/{session}/shell", {"agent": "build", "command": "echo"}, 409)
        assert (refused["_tag"], refused["sessionID"]) == ("SessionBusyError", session)
        gate.open()
        await server.stage.tk.wait(session)


async def history(server: Served, turns: int) -> str:
    session = await server.session()
    for number in range(turns):
        await server.ask(session, f"prompt {number}")
    return session


async def test_the_history_is_read_in_pages_by_cursor(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("yes").forever()) as server:
        session = await history(server, 3)
        path = f"/session/{session}/message"
        whole = await server.get(path)
        assert len(whole) == 6
        read: list[object] = []
        address: str | None = f"{path}?limit=4"
        while address:
            answer = await server.http.get(address)
            read = [*answer.json(), *read]
            cursor = answer.headers.get("x-next-cursor")
            assert (cursor is None) == ("link" not in answer.headers)
            address = answer.links["next"]["url"] if cursor else None
        assert read == whole


async def test_a_message_and_a_part_are_changed_and_removed(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("yes")) as server:
        session = await server.session()
        answer = await server.ask(session, "hm?")
        path = f"/session/{session}/message/{answer['info']['id']}"
        text = next(part for part in answer["parts"] if part["type"] == "text")
        changed = await server.call("PATCH", f"{path}/part/{text['id']}", json={**text, "text": "no"})
        assert changed == {**text, "text": "no"}
        refused = await server.call("PATCH", f"{path}/part/prt_other", 400, json={**text, "text": "no"})
        assert refused["name"] == "BadRequest"
        assert await server.call("DELETE", f"{path}/part/{text['id']}") is True
        assert words(await server.get(path)) == []
        assert await server.call("DELETE", path) is True
        assert await server.call("DELETE", path) is True
        missing = await server.get(path, 404)
        assert missing == {"name": "NotFoundError", "data": {"message": f"Message not found: {answer['info']['id']}"}}


async def test_a_summary_takes_the_place_of_older_history(tmp_path: Path) -> None:
    provider = Scripted().says("It is blue.").then().says("## Objective\nThe sky is blue.").forever()
    async with served(tmp_path, provider) as server:
        session = await server.session()
        await server.ask(session, "What colour is the sky?")
        body = {"providerID": "acme", "modelID": "large"}
        assert await server.post(f"/session/{session}/summarize", body) is True
        told = await server.get(f"/session/{session}/message")
        assert [part["type"] for part in told[2]["parts"]] == ["compaction"]
        assert told[3]["info"]["summary"] is True


async def test_streams_have_what_happened_before_the_answer_comes(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("the last word")) as server:
        session = await server.session()
        joined = server.service.part(hub).join(StreamFilter("local", str(tmp_path)))
        # Somebody was just told something: what comes now waits for its time.
        server.service.part(hub).settings.pace_s = DEADLINE_S
        await server.ask(session, "go")
        heard = await joined.subscriber.take()
        assert heard is not None
        assert b"session.idle" in heard
        server.service.part(hub).leave(joined)
