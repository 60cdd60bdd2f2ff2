"""Change the title, rules, metadata, directory or archive time of a session, each in an atomic read-modify-write."""

from collections.abc import Callable, Coroutine
from typing import Final

from turnkeeper.core.edits import check_title, edits
from turnkeeper.core.labels import check_label, check_metadata, moved_metadata
from turnkeeper.core.limits import ENTRY_DEPTH_MAX
from turnkeeper.core.storable import storable
from turnkeeper.model import event as e
from turnkeeper.model.event import Event
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Session
from turnkeeper.model.todo import Todo
from turnkeeper.sessions.create import check_directory
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace

PLACE: Final = ("project_id", "directory", "path", "label")
"""The fields that only ``move`` changes."""


async def update(store: Store, session_id: str, editor: Callable[[Session], Session]) -> Session:
    """Apply a pure function to the session, atomically, and set the time of its last activity.

    Raises Invalid if the function changes a read-only field, or the directory, which ``move`` changes.
    """

    def staying(session: Session) -> Session:
        edited: object = editor(session)
        if not isinstance(edited, Session):
            if isinstance(edited, Coroutine):
                edited.close()
            raise Invalid(f"an editor is a plain function that returns a Session, not {edited!r:.80}")
        for name in PLACE:
            if getattr(edited, name) != getattr(session, name):
                raise Invalid(f"a session's {name} is not edited; `move` lets it work in another directory")
        return edited

    changed = await store.journal.change(session_id, lambda view: [*_edits(view.session, staying), e.SessionTouched()])
    return await store.queries.whole(changed.view.session)


async def patch(store: Store, session_id: str, editor: Callable[[Session], Session]) -> Session:
    """Apply a pure function to the session, atomically. Nothing is recorded if it changes nothing."""
    changed = await store.journal.change(session_id, lambda view: _edits(view.session, editor))
    return await store.queries.whole(changed.view.session)


def _edits(session: Session, editor: Callable[[Session], Session]) -> list[Event]:
    edited, _ = storable(editor(session), Session, "the edited session", ENTRY_DEPTH_MAX)
    if edited.metadata is not None and edited.metadata != session.metadata:
        storable(edited.metadata, dict[str, object], "metadata")
        check_metadata(session.id, edited.metadata, edited.label)
    return edits(session, edited)


async def rename(store: Store, session_id: str, title: str) -> Session:
    """Give a session a title."""
    return await patch(store, session_id, lambda session: session.but(title=check_title(title)))


async def touch(store: Store, session_id: str) -> Session:
    """Set the time of the last activity to now."""
    view = await store.journal.append(session_id, e.SessionTouched())
    return await store.queries.whole(view.session)


async def archive(store: Store, session_id: str) -> Session:
    """Leave a session out of the list. Archiving it again keeps the first time."""
    now = store.mint.now()

    def editor(session: Session) -> Session:
        return session if session.time.archived is not None else session.but(time=session.time.but(archived=now))

    return await patch(store, session_id, editor)


async def restore(store: Store, session_id: str) -> Session:
    """Show an archived session in the list again."""
    return await patch(store, session_id, lambda session: session.but(time=session.time.but(archived=None)))


async def move(
    store: Store, session_id: str, place: ProjectPlace | None = None, *, label: str | None = None
) -> Session:
    """Change the directory of a session, or its label; an empty text removes the label.

    Raises Invalid if the directory does not exist, unless a label is given: it exists on the hosts with the label.
    """
    there: dict[str, str | None] = {}
    if place is not None:
        if not label:
            check_directory(place)
        there |= {"project_id": place.id, "directory": str(place.directory), "path": place.path}
    if label is None:
        return await patch(store, session_id, lambda session: session.but(**there))
    wanted = check_label(label) if label else None

    def editor(session: Session) -> Session:
        return session.but(**there, label=wanted, metadata=moved_metadata(session.metadata, wanted))

    return await patch(store, session_id, editor)


async def set_todos(store: Store, session_id: str, todos: tuple[Todo, ...]) -> tuple[Todo, ...]:
    """Replace the task list."""
    todos, _ = storable(todos, tuple[Todo, ...], "the todos")
    changed = await store.journal.change(
        session_id, lambda view: [e.TodosSet(todos=todos)] if view.todos != todos else []
    )
    return tuple([await store.queries.whole(todo) for todo in changed.view.todos])
