"""Child Sessions: the task tool hands work to another agent, which does it in a session of its own."""

from collections.abc import AsyncGenerator, Mapping, Sequence

import anyio
import pytest
from narrow import of_type

from turnkeeper.core.next_action import REFUSED
from turnkeeper.model import event as e
from turnkeeper.model.failure import AbortedFailure
from turnkeeper.model.message import UserMessage
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolState
from turnkeeper.model.permission import PermissionRequest, Reply, Rule
from turnkeeper.model.prompt import AgentInput, Prompt, TextInput
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.session import SessionModel
from turnkeeper.model.stream import StreamEvent
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import TOOLS, Play, Stage
from turnkeeper.tools import load

WITH_TASK = (*TOOLS, *load(["task", "todowrite", "todoread"]))
AGENTS = {
    "agent": {
        "helper": {"description": "Helps with anything.", "mode": "subagent"},
        "scout": {"description": "Looks around.", "mode": "subagent", "permission": {"asks": "ask"}},
    }
}


class ByAgent:
    """A model with one script for each agent: the children of a turn answer in no fixed order."""

    def __init__(self, **scripts: Scripted) -> None:
        self._scripts = scripts
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        self.requests.append(request)
        name = "root" if request.parent_session_id is None else "child"
        async for batch in self._scripts[name].stream(request):
            yield batch


def a_task(prompt: str = "look", agent: str = "helper", **more: object) -> dict[str, object]:
    return {"description": "Look around", "prompt": prompt, "subagent_type": agent, **more}


async def calls(stage: Stage, session: str) -> list[ToolState]:
    return [part.state for _, parts in await stage.turns(session) for part in parts if isinstance(part, ToolPart)]


async def texts(stage: Stage, session: str) -> list[str]:
    found = await stage.messages(session)
    return [part.text for message in found for part in message.parts if isinstance(part, TextPart)]


async def test_a_task_is_done_in_a_session_of_its_own_and_comes_back_as_one_result(play: Play) -> None:
    root = Scripted().calls("task", **a_task("find it")).then().says("It is there.")
    child = Scripted().calls("echo", text="hm").then().says("Here it is.")
    async with play(ByAgent(root=root, child=child), tools=WITH_TASK, config=AGENTS) as stage:
        session = await stage.session()
        await stage.ask(session, "where is it?")
        [made] = await stage.tk.children(session)
        assert (made.title, made.agent, made.parent_id) == ("Look around (@helper subagent)", "helper", session)
        assert await texts(stage, made.id) == ["find it", "Here it is."]
        assert await texts(stage, session) == ["where is it?", "It is there."]
        [state] = await calls(stage, session)
        assert isinstance(state, ToolCompleted)
        assert state.title == "Look around"
        assert state.output == f'<task id="{made.id}" state="completed">\n<task_result>\nHere it is.\n</task_result>\n</task>'
        assert state.metadata == {
            "parentSessionId": session,
            "sessionId": made.id,
            "model": {"providerID": "acme", "modelID": "large"},
            "truncated": False,
        }
        assert await stage.is_sound(session)
        assert await stage.is_sound(made.id)
