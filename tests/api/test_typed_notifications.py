"""A subscriber tells notifications apart by their classes."""

from typing import Any

from turnkeeper import (
    Delta,
    MessageUpdated,
    Notification,
    PartUpdated,
    Scripted,
    SessionAdded,
    SessionDeleted,
    SessionIdle,
    StatusUpdated,
    TextPart,
    TodosUpdated,
)
from turnkeeper.core.notify import deleted
from turnkeeper.model.notification import KINDS
from turnkeeper.model.todo import Todo
from turnkeeper.testing.builders import a_session


async def test_a_turn_is_heard_in_classes(opened: Any) -> None:
    said: list[str] = []
    async with opened(Scripted().says("West wind.")) as tk, tk.subscribe() as heard:
        session = await tk.create()
        await tk.set_todos(session.id, [Todo(content="reef", status="pending", priority="low")])
        await tk.ask("Wind?", session=session)
        heard.close()
        async for one in heard:
            match one:
                case SessionAdded(session=made):
                    assert made == session
                case TodosUpdated(todos=(todo,)):
                    said.append(todo.content)
                case Delta(delta=text):
                    said.append(text)
                case PartUpdated(part=TextPart(text=text)):
                    assert text in ("Wind?", "", "West wind.")
                case MessageUpdated(message=message):
                    assert message.session_id == session.id
                case StatusUpdated(status=status):
                    said.append(type(status).__name__)
                case SessionIdle():
                    said.append("idle")
                case Notification(type=kind):
                    assert kind in KINDS
    assert said == ["reef", "Busy", "West ", "wind.", "Idle", "idle"]


def test_a_property_of_another_shape_does_not_match() -> None:
    session = a_session()
    odd = deleted(session).but(properties={"sessionID": session.id, "info": {"new": "shape"}})
    assert not hasattr(odd, "session")
    assert isinstance(odd, SessionDeleted)
