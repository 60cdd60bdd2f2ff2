"""todowrite: the list is replaced as a whole."""

import json

from desk import Desk

from turnkeeper.model.todo import Todo


async def test_the_list_is_replaced_and_shown(desk: Desk) -> None:
    first = await desk.run("todowrite", todos=[{"content": "old"}])
    assert first.title == "1 todo"
    todos = [
        {"content": "a", "status": "completed", "priority": "high"},
        {"content": "b", "status": "in_progress", "priority": "low", "id": "2"},
        {"content": "c"},
    ]
    output = await desk.run("todowrite", todos=todos)
    assert desk.todos == (
        Todo(content="a", status="completed", priority="high"),
        Todo(content="b", status="in_progress", priority="low", id="2"),
        Todo(content="c", status="pending", priority="medium"),
    )
    shown = [*todos[:2], {"content": "c", "status": "pending", "priority": "medium"}]
    assert json.loads(output.output) == shown
    assert (output.title, output.metadata["todos"]) == ("2 todos", tuple(shown))
    assert desk.asked == [("todowrite", ["*"], ["*"])] * 2
