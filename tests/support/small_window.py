"""A model with a small window, a tool that fills it, and a session that lives with both."""

from typing import Any

from turnkeeper.model.request import AssistantTurn, ModelRequest, Text, ToolTurn, UserTurn
from turnkeeper.testing.harness import Stage, a_tool
from turnkeeper.testing.windowed import WindowedTurn
from turnkeeper.tools.tool import ToolContext

WINDOW = 8_000
SMALL: dict[str, Any] = {
    "model": "acme/small",
    "provider": {
        "acme": {
            "protocol": "openai-chat",
            "options": {"baseURL": "http://localhost:1/v1"},
            "models": {"small": {"limit": {"context": WINDOW, "output": 1_000}}},
        }
    },
}


async def fetch(words: str, context: ToolContext) -> str:
    return f"{words}: " + "x" * 5_000


FETCH = (a_tool("fetch", fetch),)


def works(asked: str, results: ToolTurn | None) -> WindowedTurn:
    """Fetches once for each prompt, then answers it."""
    if results is None and "fetch" in asked:
        return WindowedTurn(text="I look.", tool="fetch", calls=({"text": asked},))
    return WindowedTurn(text=f"Answer to: {asked[-40:]}")


def config(**compaction: object) -> dict[str, object]:
    return {**SMALL, "compaction": compaction}


async def lives(stage: Stage, count: int) -> str:
    session = await stage.session()
    for number in range(count):
        assert (await stage.ask(session, f"fetch {number}")).reason == "answered"
    return session


def texts(request: ModelRequest) -> list[str]:
    return [
        part.text
        for one in request.messages
        if isinstance(one, UserTurn | AssistantTurn)
        for part in one.content
        if isinstance(part, Text)
    ]
