"""Requests to the user outlive the process that asked: answered later, from anywhere, and the call runs once."""

import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest
from narrow import of_type, result_text

from turnkeeper.app import look
from turnkeeper.core.answers import DISMISSED, REJECTED, NotAsked
from turnkeeper.core.next_action import REFUSED, WAITS
from turnkeeper.mint import FIXED_START_MS, Mint
from turnkeeper.model import event as e
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolState
from turnkeeper.model.permission import PermissionRequest, Reply
from turnkeeper.model.refusal import Busy, Conflict, Invalid, NotFound
from turnkeeper.providers.provider import Provider
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.sessions.answers import watch
from turnkeeper.store.damaged import DamagedDocument
from turnkeeper.store.engine import LogConflict, StoreUnavailable
from turnkeeper.testing.harness import TOOLS, Stage, StageOptions, a_tool, stage
from turnkeeper.tools import custom, load
from turnkeeper.tools.tool import AnyTool, ToolContext

ASK = {"permission": {"asks": "ask", "first*": "ask"}}
DEADLINE_S = 60


class House:
    """A store on a disk that several processes open, one after the other or at once, and a tool that is counted."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = f"sqlite:{directory}/store"
        self.done: list[str] = []
        self._openings = count()

    async def works(self, text: str, context: ToolContext) -> str:
        await context.ask("first", [text], always=[text], metadata={})
        await context.ask("asks", [text], always=[text], metadata={"text": "long " * 10_000})
        self.done.append(text)
        return f"did {text}"

    @asynccontextmanager
    async def opened(self, provider: Provider, *more: AnyTool, **given: Any) -> AsyncIterator[Stage]:
        """One process. It answers nothing by itself."""
        tools = (*TOOLS, *load(["question"]), a_tool("works", self.works), *more)
        options = StageOptions(**{"ask": None, "question": None, "config": ASK, "tools": tools, **given})
        with anyio.fail_after(DEADLINE_S):
            opening = next(self._openings)
            mint = Mint.fixed(FIXED_START_MS + opening * 1_000_000, opening)
            async with stage(self.url, self.directory / "place", provider, options, mint=mint) as found:
                yield found

    async def left_waiting(self, provider: Provider, *more: AnyTool, **given: Any) -> str:
        """A session that a process left, which ended while a call waited."""
        async with self.opened(provider, *more, **given) as runtime:
            session = await runtime.session()
            async with runtime.tk.subscribe() as heard:
                await runtime.say(session, "go")
                await until(heard, "permission.asked", "question.asked")
        return session


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def until(heard: AsyncIterator[object], *kinds: str) -> Notification:
    async for one in heard:
        if isinstance(one, Notification) and one.type in kinds:
            return one
    raise AssertionError("nothing was heard")


async def states(runtime: Stage, session: str) -> list[ToolState]:
    return [part.state for _, parts in await runtime.turns(session) for part in parts if isinstance(part, ToolPart)]


async def outputs(runtime: Stage, session: str) -> list[str]:
    return [
        one.output if isinstance(one, ToolCompleted) else getattr(one, "error", "")
        for one in await states(runtime, session)
    ]


async def test_an_ask_outlives_its_process_and_is_answered_from_another_one(house: House) -> None:
    session = await house.left_waiting(Scripted().calls("asks", text="x"))
    async with look(house.url) as elsewhere:
        [request] = await elsewhere.permissions(directory=house.directory / "place")
        assert (request.session_id, request.patterns) == (session, ("x",))
        assert await elsewhere.permissions(directory="/elsewhere") == []
        await elsewhere.reply(request.id, "once")
        assert await elsewhere.permissions() == []
    script = Scripted().says("Done.")
    async with house.opened(script) as later:
        assert await later.tk.recover() == [session]
        assert await outputs(later, session) == ["x"]
        [first, second] = await later.turns(session)
        assert (first[0].error, first[0].finish, second[0].finish) == (None, "tool-calls", "stop")
        assert result_text(script.requests[0].messages[-1]) == "x"
        assert len([row async for row in later.tk.ledger(session)]) == 2
        assert await later.is_sound(session)


async def test_a_session_that_waits_rests_without_an_owner_and_is_not_taken_over_again(house: House) -> None:
    session = await house.left_waiting(Scripted().calls("works", text="x"))
    async with house.opened(Scripted()) as later:
        before = (await later.tk.store.journal.view(session)).seq
        assert await later.tk.recover("continue") == []
        assert (await later.tk.run(session)).reason == WAITS
        view = await later.tk.store.journal.view(session)
        assert (view.seq, view.owner, len(view.asks)) == (before, None, 1)
        assert (await later.tk.doctor()).problems == ()


async def test_a_call_that_asks_twice_is_answered_twice_across_two_restarts_and_runs_once(house: House) -> None:
    session = await house.left_waiting(Scripted().calls("works", text="x"))
    async with house.opened(Scripted()) as second, second.tk.subscribe() as heard:
        [request] = await second.tk.permissions()
        assert request.permission == "first"
        await second.tk.reply(request.id, "once")
        asked = await until(heard, "permission.asked")
        assert asked.properties["permission"] == "asks"
    assert house.done == []
    async with house.opened(Scripted().says("Done.")) as third:
        [request] = await third.tk.permissions()
        assert request.metadata == {"text": "long " * 10_000}
        await third.tk.reply(request.id, "once")
        await third.tk.wait(session)
        assert (house.done, await outputs(third, session)) == (["x"], ["did x"])
        kinds = [one.request.permission for one in await third.events(session) if isinstance(one, e.PermissionAsked)]
        assert kinds == ["first", "asks"]
        assert await third.is_sound(session)


async def test_an_answer_of_another_living_process_reaches_the_one_that_waits(house: House) -> None:
    async with house.opened(Scripted().calls("asks", text="x").then().says("Done.")) as here:
        session = await here.session()
        async with here.tk.subscribe() as heard:
            await here.say(session, "go")
            asked = await until(heard, "permission.asked")
            async with house.opened(Scripted()) as other:
                await other.tk.reply(str(asked.properties["id"]), "once")
                assert other.tk.running == frozenset()
            replied = await until(heard, "permission.replied")
            assert replied.properties["reply"] == "once"
        await here.tk.wait(session)
        assert await outputs(here, session) == ["x"]


@pytest.mark.parametrize("tool", ["asks", "question"])
async def test_the_time_of_a_call_is_without_the_wait_for_the_user(house: House, tool: str) -> None:
    given = {"text": "x"} if tool == "asks" else {"questions": QUESTIONS}
    async with house.opened(Scripted().calls(tool, **given).then().says("ok")) as runtime:
        session = await runtime.session()
        async with runtime.tk.subscribe() as heard:
            await runtime.say(session, "go")
            asked = await until(heard, "permission.asked", "question.asked")
        runtime.time.advance(30_000)
        request = str(asked.properties["id"])
        await (runtime.tk.reply(request, "once") if tool == "asks" else runtime.tk.answer(request, [["A"]]))
        await runtime.tk.wait(session)
        [state] = await states(runtime, session)
        time = of_type(ToolCompleted, state).time
        assert (time.start, time.end) == (runtime.mint.now(), runtime.mint.now())


async def test_a_call_that_is_answered_after_a_restart_took_the_time_of_its_second_run(house: House) -> None:
    session = await house.left_waiting(Scripted().calls("asks", text="x"))
    async with house.opened(Scripted().says("ok")) as later:
        [request] = await later.tk.permissions()
        await later.tk.reply(request.id, "once")
        await later.tk.wait(session)
        [state] = await states(later, session)
        assert of_type(ToolCompleted, state).time.start == later.mint.now()


async def test_the_first_answer_counts_and_the_same_again_changes_nothing(house: House) -> None:
    session = await house.left_waiting(Scripted().calls("asks", text="x"))
    async with look(house.url) as elsewhere:
        [request] = await elsewhere.permissions()
        await elsewhere.reply(request.id, "reject", message="No.")
        before = (await elsewhere.store.journal.view(session)).seq
        await elsewhere.reply(request.id, "reject", message="No.")
        assert (await elsewhere.store.journal.view(session)).seq == before
        for answer in ("once", "always", "reject"):
            with pytest.raises(Conflict, match="answered already"):
                await elsewhere.reply(request.id, answer)
        with pytest.raises(NotAsked):
            await elsewhere.reply("per_unknown", "once")
        with pytest.raises(NotFound, match="ses_other"):
            await elsewhere.reply(request.id, "once", session_id="ses_other")
        with pytest.raises(Invalid):
            await elsewhere.reply(request.id, "yes")  # type: ignore[arg-type] # No answer.


async def test_always_is_saved_for_the_project_and_answers_what_else_it_covers(house: House) -> None:
    script = Scripted().calls("asks", text="x").calls("asks", text="x").calls("asks", text="y")
    async with house.opened(script) as first, first.tk.subscribe() as heard:
        session = await first.session()
        await first.say(session, "go")
        for _ in range(3):
            await until(heard, "permission.asked")
    async with house.opened(Scripted()) as later, later.tk.subscribe() as heard:
        one, other, left = await later.tk.permissions()
        await later.tk.reply(one.id, "always")
        told = [(await until(heard, "permission.replied")).properties for _ in range(2)]
        assert [(said["requestID"], said["reply"]) for said in told] == [(one.id, "always"), (other.id, "always")]
        assert [ask.id for ask in await later.tk.permissions()] == [left.id]
        [saved] = await later.tk.approvals()
        assert (saved.permission, saved.pattern, saved.directory) == ("asks", "x", str(house.directory / "place"))
    file = house.directory / "place/.local/share/turnkeeper/approvals.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    async with house.opened(Scripted().calls("asks", text="x").then().says("Done.")) as third:
        session = await third.session()
        await third.ask(session, "go")
        assert await outputs(third, session) == ["x"], "it is allowed in a new session, after a restart"


async def test_an_approval_never_undoes_a_configured_deny(house: House) -> None:
    await house.left_waiting(Scripted().calls("asks", text="x"))
    async with look(house.url) as elsewhere:
        [request] = await elsewhere.permissions()
        await elsewhere.reply(request.id, "once")
    denying = {"permission": {"asks": {"*": "ask", "x": "deny"}}}
    async with house.opened(Scripted().says("Then not."), config=denying) as later:
        [session] = await later.tk.recover()
        assert "denied by a rule" in (await outputs(later, session))[0]


@pytest.mark.parametrize("feedback", [None, "Use tabs."])
async def test_a_rejection_rejects_what_else_of_the_session_waits(house: House, feedback: str | None) -> None:
    script = Scripted().calls("asks", text="x").calls("asks", text="y")
    async with house.opened(script) as first, first.tk.subscribe() as heard:
        session = await first.session()
        await first.say(session, "go")
        for _ in range(2):
            await until(heard, "permission.asked")
    answering = Scripted().says("Well.")
    async with house.opened(answering) as later:
        one, _ = await later.tk.permissions()
        await later.tk.reply(one.id, "reject", message=feedback)
        outcome = await later.tk.run(session)
        said = f" The user says: {feedback}" if feedback else ""
        assert await outputs(later, session) == [f"The user rejected this call.{said}", "The user rejected this call."]
        assert outcome.reason == REFUSED, "the second one was rejected without a word"


async def test_a_model_may_be_let_go_on_after_a_rejection_without_a_word(house: House) -> None:
    session = await house.left_waiting(Scripted().calls("asks", text="x"))
    config = {**ASK, "experimental": {"continue_loop_on_deny": True}}
    async with house.opened(Scripted().says("Another way."), config=config) as later:
        [one] = await later.tk.permissions()
        await later.tk.reply(one.id, "reject")
        assert (await later.tk.run(session)).reason == "answered"


@pytest.mark.parametrize(
    ("default", "output"),
    [("once", "x"), ("reject", REJECTED["late"]), (None, REJECTED["late"])],
)
async def test_a_live_ask_is_answered_by_its_default_at_its_deadline(
    house: House, default: str | None, output: str
) -> None:
    config = {**ASK, "ask": {"timeout": 30, **({"default": default} if default else {})}}
    async with house.opened(Scripted().calls("asks", text="x").then().says("ok"), config=config) as runtime:
        session = await runtime.session()
        await runtime.say(session, "go")
        await runtime.time.asleep(30)
        [request] = await runtime.tk.permissions()
        assert request.deadline == runtime.mint.now() + 30_000
        runtime.time.advance(30_000)
        await runtime.tk.wait(session)
        assert await outputs(runtime, session) == [output]


async def test_questions_that_nobody_answers_in_time_are_dismissed_and_the_model_is_told_why(house: House) -> None:
    config = {"ask": {"timeout": 30}}
    async with house.opened(Scripted().calls("question", questions=QUESTIONS), config=config) as runtime:
        session = await runtime.session()
        await runtime.say(session, "go")
        await runtime.time.asleep(30)
        runtime.time.advance(30_000)
        await runtime.tk.wait(session)
        assert await outputs(runtime, session) == [DISMISSED["late"]]


async def test_why_nobody_answered_is_told_by_the_process_that_takes_the_answer_up(house: House) -> None:
    session = await house.left_waiting(Scripted().calls("asks", text="x"))
    async with house.opened(Scripted()) as answering:
        [request] = await answering.tk.permissions()
        await answering.tk.reply(request.id, "reject", absence="nobody", resume=False)
    async with house.opened(Scripted()) as later:
        assert (await later.tk.run(session, resume=True)).reason == REFUSED
        assert await outputs(later, session) == [REJECTED["nobody"]]


async def test_a_deadline_that_passed_while_no_process_ran_is_kept_on_take_over(house: House) -> None:
    config = {**ASK, "ask": {"timeout": 30, "default": "once"}}
    session = await house.left_waiting(Scripted().calls("asks", text="x"), config=config)
    async with house.opened(Scripted().says("ok"), config=config, in_a_hurry=True) as later:
        later.time.advance(60_000)
        assert await later.tk.recover() == [session]
        assert await outputs(later, session) == ["x"]


async def test_a_responder_of_the_process_and_a_client_may_both_answer_and_the_first_counts(house: House) -> None:
    asked = Gate()

    async def slow(request: PermissionRequest) -> Reply:
        await asked.pass_through()
        return Reply(answer="reject")

    async with house.opened(Scripted().calls("asks", text="x").then().says("ok"), ask=slow) as runtime:
        session = await runtime.session()
        await runtime.say(session, "go")
        await asked.wait_reached()
        [request] = await runtime.tk.permissions()
        await runtime.tk.reply(request.id, "once")
        await runtime.tk.wait(session)
        assert await outputs(runtime, session) == ["x"]


async def test_a_responder_is_asked_what_an_earlier_process_left_when_the_session_is_resumed(house: House) -> None:
    session = await house.left_waiting(Scripted().calls("asks", text="x"))

    async def yes(request: PermissionRequest) -> Reply:
        return Reply(answer="once")

    async with house.opened(Scripted().says("ok"), ask=yes) as later:
        assert (await later.tk.run(session)).reason == WAITS
        assert (await later.tk.run(session, resume=True)).reason == "answered"
        assert await outputs(later, session) == ["x"]


async def test_an_abort_takes_back_what_waits_and_names_the_call_interrupted(house: House) -> None:
    session = await house.left_waiting(Scripted().calls("works", text="x"))
    async with house.opened(Scripted()) as later, later.tk.subscribe() as heard:
        assert await later.tk.stop(session)
        assert (await until(heard, "permission.replied")).properties["reply"] == "reject"
        [state] = await states(later, session)
        assert of_type(ToolError, state).metadata == {"interrupted": True}
        assert await later.tk.permissions() == []
        assert await later.is_sound(session)


async def test_a_session_that_waits_takes_no_other_work_and_prompts_wait_for_the_answer(house: House) -> None:
    session = await house.left_waiting(Scripted().calls("asks", text="x"))
    async with house.opened(Scripted().says("Heard both.")) as later:
        with pytest.raises(Busy, match="waits for an answer"):
            await later.tk.shell(session, "true")
        with pytest.raises(Busy, match="waits for an answer"):
            await later.tk.compact(session, force=True)
        await later.ask(session, "and this")
        assert len((await later.tk.store.journal.view(session)).inbox) == 1
        [request] = await later.tk.permissions()
        await later.tk.reply(request.id, "once")
        await later.tk.wait(session)
        assert (await later.tk.store.journal.view(session)).inbox == ()
        assert await outputs(later, session) == ["x"]


async def test_a_tool_that_acts_between_its_asks_is_interrupted_with_its_process(house: House) -> None:
    async def acts(text: str, context: ToolContext) -> str:
        house.done.append(text)
        await context.ask("asks", [text], always=[], metadata={})
        return text

    tool = a_tool("acts", acts)
    acting = type(tool)(
        name="acts",
        description=tool.description,
        parameters=tool.parameters,
        execute=tool.execute,
        permission="acts",
        asks_first=False,
    )
    session = await house.left_waiting(Scripted().calls("acts", text="x"), acting)
    async with house.opened(Scripted(), acting) as later:
        await later.tk.recover()
        [state] = await states(later, session)
        assert of_type(ToolError, state).metadata == {"interrupted": True}
        assert (house.done, await later.tk.permissions()) == (["x"], [])


async def test_what_a_function_asks_that_acts_between_its_asks_is_listed_while_its_process_lives(house: House) -> None:
    @custom.tool
    async def deploy(text: str, context: ToolContext) -> str:
        """Build, ask, publish."""
        await context.ask("asks", [text], always=[], metadata={})
        return text

    async with house.opened(Scripted().calls("deploy", text="x").then().says("ok"), deploy) as runtime:
        session = await runtime.session()
        async with runtime.tk.subscribe() as heard:
            await runtime.say(session, "go")
            await until(heard, "permission.asked")
        [request] = await runtime.tk.permissions()
        await runtime.tk.reply(request.id, "once")
        await runtime.tk.wait(session)
        assert await outputs(runtime, session) == ["x"]


@pytest.mark.parametrize("asks_first", [False, True])
async def test_a_function_that_asks_once_more_is_called_again_only_if_it_says_so(
    house: House, asks_first: bool
) -> None:
    @custom.tool(asks_first=asks_first)
    async def deploy(text: str, context: ToolContext) -> str:
        """Build, ask, publish."""
        house.done.append(text)
        await context.ask("asks", [text], always=[], metadata={})
        return text

    session = await house.left_waiting(Scripted().calls("deploy", text="x"), deploy)
    async with house.opened(Scripted().says("ok"), deploy) as later:
        await later.tk.recover()
        for request in await later.tk.permissions():
            await later.tk.reply(request.id, "once")
            await later.tk.wait(session)
        [state] = await states(later, session)
        assert isinstance(state, ToolCompleted if asks_first else ToolError)
        assert house.done == ["x"] * (1 + asks_first)


async def test_the_ask_about_a_loop_outlives_its_process(house: House) -> None:
    script = Scripted()
    for _ in range(2):
        script.calls("echo", text="same").then()
    session = await house.left_waiting(script.calls("echo", text="same"))
    async with house.opened(Scripted().says("ok")) as later:
        [request] = await later.tk.permissions()
        assert (request.permission, request.patterns) == ("doom_loop", ("echo",))
        await later.tk.reply(request.id, "once")
        await later.tk.wait(session)
        assert await outputs(later, session) == ["same"] * 3
        asked = [one for one in await later.events(session) if isinstance(one, e.PermissionAsked)]
        assert len(asked) == 1


QUESTIONS = [{"question": "Which?", "header": "Choice", "options": [{"label": "A", "description": "first"}]}]


async def test_a_name_that_is_no_text_can_be_asked_about(house: House) -> None:
    async def odd(text: str, context: ToolContext) -> str:
        await context.ask("asks", [f"{text}\udcff"], always=["\udcff"], metadata={"path": "\udcff"})
        return "done"

    async with house.opened(Scripted().calls("odd", text="x").then().says("ok"), a_tool("odd", odd)) as runtime:
        session = await runtime.session()
        async with runtime.tk.subscribe() as heard:
            await runtime.say(session, "go")
            asked = await until(heard, "permission.asked")
        await runtime.tk.reply(str(asked.properties["id"]), "once")
        await runtime.tk.wait(session)
        assert await outputs(runtime, session) == ["done"]


async def test_questions_outlive_their_process_and_their_answers_reach_the_model(house: House) -> None:
    session = await house.left_waiting(Scripted().calls("question", questions=QUESTIONS))
    async with house.opened(script := Scripted().says("So be it.")) as later:
        [request] = await later.tk.questions(directory=house.directory / "place")
        with pytest.raises(Invalid, match="1 question"):
            await later.tk.answer(request.id, [])
        await later.tk.answer(request.id, [["A and more"]])
        await later.tk.wait(session)
        [output] = await outputs(later, session)
        assert '"Which?"="A and more"' in output
        assert result_text(script.requests[0].messages[-1]) == output
        assert await later.tk.questions() == []


async def test_a_call_stops_waiting_when_its_session_is_removed_by_another_process(house: House) -> None:
    async with house.opened(Scripted().calls("asks", text="x")) as runtime, look(house.url) as elsewhere:
        session = await runtime.session()
        async with runtime.tk.subscribe() as heard:
            await runtime.say(session, "go")
            await until(heard, "permission.asked")
        engine = elsewhere.store.engine
        while True:
            try:
                await engine.remove({session: await engine.length(session)}, [()])
                break
            except LogConflict:  # The process still writes that it waits.
                continue
        outcome = await runtime.tk.runtime.wait(session)
        assert (outcome.kind, outcome.reason) == ("refused", f"there is no session {session!r}")
        assert runtime.tk.running == frozenset()


class Enough(Exception):
    """The watch is over."""


@pytest.mark.parametrize(
    ("outcome", "tries"),
    [
        (True, 1),
        (False, 3),
        (NotFound("it was just removed"), 1),
        (DamagedDocument("state/one", "no JSON"), 1),
        (StoreUnavailable("locked"), 3),
    ],
    ids=repr,
)
async def test_a_session_that_was_answered_elsewhere_is_tried_until_it_runs_or_cannot(
    house: House, outcome: bool | Exception, tries: int
) -> None:
    session = await house.left_waiting(Scripted().calls("asks", text="x"))
    tried: list[str] = []
    rounds = count()

    async def sleep(seconds: float) -> None:
        if next(rounds) == 3:
            raise Enough

    async def go_on(session_id: str) -> bool:
        tried.append(session_id)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async with look(house.url) as elsewhere:
        with pytest.raises(Enough):
            await watch(elsewhere.store, sleep, go_on)
        assert tried == []  # Nothing is answered yet.
        [request] = await elsewhere.permissions()
        await elsewhere.reply(request.id, "once")
        rounds = count()
        with pytest.raises(Enough):
            await watch(elsewhere.store, sleep, go_on)
    assert tried == [session] * tries


async def test_dismissed_questions_end_the_drain(house: House) -> None:
    session = await house.left_waiting(Scripted().calls("question", questions=QUESTIONS))
    async with house.opened(Scripted()) as later, later.tk.subscribe() as heard:
        [request] = await later.tk.questions()
        await later.tk.answer(request.id, None)
        assert (await until(heard, "question.rejected")).properties["requestID"] == request.id
        await until(heard, "session.idle")
        assert (await later.tk.run(session)).reason == REFUSED
        assert await outputs(later, session) == ["The user dismissed the questions."]


async def test_a_model_is_not_offered_questions_that_nobody_can_answer(house: House) -> None:
    from turnkeeper.run.permission import dismiss_all

    for question, is_offered in ((None, True), (dismiss_all, False)):
        async with house.opened(script := Scripted().says("Hi."), question=question) as runtime:
            await runtime.ask(await runtime.session(), "go")
            assert ("question" in [tool.name for tool in script.requests[0].tools]) is is_offered
