"""What a turn does with permissions: allowed, denied, asked, refused, and calls that go round in circles."""

from pathlib import Path

import pytest
from narrow import of_type, result_text

from turnkeeper.core.next_action import REFUSED
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolState
from turnkeeper.model.permission import PermissionRequest, Reply
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.permission import reject_all
from turnkeeper.testing.harness import Play, Stage

Ask = {"permission": {"asks": "ask"}}


class Person:
    """Answers what is asked, in order, and remembers the questions."""

    def __init__(self, *replies: Reply) -> None:
        self.asked: list[PermissionRequest] = []
        self._replies = list(replies)

    async def __call__(self, request: PermissionRequest) -> Reply:
        self.asked.append(request)
        return self._replies.pop(0)


async def states(stage: Stage, session: str) -> list[ToolState]:
    return [part.state for _, parts in await stage.turns(session) for part in parts if isinstance(part, ToolPart)]


async def test_what_the_rules_allow_is_not_asked(play: Play) -> None:
    person = Person()
    async with play(Scripted().calls("asks", text="a").then().says("ok"), ask=person) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        assert [of_type(ToolCompleted, state).output for state in await states(stage, session)] == ["a"]
        assert person.asked == []


async def test_what_the_rules_deny_fails_and_the_model_goes_on(play: Play) -> None:
    person = Person()
    script = Scripted().calls("asks", text="secret").then().says("Then not.")
    config = {"permission": {"asks": {"*": "allow", "secret": "deny"}}}
    async with play(script, ask=person, config=config) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "answered"
        [state] = await states(stage, session)
        assert "denied by a rule" in of_type(ToolError, state).error
        assert person.asked == []
        assert len(script.requests) == 2


async def test_what_the_rules_leave_open_is_asked_and_an_approval_once_holds_once(play: Play) -> None:
    person = Person(Reply(answer="once"), Reply(answer="once"))
    script = Scripted().calls("asks", text="a").then().calls("asks", text="a").then().says("ok")
    async with play(script, ask=person, config=Ask) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        assert [request.patterns for request in person.asked] == [("a",), ("a",)]
        assert {request.session_id for request in person.asked} == {session}


async def test_an_approval_for_good_holds_in_the_directory_until_it_is_revoked(play: Play, tmp_path: Path) -> None:
    person = Person(Reply(answer="always"), Reply(answer="once"), Reply(answer="once"))
    script = Scripted()
    for _ in range(4):
        script.calls("asks", text="a").then().says("ok").then()
    async with play(script, ask=person, config=Ask) as stage:
        (elsewhere := tmp_path / "elsewhere").mkdir()
        (elsewhere / "turnkeeper.json").write_bytes((stage.directory / "turnkeeper.json").read_bytes())
        one, other = await stage.session(), await stage.session()
        await stage.ask(one, "go")
        await stage.ask(other, "go")
        assert len(person.asked) == 1
        await stage.ask(await stage.session(directory=elsewhere), "go")
        assert len(person.asked) == 2, "without a repository an approval holds in its own directory"
        [saved] = await stage.tk.approvals()
        assert (saved.id[:4], saved.permission, saved.pattern) == ("psv_", "asks", "a")
        assert await stage.tk.revoke(saved.id)
        assert await stage.tk.approvals() == ()
        await stage.ask(one, "again")
        assert len(person.asked) == 3


async def test_a_refusal_without_a_word_ends_the_drain_and_queued_prompts_wait(play: Play) -> None:
    person = Person(Reply(answer="reject"))
    script = Scripted().calls("asks", text="a").then().says("Spoken to.").then().says("Queued.")
    async with play(script, ask=person, config=Ask) as stage:
        session = await stage.session()
        await stage.say(session, "later", delivery="queue", resume=False)
        outcome = await stage.ask(session, "go")
        assert outcome.reason == "the user refused a tool"
        [(message, _)] = await stage.turns(session)
        assert message.error is None
        [state] = await states(stage, session)
        assert of_type(ToolError, state).metadata == {"rejected": True}
        assert len((await stage.tk.store.journal.view(session)).inbox) == 1
        assert (await stage.tk.run(session)).reason == "the user refused a tool"
        await stage.ask(session, "Do it differently.")
        assert len(script.requests) == 3


async def test_a_prompt_that_is_queued_after_a_refusal_is_answered_behind_those_that_waited(play: Play) -> None:
    script = Scripted().calls("asks", text="a").then().says("Earlier.").then().says("Later.")
    async with play(script, ask=Person(Reply(answer="reject")), config=Ask) as stage:
        session = await stage.session()
        await stage.say(session, "earlier", delivery="queue", resume=False)
        await stage.ask(session, "go")
        await stage.say(session, "later", delivery="queue", resume=False)
        assert (await stage.tk.run(session)).reason == "answered"
        assert len(script.requests) == 3
        assert (await stage.tk.store.journal.view(session)).inbox == ()


async def test_where_nobody_can_be_asked_the_model_is_told_so_for_each_call(play: Play) -> None:
    script = Scripted().calls("asks", text="a").calls("asks", text="b")
    async with play(script, ask=reject_all, config=Ask) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == REFUSED
        errors = [of_type(ToolError, state).error for state in await states(stage, session)]
        assert errors == ["This call needs the user's permission, and nobody could be asked."] * 2


async def test_a_refusal_with_advice_goes_back_to_the_model(play: Play) -> None:
    person = Person(Reply(answer="reject", feedback="Use the other one."))
    script = Scripted().calls("asks", text="a").then().says("I will.")
    async with play(script, ask=person, config=Ask) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "answered"
        assert "Use the other one." in result_text(script.requests[1].messages[-1])


async def test_an_interrupt_ends_a_question(play: Play) -> None:
    asked = Gate()

    async def silence(request: PermissionRequest) -> Reply:
        await asked.pass_through()
        return Reply(answer="once")

    async with play(Scripted().calls("asks", text="a"), ask=silence, config=Ask) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await asked.wait_reached()
        assert await stage.tk.stop(session)
        [state] = await states(stage, session)
        assert of_type(ToolError, state).metadata == {"interrupted": True}
        assert await stage.is_sound(session)


def three_times(script: Scripted, across: bool) -> Scripted:
    for number in range(3):
        script.calls("echo", text="same")
        if across and number < 2:
            script.then()
    return script


@pytest.mark.parametrize("across", [True, False], ids=["across steps", "in one step"])
async def test_the_third_identical_call_in_a_row_is_asked_about(play: Play, across: bool) -> None:
    person = Person(Reply(answer="once"))
    script = three_times(Scripted(), across).then().says("ok")
    async with play(script, ask=person) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "answered"
        [request] = person.asked
        assert (request.permission, request.patterns) == ("doom_loop", ("echo",))
        assert [of_type(ToolCompleted, state).output for state in await states(stage, session)] == ["same"] * 3


async def test_a_refused_loop_ends_the_drain_and_the_third_call_never_runs(play: Play) -> None:
    person = Person(Reply(answer="reject"))
    async with play(three_times(Scripted(), True), ask=person) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "the user refused a tool"
        assert [type(state) for state in await states(stage, session)] == [ToolCompleted, ToolCompleted, ToolError]


async def test_a_loop_that_a_rule_denies_fails_its_call_and_the_model_goes_on(play: Play) -> None:
    person = Person()
    script = three_times(Scripted(), True).then().says("I stop.")
    async with play(script, ask=person, config={"permission": {"doom_loop": "deny"}}) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "answered"
        assert isinstance((await states(stage, session))[-1], ToolError)


async def test_a_denied_call_that_is_repeated_is_denied_without_asking_and_the_session_rests(play: Play) -> None:
    person = Person()
    script = Scripted()
    for _ in range(3):
        script.calls("asks", text="same").then()
    script.says("Never.")
    async with play(script, ask=person, config={"permission": {"asks": {"same": "deny"}}}) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        assert person.asked == []
        errors = [of_type(ToolError, state) for state in await states(stage, session)]
        assert [state.error.startswith("This call is denied by a rule") for state in errors] == [True] * 3
        assert [state.metadata for state in errors] == [None, None, {"rejected": True}]
        assert len(script.requests) == 3


async def test_what_the_user_says_begins_the_count_anew(play: Play) -> None:
    person = Person()
    script = Scripted().calls("echo", text="same").calls("echo", text="same").then().says("ok").then()
    script.calls("echo", text="same").then().says("ok")
    async with play(script, ask=person) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        await stage.ask(session, "again")
        assert person.asked == []


REPLIES = [*(Reply(answer=word) for word in ("no", "deny", "Once", "", None, False, True)), None, True, "once"]  # type: ignore[arg-type]


@pytest.mark.parametrize("reply", REPLIES, ids=repr)
async def test_an_answer_that_is_neither_once_nor_always_refuses_the_call(play: Play, reply: Reply) -> None:
    script = Scripted().calls("asks", text="a").then().says("ok")
    async with play(script, ask=Person(reply), config=Ask) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == REFUSED
        [state] = await states(stage, session)
        assert isinstance(state, ToolError)
        assert "only 'once' and 'always' allow" in state.error
        assert len(script.requests) == 1
