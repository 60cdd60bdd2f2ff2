"""A model for sessions with children: each session plays its own script, found by the first word it is told."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolState
from turnkeeper.model.request import ModelRequest, Text, UserTurn
from turnkeeper.model.stream import StreamEvent
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import TOOLS, Stage
from turnkeeper.tools import load

TOOLS_AND_TASK = (*TOOLS, *load(["task", "todowrite", "todoread"]))

AGENTS: dict[str, Any] = {
    "agent": {
        "helper": {"description": "Helps with anything.", "mode": "subagent"},
        "scout": {"description": "Looks around.", "mode": "subagent", "permission": {"asks": "ask"}},
    }
}


class BySession:
    """A model with a script for each session. A prompt begins with the name of its script."""

    def __init__(self, **scripts: Scripted) -> None:
        self._scripts = scripts
        self._names: dict[str, str] = {}
        self.requests: list[ModelRequest] = []

    def add(self, **scripts: Scripted) -> None:
        """Add scripts for sessions to come."""
        self._scripts.update(scripts)

    def rename(self, session_id: str, name: str) -> None:
        """Have a session play another script from now on."""
        self._names[session_id] = name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        self.requests.append(request)
        name = self._names.setdefault(request.session_id, _first_word(request))
        async with aclosing(self._scripts[name].stream(request)) as answer:
            async for batch in answer:
                yield batch


def _first_word(request: ModelRequest) -> str:
    said = next(one for one in request.messages if isinstance(one, UserTurn))
    words = next(part.text for part in said.content if isinstance(part, Text))
    return words.split()[0].rstrip(":")


def a_task(prompt: str = "look", agent: str = "helper", **more: object) -> dict[str, Any]:
    """The arguments of the task tool."""
    return {"description": "Look around", "prompt": prompt, "subagent_type": agent, **more}


async def calls(stage: Stage, session_id: str) -> list[ToolState]:
    """The states of all calls of a session, in order."""
    return [part.state for _, parts in await stage.turns(session_id) for part in parts if isinstance(part, ToolPart)]


async def texts(stage: Stage, session_id: str) -> list[str]:
    """All texts of a session, in order."""
    found = await stage.messages(session_id)
    return [part.text for message in found for part in message.parts if isinstance(part, TextPart)]
