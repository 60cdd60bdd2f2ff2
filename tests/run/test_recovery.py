"""Sessions that a dead process left: closed, told apart from living ones, and gone on with as the policy says."""

from collections.abc import AsyncGenerator, Sequence

import anyio
import msgspec
import pytest
from left_behind import DEAD, OPEN_TEXT, STEP, TURN, left_behind, turn_of
from narrow import result_text, results_of

from turnkeeper.core.turn_ends import LOST
from turnkeeper.model import event as e
from turnkeeper.model.failure import AbortedFailure
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.tool import RunningTime, ToolError, ToolPending, ToolProvider, ToolRunning
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.status import BUSY, IDLE
from turnkeeper.model.stream import StreamEvent
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.recover import Recovery
from turnkeeper.testing.builders import NOW, SOME_TOKENS, a_call, a_session, an_assistant, completed, running
from turnkeeper.testing.harness import Play
from turnkeeper.workspace.owner import this_process


async def test_a_turn_that_had_said_nothing_is_asked_again_by_itself(play: Play) -> None:
    script = Scripted().says("Here I am.")
    async with play(script) as stage:
        session = await left_behind(stage, STEP)
        assert await stage.tk.runtime.failover.recover() == [session]
        assert len(script.requests) == 1
        [(message, _)] = await stage.turns(session)
        assert message.id != turn_of(session)
        assert message.error is None
        assert await stage.is_sound(session)


async def test_what_a_provider_had_counted_of_a_killed_attempt_is_billed_beside_the_attempts_before_it(
    play: Play,
) -> None:
    async with play(Scripted()) as stage:
        session = await left_behind(stage, STEP, *OPEN_TEXT)
        view = await stage.tk.store.journal.view(session)
        assert view.turn is not None
        first = e.UsageRecorded(
            purpose="turn",
            provider_id="acme",
            model_id="large",
            message_id=turn_of(session),
            tokens=SOME_TOKENS,
            cost=0.1,
        )
        counted = view.turn.message.but(tokens=SOME_TOKENS, cost=0.3)
        await stage.tk.store.journal.append(session, first, e.MessageRecorded(message=counted))
        await stage.tk.runtime.failover.recover("rest")
        rows = [(one.attempt, one.tokens, one.cost) async for one in stage.tk.ledger(session)]
        assert rows == [(1, SOME_TOKENS, 0.1), (2, SOME_TOKENS, 0.2)]
        [(message, _)] = await stage.turns(session)
        assert (message.tokens, message.cost, (await stage.tk.get(session)).cost) == (SOME_TOKENS, 0.3, 0.3)
        assert await stage.is_sound(session)


@pytest.mark.parametrize("policy", ["rest", "continue"])
async def test_text_is_kept_and_the_policy_says_whether_it_goes_on(play: Play, policy: Recovery) -> None:
    script = Scripted().says("And the rest.")
    async with play(script) as stage:
        session = await left_behind(stage, STEP, *OPEN_TEXT)
        assert await stage.tk.runtime.failover.recover(policy) == [session]
        (message, parts), *rest = await stage.turns(session)
        assert isinstance(message.error, AbortedFailure)
        assert message.error.data.message == LOST
        [text] = [part for part in parts if isinstance(part, TextPart)]
        assert text.text == "Half an answer"
        assert text.time is not None
        assert text.time.end is not None
        assert len(rest) == (policy == "continue")
        assert len(script.requests) == (policy == "continue")
        assert await stage.tk.status(session) == IDLE
        assert await stage.is_sound(session)


@pytest.mark.parametrize(
    ("config", "metadata", "goes_on"),
    [
        ({}, None, False),
        ({"recovery": "continue"}, None, True),
        ({"recovery": "continue"}, {"recovery": "rest"}, False),
        ({}, {"recovery": "continue"}, True),
        ({"recovery": "continue"}, {"recovery": "nonsense"}, True),
        ({"recovery": "ask"}, None, True),
    ],
    ids=["by default", "configured", "the session is stronger", "of the session", "nonsense", "asked"],
)
async def test_the_session_then_the_configuration_say_whether_a_cut_answer_goes_on(
    play: Play, config: dict[str, object], metadata: dict[str, object] | None, goes_on: bool
) -> None:
    script = Scripted().says("And the rest.")
    asked: list[str] = []

    async def ask(session_id: str) -> bool:
        asked.append(session_id)
        return True

    async with play(script, config=config) as stage:
        session = await left_behind(stage, STEP, *OPEN_TEXT)
        if metadata is not None:
            await stage.tk.update(session, lambda one: one.but(metadata=metadata))
        await stage.tk.runtime.failover.recover(ask=ask)
        assert len(script.requests) == goes_on
        assert asked == ([session] if config.get("recovery") == "ask" else [])


async def test_with_nobody_to_ask_a_cut_answer_rests(play: Play) -> None:
    async with play(Scripted(), config={"recovery": "ask"}) as stage:
        session = await left_behind(stage, STEP, *OPEN_TEXT)
        assert await stage.tk.runtime.failover.recover() == [session]
        assert await stage.is_sound(session)


async def test_a_broken_configuration_keeps_no_session_from_being_closed(play: Play) -> None:
    async with play(Scripted()) as stage:
        sessions = {await left_behind(stage, STEP, *OPEN_TEXT), await left_behind(stage, STEP, *OPEN_TEXT)}
        (stage.directory / "turnkeeper.json").write_text("{ not a configuration")
        assert set(await stage.tk.runtime.failover.recover()) == sessions
        for session in sessions:
            assert await stage.is_sound(session)


@pytest.mark.parametrize(
    "part",
    [
        a_call(TURN, "prt_2"),
        a_call(TURN, "prt_2", ToolPending(input={}, raw="")),
        a_call(TURN, "prt_2", running()),
        a_call(TURN, "prt_2", ToolRunning(input={"a": 1}, metadata={"output": "half"}, time=RunningTime(start=NOW))),
        a_call(TURN, "prt_2", running(), provider=ToolProvider(executed=True)),
    ],
    ids=["pending", "pending without a byte", "running", "running with output", "run by the provider"],
)
async def test_calls_that_were_under_way_are_settled_and_never_run_again(play: Play, part: ToolPart) -> None:
    script = Scripted().says("What now?")
    async with play(script) as stage:
        session = await left_behind(stage, STEP, e.PartRecorded(part=part))
        await stage.tk.runtime.failover.recover("continue")
        (message, parts), _ = await stage.turns(session)
        assert isinstance(message.error, AbortedFailure)
        [call] = [one for one in parts if isinstance(one, ToolPart)]
        assert isinstance(call.state, ToolError)
        assert call.state.metadata is not None
        assert call.state.metadata["interrupted"] is True
        assert call.state.input == part.state.input
        if isinstance(part.state, ToolRunning) and part.state.metadata:
            assert call.state.metadata["output"] == "half"
        assert await stage.is_sound(session)


async def test_a_result_that_was_recorded_stays_and_is_shown_to_the_model(play: Play) -> None:
    done, open_ = a_call(TURN, "prt_2", completed("one file")), a_call(TURN, "prt_3", running())
    script = Scripted().says("I see.")
    async with play(script) as stage:
        await left_behind(stage, STEP, e.PartRecorded(part=done), e.PartRecorded(part=open_))
        await stage.tk.runtime.failover.recover("continue")
        sent = script.requests[0].messages[2]
        assert result_text(sent) == "one file"
        assert [result.is_error for result in results_of(sent)] == [False, True]


async def test_without_a_policy_the_configuration_of_the_directory_decides(play: Play) -> None:
    script = Scripted().says("And the rest.")
    async with play(script) as stage:
        settings = msgspec.json.decode((stage.directory / "turnkeeper.json").read_bytes())
        (stage.directory / "turnkeeper.json").write_bytes(msgspec.json.encode({**settings, "recovery": "continue"}))
        session = await left_behind(stage, STEP, *OPEN_TEXT)
        assert await stage.tk.recover() == [session]
        assert len(script.requests) == 1


async def test_a_session_may_have_a_policy_of_its_own(play: Play) -> None:
    script = Scripted().says("And the rest.")
    async with play(script) as stage:
        session = await left_behind(stage, STEP, *OPEN_TEXT)
        await stage.tk.update(session, lambda one: one.but(metadata={"recovery": "continue"}))
        await stage.tk.recover()
        assert len(script.requests) == 1


async def test_sessions_that_are_their_own_ancestors_are_recovered(play: Play) -> None:
    async with play(Scripted()) as stage:
        for name, parent in (("ses_a", "ses_b"), ("ses_b", "ses_a")):
            imported = a_session(name, parent_id=parent, directory=str(stage.directory))
            await stage.tk.store.journal.create(imported)
        await left_behind(stage, STEP, *OPEN_TEXT, session="ses_a")
        with anyio.fail_after(60):
            assert await stage.tk.recover() == ["ses_a"]
        assert await stage.tk.status("ses_a") == IDLE


@pytest.mark.parametrize("yes", [True, False])
async def test_the_policy_ask_asks_the_user(play: Play, yes: bool) -> None:
    script = Scripted().says("And the rest.")
    asked: list[str] = []

    async def ask(session_id: str) -> bool:
        asked.append(session_id)
        return yes

    async with play(script) as stage:
        session = await left_behind(stage, STEP, *OPEN_TEXT)
        await stage.tk.runtime.failover.recover("ask", ask=ask)
        assert asked == [session]
        assert len(script.requests) == yes


async def test_a_turn_whose_calls_were_all_settled_goes_on_whatever_the_policy(play: Play) -> None:
    script = Scripted().says("Done.")
    async with play(script) as stage:
        call = e.PartRecorded(part=a_call(TURN, "prt_2", completed()))
        session = await left_behind(stage, STEP, call)
        ended = an_assistant(
            session, turn_of(session), "msg_user", provider_id="acme", model_id="large", finish="tool-calls"
        )
        await stage.tk.store.journal.append(session, e.TurnEnded(message=ended))
        await stage.tk.runtime.failover.recover("rest")
        assert len(script.requests) == 1


async def test_prompts_that_waited_are_answered_after_recovery(play: Play) -> None:
    script = Scripted().says("All of it.").then().says("And that.")
    async with play(script) as stage:
        session = await left_behind(stage, STEP, *OPEN_TEXT)
        await stage.say(session, "steer", resume=False)
        await stage.say(session, "queued", delivery="queue", resume=False)
        await stage.tk.runtime.failover.recover()
        assert len(script.requests) == 2
        assert (await stage.tk.store.journal.view(session)).inbox == ()


async def test_a_prompt_for_a_session_of_a_dead_process_takes_it_over(play: Play) -> None:
    script = Scripted().says("I am back.")
    async with play(script) as stage:
        session = await left_behind(stage, STEP, *OPEN_TEXT)
        assert (await stage.ask(session, "hello?")).reason == "answered"
        assert await stage.is_sound(session)


async def test_what_a_living_process_runs_is_left_alone(play: Play) -> None:
    async with play(Scripted()) as stage:
        living = this_process().but(runtime="another")
        session = await left_behind(stage, STEP, *OPEN_TEXT, owner=living)
        before = await stage.events(session)
        assert await stage.tk.runtime.failover.recover("continue") == []
        assert (await stage.tk.run(session)).kind == "refused"
        assert await stage.events(session) == before


async def test_sessions_are_recovered_at_the_same_time(play: Play) -> None:
    class Meeting(Scripted):
        """Answers nobody until both have asked."""

        def __init__(self) -> None:
            super().__init__()
            self.both = anyio.Event()

        async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
            if self.requests:
                self.both.set()
            async for batch in super().stream(request):
                await self.both.wait()
                yield batch

    script = Meeting().says("a").then().says("b")
    async with play(script) as stage:
        sessions = {await left_behind(stage, STEP), await left_behind(stage, STEP)}
        assert set(await stage.tk.runtime.failover.recover()) == sessions


async def test_a_session_without_a_turn_under_way_is_only_laid_down(play: Play) -> None:
    async with play(Scripted()) as stage:
        session = await stage.session()
        await stage.tk.store.journal.append(session, e.StatusChanged(status=BUSY, owner=DEAD))
        assert await stage.tk.runtime.failover.recover() == [session]
        assert await stage.tk.status(session) == IDLE


async def test_taken_over_what_rests_is_idle_and_what_goes_on_is_ours_until_it_is_run(play: Play) -> None:
    script = Scripted().says("Here I am.")
    async with play(script) as stage:
        cut, silent = await left_behind(stage, STEP, *OPEN_TEXT), await left_behind(stage, STEP)
        left = {one.session_id: one for one in await stage.tk.take_over()}
        views = {session: await stage.tk.store.journal.view(session) for session in (cut, silent)}
        assert [views[session].turn for session in (cut, silent)] == [None, None]
        assert (left[cut].rests, views[cut].status, views[cut].owner) == (True, IDLE, None)
        assert (left[silent].rests, views[silent].status) == (False, BUSY)
        owner = views[silent].owner
        assert owner is not None
        assert owner.pid == this_process().pid, "if we die now, it is found again"
        assert script.requests == []
        await stage.tk.resume_taken_over(list(left.values()))
        assert len(script.requests) == 1
        assert await stage.tk.status(silent) == IDLE


async def test_one_session_that_cannot_be_closed_keeps_nobody_from_the_others(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    async with play(Scripted()) as stage:
        lost, found = await left_behind(stage, STEP, *OPEN_TEXT), await left_behind(stage, STEP, *OPEN_TEXT)
        await stage.tk.store.engine.put({("busy", f"{lost}_gone"): b"{}"})
        left = await stage.tk.take_over()
        assert {one.session_id for one in left} == {lost, found}
        assert f"{lost}_gone" in caplog.text
