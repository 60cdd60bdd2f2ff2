"""Sessions to measure on: messages with parts of the size that real ones have."""

from turnkeeper.app import Turnkeeper
from turnkeeper.mint import Mint
from turnkeeper.model.event import Event, MessageRecorded
from turnkeeper.model.message import (
    AssistantMessage,
    AssistantTime,
    Message,
    MessageTime,
    ModelChoice,
    TurnPath,
    UserMessage,
)
from turnkeeper.model.parts import Part, TextPart, ToolPart
from turnkeeper.model.parts.tool import SettledTime, ToolCompleted
from turnkeeper.model.session import ZERO_TOKENS, Session

MODEL = ModelChoice(provider_id="acme", model_id="large")
"""A model that the harness knows: a session goes on with the model of its newest prompt."""
TEXT = "The quick brown fox jumps over the lazy dog and then sits down to think. " * 3


def a_message(mint: Mint, session_id: str, *, parts: int = 3, text: str = TEXT) -> MessageRecorded:
    """One message with some text parts."""
    message = UserMessage(
        id=mint.message_id(), session_id=session_id, time=MessageTime(created=mint.now()), agent="build", model=MODEL
    )
    own: list[Part] = [
        TextPart(id=mint.part_id(), session_id=session_id, message_id=message.id, text=text) for _ in range(parts)
    ]
    return MessageRecorded(message=message, parts=tuple(own))


def an_answer(mint: Mint, asked: Message) -> MessageRecorded:
    """What a model answers: it looked at a file, and says something."""
    now, session_id = mint.now(), asked.session_id
    message = AssistantMessage(
        id=mint.message_id(),
        session_id=session_id,
        time=AssistantTime(created=now, completed=now),
        parent_id=asked.id,
        model_id=MODEL.model_id,
        provider_id=MODEL.provider_id,
        mode="build",
        agent="build",
        path=TurnPath(cwd=".", root="."),
        cost=0,
        tokens=ZERO_TOKENS,
        finish="stop",
    )
    state = ToolCompleted(
        input={"path": "a.py"}, output=TEXT, title="a.py", metadata={}, time=SettledTime(start=now, end=now)
    )
    own: list[Part] = [
        ToolPart(
            id=mint.part_id(),
            session_id=session_id,
            message_id=message.id,
            call_id=mint.part_id(),
            tool="read",
            state=state,
        ),
        TextPart(id=mint.part_id(), session_id=session_id, message_id=message.id, text=TEXT),
    ]
    return MessageRecorded(message=message, parts=tuple(own))


async def a_session(tk: Turnkeeper, *, messages: int, parts: int = 3) -> Session:
    """A session with a history."""
    session = await tk.create(title=f"{messages} messages")
    for start in range(0, messages, 500):
        batch: list[Event] = [
            a_message(tk.store.mint, session.id, parts=parts) for _ in range(min(500, messages - start))
        ]
        await tk.store.journal.append(session.id, *batch)
    return session
