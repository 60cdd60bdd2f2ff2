"""A wrong argument is refused before anything is written, and the store stays whole."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from turnkeeper.app import Turnkeeper
from turnkeeper.core.limits import JSON_DEPTH_MAX
from turnkeeper.model.permission import Rule
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.session import Session, SessionModel
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
    "a model as one word": {"model": "claude"},
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
    "bytes for an agent": {"agent": b"x"},
    "no number for rules": {"permission": float("nan")},
    "no number for an agent": {"agent": float("nan")},
    "metadata with a key that is no text": {"metadata": {7: "seven"}},
    "metadata with a number that is none": {"metadata": {"deep": [{"n": float("nan")}]}},
    "metadata with a number that never ends": {"metadata": {"n": float("inf")}},
    "metadata with bytes": {"metadata": {"key": b"x"}},
    "metadata with a set": {"metadata": {"key": {1}}},
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
    "update with metadata with a number that is none": lambda tk, id: tk.update(
        id, lambda session: session.but(metadata={"n": float("nan")})
    ),
    "update with no directory": lambda tk, id: tk.update(id, lambda session: session.but(directory="")),
    "update with a project of nobody": lambda tk, id: tk.update(id, lambda session: session.but(project_id="nope")),
    "rename to a number": lambda tk, id: tk.rename(id, 3),
    "todos that are text": lambda tk, id: tk.set_todos(id, ["buy milk"]),
    "a todo with a number for its content": lambda tk, id: tk.set_todos(
        id,
        [Todo(content=3, status="pending", priority="low")],  # type: ignore[arg-type] # Wrong on purpose.
    ),
    "move to a number": lambda tk, id: tk.move(id, 3),
    "a prompt that is a number": lambda tk, id: tk.prompt(id, 3, resume=False),
    "a prompt with a part that is text": lambda tk, id: tk.prompt(
        id,
        Prompt(parts=("words",)),  # type: ignore[arg-type] # Wrong on purpose.
        resume=False,
    ),
    "a prompt with a number for its text": lambda tk, id: tk.prompt(
        id,
        Prompt(parts=(TextInput(text=3),)),  # type: ignore[arg-type] # Wrong on purpose.
        resume=False,
    ),
    "a prompt with a model as one word": lambda tk, id: tk.prompt(
        id,
        Prompt(parts=(TextInput(text="Hi"),), model="a/b"),  # type: ignore[arg-type] # Wrong on purpose.
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
    "a search for nothing": lambda tk, id: tk.search(None),
    "a search for half a character": lambda tk, id: tk.search("\ud800"),
    "a recall by a number": lambda tk, id: tk.recall(id, 5),
    "a recall that is text long": lambda tk, id: tk.recall(id, "r0123456789", limit="many"),
    "a recall of nothing": lambda tk, id: tk.recall_search(id, None),
    "a command that is none": lambda tk, id: tk.shell(id, None),
    "a list since a word": lambda tk, id: tk.list(since="yesterday"),
    "a list of True": lambda tk, id: tk.list(limit=True),
    "an archive that is a word": lambda tk, id: tk.list(archived="no"),
    "a todo with a number that is none": lambda tk, id: tk.set_todos(
        id,
        [Todo(content=float("nan"), status="pending", priority="low")],  # type: ignore[arg-type]
    ),
    "a recovery that is none": lambda tk, id: tk.recover("banana"),
    "a layout that is none": lambda tk, id: tk.export_all("/dev/null/out", layout="banana"),
    "an export to a number": lambda tk, id: tk.export_all(5),
    "an export to half a character": lambda tk, id: tk.export_all("/tmp/\ud800"),
    "an export to a path with a NUL": lambda tk, id: tk.export_all(Path("/tmp/a\0b")),
    "a blame of half a character": lambda tk, id: tk.blame("\ud800"),
    "a blame of a path with a NUL": lambda tk, id: tk.blame("a\0b"),
    "a list of a directory with half a character": lambda tk, id: tk.list(directory="/\ud800"),
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
    "plan_file": lambda tk, id: tk.plan_file(id),
    "changes_not_known": lambda tk, id: tk.changes_not_known(id),
    "wait_family": lambda tk, id: tk.wait_family(id),
    "set_todos": lambda tk, id: tk.set_todos(id, []),
    "diffs": lambda tk, id: tk.diffs(id),
    "remove": lambda tk, id: tk.remove(id),
    "prompt": lambda tk, id: tk.prompt(id, "Hi", resume=False),
    "run": lambda tk, id: tk.run(id),
    "wait": lambda tk, id: tk.wait(id),
    "stop": lambda tk, id: tk.stop(id),
    "recall": lambda tk, id: tk.recall(id, "r0123456789"),
    "iter_messages": lambda tk, id: anext(tk.iter_messages(id)),
    "tail": lambda tk, id: anext(tk.tail(id)),
    "export": lambda tk, id: anext(tk.export(id)),
    "export_html": lambda tk, id: anext(tk.export_html(id)),
    "redactions": lambda tk, id: tk.redactions(id),
    "share": lambda tk, id: tk.share(id),
    "unshare": lambda tk, id: tk.unshare(id),
    "withdraw": lambda tk, id: tk.withdraw(id, "msg_1"),
    "ledger": lambda tk, id: anext(tk.ledger(id)),
    "search": lambda tk, id: tk.search("words", session_id=id),
    "update": lambda tk, id: tk.update(id, lambda session: session),
    "restore": lambda tk, id: tk.restore(id),
    "move": lambda tk, id: tk.move(id, "."),
    "explain_context": lambda tk, id: tk.explain_context(id),
    "recall_search": lambda tk, id: tk.recall_search(id, "words"),
    "at": lambda tk, id: tk.at(id, 1),
    "changes": lambda tk, id: tk.changes(id),
    "compare": lambda tk, id: tk.compare(id, 1, 1),
    "revert": lambda tk, id: tk.revert(id, "msg_1"),
    "unrevert": lambda tk, id: tk.unrevert(id),
    "undo": lambda tk, id: tk.undo(id),
    "redo": lambda tk, id: tk.redo(id),
    "stage_revert": lambda tk, id: tk.stage_revert(id, "msg_1"),
    "commit_revert": lambda tk, id: tk.commit_revert(id),
    "shell": lambda tk, id: tk.shell(id, "true"),
    "command": lambda tk, id: tk.command(id, "init"),
    "compact": lambda tk, id: tk.compact(id),
    "is_abandoned": lambda tk, id: tk.is_abandoned(id),
    "wait_upkeep": lambda tk, id: tk.wait_upkeep(id),
    "permissions": lambda tk, id: tk.permissions(session_id=id),
    "questions": lambda tk, id: tk.questions(session_id=id),
    "reply": lambda tk, id: tk.reply("per_1", "once", session_id=id),
    "answer": lambda tk, id: tk.answer("que_1", None, session_id=id),
    "state": lambda tk, id: tk.state(id),
    "ask": lambda tk, id: tk.ask("Hi", session=id),
    "stream": lambda tk, id: anext(tk.stream("Hi", session=id)),
}

DEPRECATED = ("abort", "interrupt")
HEARS_OF_LATER_ONES = "subscribe"
"""It may name a session that is created later, with an id of the caller."""

NAN: dict[str, object] = {"metadata": {"n": float("nan")}}

OF_ALL = ("ledger", "search", "stop", "permissions", "questions", "reply", "answer", "ask", "stream")
"""Without a session these are about all of them, or about a new one."""


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
    wrong: list[Any] = ["", "a/b", "a\0b", "\ud800", 3, {}, [], *([None] if name not in OF_ALL else [])]
    for id in wrong:
        with anyio.fail_after(60), pytest.raises(Invalid):
            await NAMED[name](tk, id)


@pytest.mark.parametrize("message_id", ["", "a/b", "a\0b"])
async def test_a_message_that_cannot_be_is_refused(message_id: str, tk: Turnkeeper, session_id: str) -> None:
    for act in (tk.message, tk.remove_message, tk.withdraw, tk.revert, tk.stage_revert):
        with pytest.raises((Invalid, NotFound)):
            await act(session_id, message_id)


@pytest.mark.parametrize("name", NAMED)
async def test_a_session_that_is_not_there_is_not_found_by(name: str, tk: Turnkeeper) -> None:
    with anyio.fail_after(60), pytest.raises(NotFound, match="ses_nope"):
        await NAMED[name](tk, "ses_nope")


async def test_every_method_that_takes_a_session_is_in_the_table() -> None:
    methods = inspect.getmembers(Turnkeeper, inspect.isfunction)
    takers = {name for name, method in methods if {"session_id", "session"} & set(inspect.signature(method).parameters)}
    public = {name for name in takers if not name.startswith("_")}
    elsewhere = {*DEPRECATED, HEARS_OF_LATER_ONES}
    assert public - elsewhere == set(NAMED)


@pytest.mark.parametrize("name", DEPRECATED)
async def test_an_old_name_warns_and_works(name: str, tk: Turnkeeper, session_id: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{name} is deprecated; use stop"):
        assert await getattr(tk, name)(session_id) is False
    with pytest.warns(DeprecationWarning, match=name), pytest.raises(NotFound, match="ses_nope"):
        await getattr(tk, name)("ses_nope")


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_page_of_nothing_is_refused(limit: int, tk: Turnkeeper, session_id: str) -> None:
    note = Prompt(parts=(TextInput(text="The secret answer"),), no_reply=True)
    await tk.prompt(session_id, note)
    [hit] = await tk.recall_search(session_id, "secret")
    acts: list[Callable[[], Awaitable[object]]] = [
        lambda: tk.recall(session_id, hit.handle, limit=limit),
        lambda: tk.recall_search(session_id, "secret", limit=limit),
        lambda: tk.search("secret", limit=limit),
        lambda: tk.messages(session_id, limit=limit),
        lambda: tk.list(limit=limit),
    ]
    for act in acts:
        with pytest.raises(Invalid, match="at least one"):
            await act()


async def test_a_tail_begins_at_an_event_or_at_the_first(tk: Turnkeeper, session_id: str) -> None:
    with pytest.raises(Invalid, match="after is the number of an event, or 0"):
        await anext(tk.tail(session_id, after=-5))


async def test_a_subscriber_needs_room(tk: Turnkeeper) -> None:
    for size in (0, -1):
        with pytest.raises(Invalid, match="room for at least one"):
            tk.subscribe(size=size)


async def test_only_a_notification_is_published(tk: Turnkeeper, session_id: str) -> None:
    untyped: Any = tk
    async with tk.subscribe(session_id=session_id) as heard:
        with pytest.raises(Invalid, match="notification is a Notification, not 5"):
            untyped.publish(5)
        await tk.touch(session_id)
        assert (await anext(heard)).session_id == session_id


async def test_an_editor_that_waits_is_refused_with_what_it_must_be(tk: Turnkeeper, session_id: str) -> None:
    async def editor(session: Session) -> Session:
        raise AssertionError("nothing waits for it")

    untyped: Any = tk
    with pytest.raises(Invalid, match="an editor is a plain function that returns a Session"):
        await untyped.update(session_id, editor)


async def test_a_part_with_wrong_fields_is_not_recorded(tk: Turnkeeper, session_id: str) -> None:
    note = Prompt(parts=(TextInput(text="A note"),), no_reply=True)
    receipt = await tk.prompt(session_id, note)
    part = (await tk.message(session_id, receipt.message_id)).parts[0]
    for wrong in ({"text": 3}, {"metadata": [1]}, {"metadata": an_object(200)}, {"time": "now"}, NAN):
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
        metadata={"tags": ("a", "b")},
    )
    assert made.model == SessionModel(id="large", provider_id="acme")
    assert made.permission == (Rule(permission="bash", pattern="*", action="ask"),)
    assert made.metadata == {"tags": ["a", "b"]}
    assert await tk.get(made.id) == made
    await tk.remove(made.id)


async def test_metadata_may_be_as_deep_as_the_bound(tk: Turnkeeper, session_id: str) -> None:
    deep = an_object(JSON_DEPTH_MAX - 1)
    await tk.update(session_id, lambda session: session.but(metadata=deep))
    assert (await tk.get(session_id)).metadata == deep
