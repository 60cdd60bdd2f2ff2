"""Questions for permission, put to clients and answered by them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from heard import listening
from served import Served, served
from shapes import faults

from turnkeeper.model.notification import Notification
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import TOOLS
from turnkeeper.tools import load

ASKING = {"permission": {"asks": "ask"}}


class Ear:
    """What is heard of permissions."""

    def __init__(self, server: Served, heard: AsyncIterator[object]) -> None:
        self._server, self._heard = server, heard

    async def next(self) -> Notification:
        async for one in self._heard:
            if isinstance(one, Notification) and one.type.startswith("permission."):
                return one
        raise AssertionError("nothing was heard")


@asynccontextmanager
async def asking(directory: Path, provider: Scripted) -> AsyncIterator[tuple[Served, str, Ear]]:
    async with served(directory, provider, config=ASKING) as server:
        session = await server.session()
        async with server.stage.tk.subscribe() as heard:
            yield server, session, Ear(server, heard)


async def go(server: Served, session: str) -> None:
    await server.post(f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": "go"}]}, 204)


async def outputs(server: Served, session: str) -> list[str]:
    """How the calls of a session ended."""
    await server.stage.tk.wait(session)
    told = await server.get(f"/session/{session}/message")
    parts = [part for one in told for part in one["parts"] if part["type"] == "tool"]
    return [part["state"].get("output") or part["state"]["error"] for part in parts]


async def test_a_question_is_heard_listed_answered_and_gone(tmp_path: Path) -> None:
    async with asking(tmp_path, Scripted().calls("asks", text="x").then().says("done")) as (server, session, ear):
        await go(server, session)
        asked = await ear.next()
        [listed] = await server.get("/permission")
        assert (asked.type, asked.properties["id"], set(asked.properties)) == (
            "permission.asked",
            listed["id"],
            set(listed),
        )
        assert (listed["sessionID"], listed["permission"], listed["patterns"]) == (session, "asks", ["x"])
        assert set(listed["tool"]) == {"messageID", "callID"}
        assert await server.post(f"/permission/{listed['id']}/reply", {"reply": "once"}) is True
        replied = await ear.next()
        assert (replied.type, replied.properties) == (
            "permission.replied",
            {"sessionID": session, "requestID": listed["id"], "reply": "once"},
        )
        assert await outputs(server, session) == ["x"]
        assert await server.get("/permission") == []


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/event", "permission.asked"), ("/global/event", "permission.asked"), ("/api/event", "permission.v2.asked")],
)
async def test_a_request_that_waits_is_announced_to_each_new_subscriber_until_it_is_answered(
    tmp_path: Path, path: str, kind: str
) -> None:
    async with asking(tmp_path, Scripted().calls("asks", text="x").then().says("done")) as (server, session, ear):
        await go(server, session)
        question = (await ear.next()).properties["id"]
        for _ in range(2):
            async with listening(server.service, path) as heard:
                await heard.until_type(kind)
                [announced] = [event.said for event in heard.events if event.type == kind]
                assert (announced["id"], announced["sessionID"]) == (question, session)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        async with listening(server.service, f"/event?directory={elsewhere}") as heard:
            await server.post(f"/permission/{question}/reply", {"reply": "once"})
            assert await outputs(server, session) == ["x"]
            assert heard.types == ["server.connected"]
        async with listening(server.service, path) as heard:
            await server.session()
            await heard.until_type("session.created")
            assert kind not in heard.types


async def test_a_client_that_missed_nothing_is_told_nothing_again(tmp_path: Path) -> None:
    async with asking(tmp_path, Scripted().calls("asks", text="x").then().says("done")) as (server, session, ear):
        async with listening(server.service, "/event?ids=true") as first:
            await go(server, session)
            await first.until_type("permission.asked")
        last = first.events[-1].id
        assert last is not None
        async with listening(server.service, "/event?ids=true", {"last-event-id": last}) as again:
            await server.session()
            await again.until_type("session.created")
            assert "permission.asked" not in again.types
        await server.post(f"/permission/{(await ear.next()).properties['id']}/reply", {"reply": "once"})


async def test_the_older_spelling_answers_too_but_only_for_its_own_session(tmp_path: Path) -> None:
    async with asking(tmp_path, Scripted().calls("asks", text="x").then().says("done")) as (server, session, ear):
        await go(server, session)
        question = (await ear.next()).properties["id"]
        refused = await server.post(f"/session/ses_other/permissions/{question}", {"response": "once"}, 404)
        assert (refused["_tag"], refused["requestID"]) == ("PermissionNotFoundError", question)
        assert await server.post(f"/session/{session}/permissions/{question}", {"response": "once"}) is True
        assert await outputs(server, session) == ["x"]


async def test_a_rejection_with_advice_goes_to_the_model_and_the_turn_goes_on(tmp_path: Path) -> None:
    provider = Scripted().calls("asks", text="x").then().says("another way")
    async with asking(tmp_path, provider) as (server, session, ear):
        await go(server, session)
        question = (await ear.next()).properties["id"]
        await server.post(f"/permission/{question}/reply", {"reply": "reject", "message": "use tabs"})
        [output] = await outputs(server, session)
        assert "use tabs" in output
        assert provider.is_over


async def test_a_rejection_rejects_what_else_of_the_session_waits(tmp_path: Path) -> None:
    provider = Scripted().calls("asks", text="x").calls("asks", text="y")
    async with asking(tmp_path, provider) as (server, session, ear):
        await go(server, session)
        first, second = await ear.next(), await ear.next()
        await server.post(f"/permission/{first.properties['id']}/reply", {"reply": "reject"})
        answered = {(await ear.next()).properties["requestID"] for _ in range(2)}
        assert answered == {first.properties["id"], second.properties["id"]}
        assert len(await outputs(server, session)) == 2


async def test_always_answers_what_else_it_covers_and_is_remembered(tmp_path: Path) -> None:
    provider = Scripted().calls("asks", text="x").calls("asks", text="x").calls("asks", text="y").then().says("done")
    async with asking(tmp_path, provider) as (server, session, ear):
        await go(server, session)
        questions = {one.properties["id"]: one.properties["patterns"] for one in [await ear.next() for _ in range(3)]}
        first = next(iter(questions))
        await server.post(f"/permission/{first}/reply", {"reply": "always"})
        [left] = await server.get("/permission")
        assert left["patterns"] == ["y"]
        await server.post(f"/permission/{left['id']}/reply", {"reply": "once"})
        assert await outputs(server, session) == ["x", "x", "y"]


async def test_an_interrupted_session_takes_its_question_back(tmp_path: Path) -> None:
    async with asking(tmp_path, Scripted().calls("asks", text="x")) as (server, session, ear):
        await go(server, session)
        question = (await ear.next()).properties["id"]
        await server.post(f"/session/{session}/abort")
        taken_back = await ear.next()
        assert (taken_back.properties["requestID"], taken_back.properties["reply"]) == (question, "reject")
        assert await server.get("/permission") == []


async def test_what_does_not_wait_cannot_be_answered(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        refused = await server.post("/permission/per_nope/reply", {"reply": "once"}, 404)
        assert (refused["_tag"], refused["requestID"]) == ("PermissionNotFoundError", "per_nope")
        refused = await server.post("/question/que_nope/reply", {"answers": [["a"]]}, 404)
        assert (refused["_tag"], refused["requestID"]) == ("QuestionNotFoundError", "que_nope")


async def test_a_word_that_is_no_answer_is_refused_and_the_question_waits_on(tmp_path: Path) -> None:
    async with asking(tmp_path, Scripted().calls("asks", text="x").then().says("done")) as (server, session, ear):
        await go(server, session)
        asked = (await ear.next()).properties["id"]
        for word in ("no", "Once", "", None, False):
            await server.post(f"/permission/{asked}/reply", {"reply": word}, 400)
            await server.post(f"/session/{session}/permissions/{asked}", {"response": word}, 400)
            await server.post(f"/api/session/{session}/permission/{asked}/reply", {"reply": word}, 400)
        assert [one["id"] for one in await server.get("/permission")] == [asked]
        await server.post(f"/permission/{asked}/reply", {"reply": "reject"})
        assert await outputs(server, session) == ["The user rejected this call."]


async def test_a_question_waits_through_a_restart_of_the_server(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/store"
    script = Scripted().calls("asks", text="x").calls("question", questions=[{"question": "Why?"}])
    tools = (*TOOLS, *load(["question"]))
    async with served(tmp_path, script, store=store, config=ASKING, tools=tools) as first:
        session = await first.session()
        async with first.stage.tk.subscribe() as heard:
            await go(first, session)
            kinds: set[str] = set()
            async for one in heard:
                kinds |= {one.type} & {"permission.asked", "question.asked"}
                if len(kinds) == 2:
                    break
        [asked], [question] = await first.get("/permission"), await first.get("/question")
    answering = Scripted().says("done")
    async with served(tmp_path, answering, store=store, config=ASKING, tools=tools) as second:
        assert await second.stage.tk.take_over() == []
        assert await second.get("/permission") == [asked]
        assert await second.get("/question") == [question]
        assert (await second.get(f"/api/session/{session}/question"))["data"] == [question]
        assert (await second.get("/api/question/request"))["data"] == [question]
        assert faults("QuestionV2Request", question) == []
        async with second.stage.tk.subscribe() as heard:
            assert await second.post(f"/permission/{asked['id']}/reply", {"reply": "always"}) is True
            assert await second.post(f"/question/{question['id']}/reply", {"answers": [["Because"]]}) is True
            ear = Ear(second, heard)
            assert (await ear.next()).properties["reply"] == "always"
        [first_output, second_output] = await outputs(second, session)
        assert first_output == "x"
        assert '"Why?"="Because"' in second_output
        assert await second.get("/permission") == await second.get("/question") == []
        assert answering.is_over
        [saved] = (await second.get("/api/permission/saved"))["data"]
        assert (saved["action"], saved["resource"]) == ("asks", "x")
        await second.call("DELETE", f"/api/permission/saved/{saved['id']}", 204)
        assert (await second.get("/api/permission/saved"))["data"] == []


async def test_a_client_without_a_user_says_so_and_the_model_is_told(tmp_path: Path) -> None:
    for spelling in ("/question/{asked}/reject", "/api/session/{session}/question/{asked}/reject"):
        script = Scripted().calls("question", questions=[{"question": "Why?"}])
        async with served(tmp_path, script, tools=load(["question"])) as server:
            session = await server.session()
            async with server.stage.tk.subscribe() as heard:
                await go(server, session)
                async for one in heard:
                    if one.type == "question.asked":
                        break
            [question] = await server.get("/question")
            path = spelling.format(asked=question["id"], session=session)
            await server.post(f"{path}?absence=late-for-tea", status=400)
            await server.post(f"{path}?absence=nobody", status=204 if path.startswith("/api") else 200)
            assert await outputs(server, session) == ["Nobody could be asked the questions."]


async def test_questions_are_dismissed_and_wrong_answers_refused(tmp_path: Path) -> None:
    script = Scripted().calls("question", questions=[{"question": "Why?"}])
    async with served(tmp_path, script, tools=load(["question"])) as server:
        session = await server.session()
        async with server.stage.tk.subscribe() as heard:
            await go(server, session)
            async for one in heard:
                if one.type == "question.asked":
                    break
        [question] = await server.get("/question")
        await server.post(f"/question/{question['id']}/reply", {"answers": []}, 400)
        await server.post(f"/api/session/{session}/question/{question['id']}/reject", status=204)
        assert await outputs(server, session) == ["The user dismissed the questions."]
        await server.post(f"/question/{question['id']}/reject", status=404)
