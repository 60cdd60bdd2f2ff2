"""A wrong argument is refused before anything is written, and the store stays whole."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from turnkeeper.app import Turnkeeper
from turnkeeper.core.limits import JSON_DEPTH_MAX
from turnkeeper.model.permission import Rule
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.session import SessionModel
from turnkeeper.model.todo import Todo
from turnkeeper.testing.builders import a_text, a_user

# ``Any`` throughout: the tests pass what the type checker would refuse, as a program without one does.
Act = Callable[[Any, str], Awaitable[object]]


def nested(depth: int) -> object:
    """Lists in lists, so many deep."""
    inner: object = "the innermost"
    for _ in range(depth):
        inner = [inner]
    return inner


def an_object(depth: int) -> dict[str, object]:
    return {"a": nested(depth - 1)}


CREATED: dict[str, dict[str, object]] = {
    "a model as one word": {"model": "anthropic/claude"},
    "a model as a dictionary without its provider": {"model": {"id": "large"}},
    "a number for an agent": {"agent": 3},
    "a list for metadata": {"metadata": [1]},
    "metadata that no JSON can hold": {"metadata": {"key": object()}},
    "metadata with half a character": {"metadata": {"key": "\ud800"}},
    "metadata that is too deep": {"metadata": an_object(JSON_DEPTH_MAX + 1)},
    "metadata that is endlessly deep": {"metadata": an_object(5000)},
    "a number for a title": {"title": 3},
    "rules as text": {"permission": "allow"},
    "a rule with an unknown action": {"permission": ({"permission": "bash", "pattern": "*", "action": "maybe"},)},
    "an empty id": {"id": ""},
    "a number for an id": {"id": 3},
    "an empty parent": {"parent_id": ""},
    "a number for a parent": {"parent_id": 3},
    "a number for a directory": {"directory": 3},
    "a directory with a NUL": {"directory": "/tmp/\0"},
    "a directory of 5,000 characters": {"directory": "/" + "x" * 5000},
}

ACTS: dict[str, Act] = {
    "update with a model as one word": lambda tk, id: tk.update(id, lambda session: session.but(model="a/b")),
    "update with a number for a title": lambda tk, id: tk.update(id, lambda session: session.but(title=3)),
    "update with a number for an agent": lambda tk, id: tk.update(id, lambda session: session.but(agent=3)),
    "update with text for a time": lambda tk, id: tk.update(
        id, lambda session: session.but(time=session.time.but(archived="now"))
    ),
    "update with metadata that is too deep": lambda tk, id: tk.update(
        id, lambda session: session.but(metadata=an_object(JSON_DEPTH_MAX + 1))
    ),
    "update with something that is no session": lambda tk, id: tk.update(id, lambda session: None),
    "rename to a number": lambda tk, id: tk.rename(id, 3),
    "todos that are text": lambda tk, id: tk.set_todos(id, ["buy milk"]),
    "a todo with a number for its content": lambda tk, id: tk.set_todos(
        id,
        [Todo(content=3, status="pending", priority="low")],  # type: ignore[arg-type]
    ),
    "move to a number": lambda tk, id: tk.move(id, 3),
    "a prompt that is a number": lambda tk, id: tk.prompt(id, 3, resume=False),
    "a prompt with a part that is text": lambda tk, id: tk.prompt(
        id,
        Prompt(parts=("words",)),  # type: ignore[arg-type]
        resume=False,
    ),
    "a prompt with a number for its text": lambda tk, id: tk.prompt(
        id,
        Prompt(parts=(TextInput(text=3),)),  # type: ignore[arg-type]
        resume=False,
    ),
    "a prompt with a model as one word": lambda tk, id: tk.prompt(
        id,
        Prompt(parts=(TextInput(text="Hi"),), model="a/b"),  # type: ignore[arg-type]
        resume=False,
    ),
    "a prompt with metadata that is too deep": lambda tk, id: tk.prompt(
        id, Prompt(parts=(TextInput(text="Hi", metadata=an_object(JSON_DEPTH_MAX)),)), resume=False
    ),
    "a page that is text long": lambda tk, id: tk.messages(id, limit="many"),
    "a cursor that is a number": lambda tk, id: tk.messages(id, before=3),
    "a list of an empty parent": lambda tk, id: tk.list(parent_id=""),
    "a list of an empty project": lambda tk, id: tk.list(project_id=""),
    "a search in an empty session": lambda tk, id: tk.search("words", session_id=""),
}

NAMED: dict[str, Act] = {
    "get": lambda tk, id: tk.get(id),
    "status": lambda tk, id: tk.status(id),
    "children": lambda tk, id: tk.children(id),
    "rename": lambda tk, id: tk.rename(id, "New"),
    "touch": lambda tk, id: tk.touch(id),
    "archive": lambda tk, id: tk.archive(id),
    "fork": lambda tk, id: tk.fork(id),
    "messages": lambda tk, id: tk.messages(id),
    "message": lambda tk, id: tk.message(id, "msg_1"),
    "remove_message": lambda tk, id: tk.remove_message(id, "msg_1"),
    "remove_part": lambda tk, id: tk.remove_part(id, "msg_1", "prt_1"),
    "todos": lambda tk, id: tk.todos(id),
    "set_todos": lambda tk, id: tk.set_todos(id, []),
    "diffs": lambda tk, id: tk.diffs(id),
    "remove": lambda tk, id: tk.remove(id),
    "prompt": lambda tk, id: tk.prompt(id, "Hi", resume=False),
    "run": lambda tk, id: tk.run(id),
}


@pytest.fixture
async def session_id(tk: Turnkeeper) -> str:
    return (await tk.create(title="Sound")).id


@pytest.fixture(autouse=True)
async def the_store_is_whole_in_the_end(tk: Turnkeeper, session_id: str) -> AsyncIterator[None]:
    yield
    assert [one.id for one in (await tk.list()).items] == [session_id]
    assert (await tk.get(session_id)).title == "Sound"
    assert (await tk.doctor()).problems == ()


@pytest.mark.parametrize("name", CREATED)
async def test_a_session_is_not_created_from(name: str, tk: Turnkeeper) -> None:
    made: Any = tk
    with pytest.raises((Invalid, NotFound)):
        await made.create(**CREATED[name])


@pytest.mark.parametrize("name", ACTS)
async def test_a_caller_is_refused(name: str, tk: Turnkeeper, session_id: str) -> None:
    with pytest.raises(Invalid):
        await ACTS[name](tk, session_id)


@pytest.mark.parametrize("name", NAMED)
async def test_what_cannot_be_an_id_is_refused_by(name: str, tk: Turnkeeper) -> None:
    wrong: list[Any] = ["", "a/b", "a\0b", "\ud800", 3, None]
    for id in wrong:
        with pytest.raises(Invalid):
            await NAMED[name](tk, id)


async def test_a_part_with_wrong_fields_is_not_recorded(tk: Turnkeeper, session_id: str) -> None:
    note = Prompt(parts=(TextInput(text="A note"),), no_reply=True)
    receipt = await tk.prompt(session_id, note)
    part = (await tk.message(session_id, receipt.message_id)).parts[0]
    for wrong in ({"text": 3}, {"metadata": [1]}, {"metadata": an_object(200)}, {"time": "now"}):
        with pytest.raises(Invalid):
            await tk.update_part(part.but(**wrong))
    with pytest.raises(NotFound):
        await tk.update_part(a_text(a_user(session_id, "msg_other"), "prt_other", "Hi"))


async def test_values_that_mean_the_same_in_json_are_kept_as_json_says(tk: Turnkeeper, session_id: str) -> None:
    untyped: Any = tk
    made = await untyped.create(
        title="Another",
        model={"id": "large", "providerID": "acme"},
        permission=[{"permission": "bash", "pattern": "*", "action": "ask"}],
        metadata={"tags": ("a", "b"), 7: "seven"},
    )
    assert made.model == SessionModel(id="large", provider_id="acme")
    assert made.permission == (Rule(permission="bash", pattern="*", action="ask"),)
    assert made.metadata == {"tags": ["a", "b"], "7": "seven"}
    assert await tk.get(made.id) == made
    await tk.remove(made.id)


async def test_metadata_may_be_as_deep_as_the_bound(tk: Turnkeeper, session_id: str) -> None:
    deep = an_object(JSON_DEPTH_MAX - 1)
    await tk.update(session_id, lambda session: session.but(metadata=deep))
    assert (await tk.get(session_id)).metadata == deep
