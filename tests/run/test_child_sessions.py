"""Child Sessions: the task tool hands work to another agent, which does it in a session of its own."""

from typing import Any

import pytest
from children import AGENTS, TOOLS_AND_TASK, BySession, a_task, calls, texts
from narrow import of_type, result_text

from turnkeeper.core.next_action import REFUSED
from turnkeeper.core.permission import evaluate
from turnkeeper.model.failure import AbortedFailure
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.permission import PermissionRequest, Reply, Rule
from turnkeeper.model.prompt import AgentInput, TextInput
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.session import SessionModel
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import Play, Stage

GIVEN: dict[str, Any] = {"tools": TOOLS_AND_TASK, "config": AGENTS}


def description(request: ModelRequest) -> str:
    return next((one.description for one in request.tools if one.name == "task"), "")


async def test_a_task_is_done_in_a_session_of_its_own_and_comes_back_as_one_result(play: Play) -> None:
    model = BySession(
        root=Scripted().calls("task", **a_task("find it")).then().says("It is there."),
        find=Scripted().calls("echo", text="hm").then().says("Here it is."),
    )
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        await stage.ask(session, "root: where is it?")
        [made] = await stage.tk.children(session)
        assert (made.title, made.agent, made.parent_id) == ("Look around (@helper subagent)", "helper", session)
        assert made.directory == (await stage.tk.get(session)).directory
        assert await texts(stage, made.id) == ["find it", "Here it is."]
        assert await texts(stage, session) == ["root: where is it?", "It is there."]
        [state] = await calls(stage, session)
        assert isinstance(state, ToolCompleted)
        assert state.title == "Look around"
        shape = '<task id="{}" state="completed">\n<task_result>\nHere it is.\n</task_result>\n</task>'
        assert state.output == shape.format(made.id)
        assert state.metadata == {
            "parentSessionId": session,
            "sessionId": made.id,
            "model": {"providerID": "acme", "modelID": "large"},
            "truncated": False,
        }
        assert await stage.is_sound(session)
        assert await stage.is_sound(made.id)


async def test_the_model_is_told_of_the_agents_that_it_may_call(play: Play) -> None:
    config = {"agent": {**AGENTS["agent"], "secret": {"mode": "subagent", "hidden": True}}}
    config["permission"] = {"task": {"scout": "deny"}}
    model = BySession(root=Scripted().says("Hello."))
    async with play(model, tools=TOOLS_AND_TASK, config=config) as stage:
        await stage.ask(await stage.session(), "root: hello")
        told = description(model.requests[0])
    assert "- helper: Helps with anything." in told
    assert "scout" not in told
    assert "build" not in told
    assert "secret" not in told


async def test_the_parameters_of_a_task_have_the_names_that_clients_show(play: Play) -> None:
    camel = {"description": "Look", "prompt": "one", "subagentType": "helper"}
    model = BySession(root=Scripted().calls("task", **camel).then().says("Hello."), one=Scripted().says("done"))
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        await stage.ask(session, "root: hello")
        [schema] = [one.schema for one in model.requests[0].tools if one.name == "task"]
        properties = of_type(dict, schema["properties"])
        assert list(properties) == ["description", "prompt", "subagent_type", "task_id", "command", "background"]
        assert schema["required"] == ["description", "prompt", "subagent_type"]
        assert [type(state) for state in await calls(stage, session)] == [ToolCompleted]


async def test_without_an_agent_to_call_the_tool_is_not_offered(play: Play) -> None:
    model = BySession(root=Scripted().says("Hello."))
    alone = {"agent": {"explore": {"disable": True}, "general": {"disable": True}}}
    async with play(model, tools=TOOLS_AND_TASK, config=alone) as stage:
        await stage.ask(await stage.session(), "root: hello")
        assert "task" not in [tool.name for tool in model.requests[0].tools]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (
            a_task(agent="nobody"),
            "There is no agent 'nobody'; the agents are: build, explore, general, helper, plan, scout",
        ),
        (a_task(task_id="ses_other"), "'ses_other' is no task of this session; leave task_id out to begin a new one"),
    ],
    ids=["unknown agent", "unknown task"],
)
async def test_a_task_that_cannot_be_given_fails_and_makes_no_session(
    play: Play, given: dict[str, Any], error: str
) -> None:
    model = BySession(root=Scripted().calls("task", **given).then().says("I see."))
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        await stage.ask(session, "root: go")
        [state] = await calls(stage, session)
        assert of_type(ToolError, state).error == error
        assert await stage.tk.children(session) == []


async def test_a_session_goes_on_only_with_tasks_of_its_own(play: Play) -> None:
    model = BySession(root=Scripted().says("Hello."), other=Scripted().calls("task", **a_task()).then().says("I see."))
    async with play(model, **GIVEN) as stage:
        foreign = await stage.session()
        await stage.ask(foreign, "root: hello")
        model.add(other=Scripted().calls("task", **a_task(task_id=foreign)).then().says("I see."))
        session = await stage.session()
        await stage.ask(session, "other: go")
        [state] = await calls(stage, session)
        assert of_type(ToolError, state).error.startswith(f"'{foreign}' is no task of this session")
        assert await texts(stage, foreign) == ["root: hello", "Hello."]


async def test_agents_nest_as_deep_as_the_configuration_says(play: Play) -> None:
    agents = {"agent": {"helper": {**AGENTS["agent"]["helper"], "permission": {"task": "allow"}}}}
    model = BySession(
        root=Scripted().calls("task", **a_task("one")).then().says("done"),
        one=Scripted().calls("task", **a_task("two")).then().says("one is done"),
        two=Scripted().calls("task", **a_task("three")).then().says("two is done"),
    )
    async with play(model, tools=TOOLS_AND_TASK, config={**agents, "subagent_depth": 2}) as stage:
        session = await stage.session()
        await stage.ask(session, "root: go")
        [one, two] = await stage.tk.children(session, recursive=True)
        assert [one.parent_id, two.parent_id] == [session, one.id]
        [state] = await calls(stage, two.id)
        error = of_type(ToolError, state).error
        assert error.startswith("Agents may nest 2 deep (the setting subagent_depth), and this session is at depth 2")
        assert [type(state) for state in await calls(stage, one.id)] == [ToolCompleted]


async def test_a_child_session_cannot_start_others_by_default(play: Play) -> None:
    model = BySession(
        root=Scripted().calls("task", **a_task("one")).then().says("done"), one=Scripted().says("I am alone.")
    )
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        await stage.ask(session, "root: go")
        [of_root, of_child, _] = model.requests
        assert {"task", "todowrite"} <= {tool.name for tool in of_root.tools}
        assert {tool.name for tool in of_child.tools} & {"task", "todowrite"} == set()


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({}, "Agents may nest 1 deep (the setting subagent_depth), and this session is at depth 1"),
        ({"subagent_depth": 2}, "This call is denied by a rule"),
    ],
    ids=["as deep as allowed", "without a rule that allows it"],
)
async def test_a_nested_task_is_refused_with_the_limit_or_the_rule(
    play: Play, settings: dict[str, int], error: str
) -> None:
    model = BySession(
        root=Scripted().calls("task", **a_task("one")).then().says("done"),
        one=Scripted().calls("task", **a_task("two")).then().says("I do it."),
    )
    async with play(model, tools=TOOLS_AND_TASK, config={**AGENTS, **settings}) as stage:
        session = await stage.session()
        await stage.ask(session, "root: go")
        [child] = await stage.tk.children(session, recursive=True)
        [state] = await calls(stage, child.id)
        assert of_type(ToolError, state).error.startswith(error)


class Asked:
    """A user who is asked, and answers all the same."""

    def __init__(self, answer: Reply) -> None:
        self.answer = answer
        self.requests: list[PermissionRequest] = []

    async def ask(self, request: PermissionRequest) -> Reply:
        self.requests.append(request)
        return self.answer


async def test_the_user_is_asked_before_another_agent_is_called(play: Play) -> None:
    user = Asked(Reply(answer="reject", feedback="do it yourself"))
    model = BySession(root=Scripted().calls("task", **a_task("one")).then().says("Then I do it."))
    config = {**AGENTS, "permission": {"task": "ask"}}
    async with play(model, tools=TOOLS_AND_TASK, config=config, ask=user.ask) as stage:
        session = await stage.session()
        await stage.ask(session, "root: go")
        [asked] = user.requests
        assert (asked.permission, asked.patterns, asked.always) == ("task", ("helper",), ("helper",))
        assert asked.metadata == {"description": "Look around", "subagent_type": "helper"}
        assert "do it yourself" in of_type(ToolError, (await calls(stage, session))[0]).error
        assert await stage.tk.children(session) == []


@pytest.mark.parametrize(("named", "is_called"), [("helper", True), ("scout", False)])
async def test_an_agent_that_the_user_mentions_is_called_without_asking(
    play: Play, named: str, is_called: bool
) -> None:
    user = Asked(Reply(answer="reject"))
    model = BySession(
        root=Scripted().calls("task", **a_task("one")).then().says("done"), one=Scripted().says("one is done")
    )
    config = {**AGENTS, "permission": {"task": {"helper": "deny"}}}
    async with play(model, tools=TOOLS_AND_TASK, config=config, ask=user.ask) as stage:
        session = await stage.session()
        parts = (TextInput(text="root: go"), AgentInput(name=named))
        await stage.ask(session, "", parts=parts)
        [state] = await calls(stage, session)
        assert user.requests == []
        assert isinstance(state, ToolCompleted) is is_called


async def test_several_tasks_of_one_answer_run_at_the_same_time(play: Play) -> None:
    gates = {name: Gate() for name in ("one", "two", "three")}
    both = Scripted()
    for name in gates:
        both.calls("task", **a_task(name))
    scripts = {name: Scripted().waits(gate).says(f"{name} is done") for name, gate in gates.items()}
    async with play(BySession(root=both.then().says("all done"), **scripts), **GIVEN) as stage:
        session = await stage.session()
        await stage.say(session, "root: go")
        for gate in gates.values():
            await gate.wait_reached()
        assert len(stage.tk.running) == 4
        for gate in reversed(gates.values()):
            gate.open()
        await stage.tk.wait(session)
        outputs = [of_type(ToolCompleted, state).output.splitlines()[2] for state in await calls(stage, session)]
        assert outputs == ["one is done", "two is done", "three is done"]


async def test_a_task_goes_on_in_its_session_with_all_that_is_known_there(play: Play) -> None:
    model = BySession(
        root=Scripted().calls("task", **a_task("one")).then().says("first"),
        one=Scripted().says("one is done").then().says("and more"),
    )
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        await stage.ask(session, "root: go")
        [made] = await stage.tk.children(session)
        model.add(again=Scripted().calls("task", **a_task("go on", task_id=made.id)).then().says("second"))
        model.rename(session, "again")
        await stage.ask(session, "again")
        assert [one.id for one in await stage.tk.children(session)] == [made.id]
        assert await texts(stage, made.id) == ["one", "one is done", "go on", "and more"]
        assert of_type(ToolCompleted, (await calls(stage, session))[1]).output.splitlines()[2] == "and more"


async def test_plan_does_nothing_through_a_task_of_build_that_it_may_not_do_itself(play: Play) -> None:
    model = BySession(
        root=Scripted().calls("task", **a_task("one")).then().says("first"),
        one=Scripted().says("one is done").then().says("and more").then().says("and more"),
    )
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        await stage.ask(session, "root: go")
        [made] = await stage.tk.children(session)
        assert evaluate(made.permission or (), "edit", "a.py") != "deny"
        again = Scripted()
        for _ in range(2):
            again = again.calls("task", **a_task("go on", task_id=made.id)).then()
        model.add(again=again.says("second"))
        model.rename(session, "again")
        await stage.ask(session, "again", agent="plan")
        [narrow] = await stage.tk.children(session)
        assert evaluate(narrow.permission or (), "edit", "a.py") == "deny"
        denied = [one for one in narrow.permission or () if (one.permission, one.action) == ("edit", "deny")]
        assert len(denied) == 1  # Once, however often it goes on.


async def test_a_task_of_a_task_goes_on_in_the_background_and_is_reported_to_who_asked(play: Play) -> None:
    agents = {"agent": {"helper": {**AGENTS["agent"]["helper"], "permission": {"task": "allow"}}}}
    model = BySession(
        root=Scripted().calls("task", **a_task("one")).then().says("first"),
        one=Scripted().calls("task", **a_task("two")).then().says("one is done"),
        two=Scripted().says("two is done").then().says("two is done again"),
    )
    config = {**agents, "subagent_depth": 3}
    async with play(model, tools=TOOLS_AND_TASK, config=config) as stage:
        session = await stage.session()
        await stage.ask(session, "root: go")
        [deep] = [one for one in await stage.tk.children(session, recursive=True) if one.parent_id != session]
        again = Scripted().calls("task", **a_task("go on", task_id=deep.id, background=True)).then()
        model.add(again=again.says("It runs.").then().says("It is done."))
        model.rename(session, "again")
        await stage.ask(session, "again")
        await stage.tk.wait(deep.id)
        await stage.tk.wait(session)
        reported = [text for text in await texts(stage, session) if text.startswith("<task")]
        assert [text.splitlines()[3] for text in reported] == ["two is done again"]
        assert (await stage.tk.store.journal.view(session)).children == ()
        assert (await texts(stage, session))[-1] == "It is done."


async def test_a_child_session_has_its_own_task_list(play: Play) -> None:
    todo = [{"content": "mine", "status": "pending", "priority": "low"}]
    agents = {"agent": {"helper": {**AGENTS["agent"]["helper"], "permission": {"todowrite": "allow"}}}}
    model = BySession(
        root=Scripted().calls("todowrite", todos=todo).then().calls("task", **a_task("one")).then().says("done"),
        one=Scripted().calls("todoread").then().calls("todowrite", todos=[]).then().says("one is done"),
    )
    async with play(model, tools=TOOLS_AND_TASK, config=agents) as stage:
        session = await stage.session()
        await stage.ask(session, "root: go")
        [made] = await stage.tk.children(session)
        read = of_type(ToolCompleted, (await calls(stage, made.id))[0])
        assert "mine" not in read.output
        assert [one.content for one in await stage.tk.todos(session)] == ["mine"]


async def test_a_child_session_uses_the_model_of_its_agent_or_that_of_the_caller(play: Play) -> None:
    agents = {"agent": {**AGENTS["agent"], "scout": {"mode": "subagent", "model": "acme/other"}}}
    model = BySession(
        root=Scripted().calls("task", **a_task("one")).calls("task", **a_task("two", agent="scout")).then().says("ok"),
        one=Scripted().says("one is done"),
        two=Scripted().says("two is done"),
    )
    async with play(model, tools=TOOLS_AND_TASK, config=agents) as stage:
        session = await stage.session()
        await stage.ask(session, "root: go")
        found = {one.agent: one.model for one in await stage.tk.children(session)}
    assert found == {
        "helper": SessionModel(id="large", provider_id="acme", variant="default"),
        "scout": SessionModel(id="other", provider_id="acme", variant="default"),
    }


async def test_a_child_session_may_not_do_what_its_parent_may_not(play: Play) -> None:
    rules = (Rule(permission="echo", pattern="*", action="deny"),)
    model = BySession(
        root=Scripted().calls("task", **a_task("one")).then().says("done"), one=Scripted().says("I cannot.")
    )
    async with play(model, **GIVEN) as stage:
        session = await stage.session(permission=rules)
        await stage.ask(session, "root: go")
        assert "echo" not in [tool.name for tool in model.requests[1].tools]
        [made] = await stage.tk.children(session)
        assert (made.permission or ())[0] == rules[0]


async def test_a_failure_of_the_child_session_is_the_failure_of_the_call(play: Play) -> None:
    model = BySession(
        root=Scripted().calls("task", **a_task("one")).then().says("I see."),
        one=Scripted().fails(401, message="no key"),
    )
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        await stage.ask(session, "root: go")
        [made] = await stage.tk.children(session)
        [state] = await calls(stage, session)
        lines = of_type(ToolError, state).error.splitlines()
        assert lines[:2] == [f'<task id="{made.id}" state="error">', "<task_error>"]
        assert "no key" in lines[2]
        assert (await texts(stage, session))[-1] == "I see."


async def test_what_the_user_rejects_in_a_child_session_stops_the_whole_work(play: Play) -> None:
    user = Asked(Reply(answer="reject"))
    model = BySession(
        root=Scripted().calls("task", **a_task("one", agent="scout")), one=Scripted().calls("asks", text="may I?")
    )
    async with play(model, tools=TOOLS_AND_TASK, config=AGENTS, ask=user.ask) as stage:
        session = await stage.session()
        outcome = await stage.ask(session, "root: go")
        [made] = await stage.tk.children(session)
        assert [asked.session_id for asked in user.requests] == [made.id]
        assert outcome.reason == REFUSED
        [state] = await calls(stage, session)
        assert (of_type(ToolError, state).metadata or {})["rejected"] is True


async def until_asked(stage: Stage, heard: Any) -> PermissionRequest:
    async for one in heard:
        if isinstance(one, Notification) and one.type == "permission.asked":
            [asked] = await stage.tk.permissions()
            return asked
    raise AssertionError("nothing was asked")


async def test_an_ask_of_a_child_session_is_answered_while_its_parent_waits(play: Play) -> None:
    model = BySession(
        root=Scripted().calls("task", **a_task("one", agent="scout")).then().says("done"),
        one=Scripted().calls("asks", text="may I?").then().says("one is done"),
    )
    async with play(model, tools=TOOLS_AND_TASK, config=AGENTS, ask=None) as stage:
        session = await stage.session()
        async with stage.tk.subscribe() as heard:
            await stage.say(session, "root: go")
            asked = await until_asked(stage, heard)
        [made] = await stage.tk.children(session)
        assert asked.session_id == made.id
        await stage.tk.reply(asked.id, "once")
        await stage.tk.wait(session)
        assert isinstance((await calls(stage, session))[0], ToolCompleted)


async def test_stopping_a_session_stops_the_sessions_that_work_for_it(play: Play) -> None:
    gate = Gate()
    agents = {"agent": {"helper": {**AGENTS["agent"]["helper"], "permission": {"task": "allow"}}}, "subagent_depth": 2}
    model = BySession(
        root=Scripted().calls("task", **a_task("one")),
        one=Scripted().calls("task", **a_task("two")),
        two=Scripted().says("I am ").waits(gate).says("never said"),
    )
    async with play(model, tools=TOOLS_AND_TASK, config=agents) as stage:
        session = await stage.session()
        await stage.say(session, "root: go")
        await gate.wait_reached()
        assert await stage.tk.stop(session)
        assert stage.tk.running == frozenset()
        for one in (session, *(child.id for child in await stage.tk.children(session, recursive=True))):
            [(message, parts)] = await stage.turns(one)
            assert isinstance(message.error, AbortedFailure)
            assert await stage.is_sound(one)
            for part in parts:
                if isinstance(part, ToolPart):
                    assert (of_type(ToolError, part.state).metadata or {})["interrupted"] is True


async def test_a_child_session_that_is_stopped_alone_interrupts_the_call_and_the_model_is_told(play: Play) -> None:
    gate = Gate()
    model = BySession(
        root=Scripted().calls("task", **a_task("one")).then().says("It was stopped."),
        one=Scripted().says("I am ").waits(gate).says("never said"),
    )
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        await stage.say(session, "root: go")
        await gate.wait_reached()
        [made] = await stage.tk.children(session)
        await stage.tk.stop(made.id)
        await stage.tk.wait(session)
        [state] = await calls(stage, session)
        assert (of_type(ToolError, state).metadata or {})["interrupted"] is True
        assert (await texts(stage, session))[-1] == "It was stopped."
        assert "was stopped before it was done" in result_text(model.requests[-1].messages[-1])


async def test_a_task_in_the_background_is_reported_as_a_prompt_when_it_is_done(play: Play) -> None:
    gate = Gate()
    model = BySession(
        root=Scripted()
        .calls("task", **a_task("one", background=True))
        .then()
        .says("It runs.")
        .then()
        .says("It is done."),
        one=Scripted().waits(gate).says("one is done"),
    )
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        await stage.ask(session, "root: go")
        await gate.wait_reached()
        [made] = await stage.tk.children(session)
        [state] = await calls(stage, session)
        assert of_type(ToolCompleted, state).output.splitlines()[0] == f'<task id="{made.id}" state="running">'
        assert of_type(ToolCompleted, state).metadata["background"] is True
        assert (await texts(stage, session))[-1] == "It runs."
        gate.open()
        await stage.tk.wait(made.id)
        await stage.tk.wait(session)
        said = (
            f'<task id="{made.id}" state="completed">\n'
            "<summary>Background task completed: Look around (@helper subagent)</summary>\n"
            "<task_result>\none is done\n</task_result>\n</task>"
        )
        assert (await texts(stage, session))[-2:] == [said, "It is done."]
        assert (await stage.tk.store.journal.view(session)).children == ()
        assert await stage.is_sound(session)


async def test_stopping_a_session_stops_its_background_tasks_and_nothing_is_reported(play: Play) -> None:
    gate = Gate()
    model = BySession(
        root=Scripted().calls("task", **a_task("one", background=True)).then().says("It runs."),
        one=Scripted().waits(gate).says("one is done"),
    )
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        await stage.ask(session, "root: go")
        await gate.wait_reached()
        assert await stage.tk.stop(session)
        view = await stage.tk.store.journal.view(session)
        assert (view.children, view.inbox) == ((), ())
        assert stage.tk.running == frozenset()
        assert await texts(stage, session) == ["root: go", "It runs."]


async def test_a_running_session_that_left_the_view_cache_is_stopped_with_its_background_tasks(play: Play) -> None:
    held, gate = Gate(), Gate()
    model = BySession(
        root=Scripted().calls("task", **a_task("one", background=True)).then().says("It ").waits(held),
        one=Scripted().waits(gate).says("one is done"),
    )
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        await stage.say(session, "root: go")
        await held.wait_reached()
        await gate.wait_reached()
        stage.tk.store.journal.cache.forget(session)
        assert await stage.tk.stop(session)
        view = await stage.tk.store.journal.view(session)
        assert (view.children, view.inbox) == ((), ())
        assert stage.tk.running == frozenset()


async def test_a_prompt_for_a_task_in_the_background_is_answered_there_and_both_are_reported_once(play: Play) -> None:
    gate = Gate()
    model = BySession(
        root=Scripted().calls("task", **a_task("one", background=True)).then().says("It runs."),
        one=Scripted().waits(gate).says("one is done").then().says("and more"),
    )
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        await stage.ask(session, "root: go")
        await gate.wait_reached()
        [made] = await stage.tk.children(session)
        again = Scripted().calls("task", **a_task("go on", task_id=made.id)).then().says("Later.").then().says("Both.")
        model.add(again=again)
        model.rename(session, "again")
        await stage.ask(session, "again")
        second = of_type(ToolCompleted, (await calls(stage, session))[1])
        assert second.output.splitlines()[0] == f'<task id="{made.id}" state="running">'
        gate.open()
        await stage.tk.wait(made.id)
        await stage.tk.wait(session)
        reported = [text for text in await texts(stage, session) if text.startswith("<task")]
        assert [text.splitlines()[3] for text in reported] == ["and more"]
        assert (await texts(stage, session))[-1] == "Both."
