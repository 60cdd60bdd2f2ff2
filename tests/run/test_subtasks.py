"""Subtasks: the loop itself hands them to Child Sessions, before the model is asked."""

from typing import Any

import pytest
from children import AGENTS, TOOLS_AND_TASK, BySession, calls, texts
from narrow import of_type

from turnkeeper.core.subtasks import GO_ON
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.parts import SubtaskPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.prompt import Prompt, SubtaskInput
from turnkeeper.model.refusal import Invalid
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import Play, Stage

GIVEN: dict[str, Any] = {"tools": TOOLS_AND_TASK, "config": {**AGENTS, "permission": {"task": "deny"}}}


def a_subtask(prompt: str, **more: Any) -> SubtaskInput:
    return SubtaskInput(prompt=prompt, description="Look around", agent="helper", **more)


async def give(stage: Stage, session: str, *parts: SubtaskInput) -> None:
    await stage.tk.prompt(session, Prompt(parts=parts))
    await stage.tk.wait(session)


async def test_a_subtask_is_run_without_a_model_that_calls_for_it(play: Play) -> None:
    model = BySession(one=Scripted().says("one is done"))
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        model.rename(session, "root")
        model.add(root=Scripted().says("It was done."))
        await give(stage, session, a_subtask("one"))
        [made] = await stage.tk.children(session)
        assert await texts(stage, made.id) == ["one", "one is done"]
        [asked, handed_on, answer] = await stage.messages(session)
        [subtask] = asked.parts
        [call] = handed_on.parts
        assert of_type(ToolPart, call).call_id == of_type(SubtaskPart, subtask).id
        state = of_type(ToolCompleted, of_type(ToolPart, call).state)
        assert state.input == {"prompt": "one", "description": "Look around", "subagent_type": "helper"}
        info = of_type(AssistantMessage, handed_on.info)
        assert (info.agent, info.mode, info.finish, info.parent_id) == ("helper", "helper", "tool-calls", asked.info.id)
        assert of_type(AssistantMessage, answer.info).agent == "build"
        assert (await texts(stage, session)) == ["It was done."]
        assert await stage.is_sound(session)


async def test_after_the_subtask_of_a_command_the_model_is_asked_to_go_on(play: Play) -> None:
    model = BySession(one=Scripted().says("one is done"))
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        model.rename(session, "root")
        model.add(root=Scripted().says("It was done."))
        await give(stage, session, a_subtask("one", command="review"))
        roles = [type(message.info) for message in await stage.messages(session)]
        assert roles == [UserMessage, AssistantMessage, UserMessage, AssistantMessage]
        assert await texts(stage, session) == [GO_ON, "It was done."]


async def test_all_subtasks_of_a_prompt_are_run_in_their_order(play: Play) -> None:
    model = BySession(one=Scripted().says("one is done"), two=Scripted().says("two is done"))
    async with play(model, **GIVEN) as stage:
        session = await stage.session()
        model.rename(session, "root")
        model.add(root=Scripted().says("Both were done.").then().says("Hello."))
        await give(stage, session, a_subtask("one"), a_subtask("two"))
        outputs = [of_type(ToolCompleted, state).output.splitlines()[2] for state in await calls(stage, session)]
        assert outputs == ["one is done", "two is done"]
        await stage.ask(session, "root: and now?")
        assert len(await calls(stage, session)) == 2, "a subtask was run again"
        assert (await texts(stage, session))[-1] == "Hello."


async def test_a_subtask_for_an_agent_that_is_not_there_is_refused(play: Play) -> None:
    async with play(BySession(), **GIVEN) as stage:
        session = await stage.session()
        with pytest.raises(Invalid, match="there is no agent 'nobody'"):
            await give(stage, session, a_subtask("one").but(agent="nobody"))
        assert await stage.messages(session) == []
