"""Create a session."""

import os

from turnkeeper.core.edits import check_title
from turnkeeper.core.labels import check_label, wanted_label
from turnkeeper.core.limits import NESTING_MAX
from turnkeeper.core.storable import storable
from turnkeeper.core.titles import default_title
from turnkeeper.model.identifier import check
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.refusal import Conflict, Invalid, NotFound
from turnkeeper.model.session import ZERO_TOKENS, Session, SessionModel, SessionTime
from turnkeeper.model.value import JsonObject, encode
from turnkeeper.model.version import __version__
from turnkeeper.store import keys
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace


async def create(
    store: Store,
    place: ProjectPlace,
    *,
    id: str | None = None,
    parent_id: str | None = None,
    title: str | None = None,
    permission: Ruleset | None = None,
    agent: str | None = None,
    model: SessionModel | None = None,
    metadata: JsonObject | None = None,
    workspace_id: str | None = None,
    label: str | None = None,
) -> Session:
    """Create a session in a directory. With an ``id`` that exists: the stored session, unchanged.

    ``label``, or else text in ``metadata.label``, binds it to hosts with this label; a Child Session has that of its
    parent. Raises Invalid if the two labels differ, or if the directory does not exist, unless it has a label.
    """
    if id is not None and (existing := await _existing(store, id)) is not None:
        return existing
    wanted = wanted_label(label, metadata)
    if wanted is None:
        check_directory(place)  # That of a session with a label exists on the hosts with this label.
    if parent_id is not None:
        await _check_depth(store, parent_id)
        wanted = wanted if wanted is not None else (await store.queries.session(parent_id)).label
    now = store.mint.now()
    session = Session(
        id=id or store.mint.session_id(),
        slug=store.mint.slug(),
        project_id=place.id,
        workspace_id=workspace_id,
        label=check_label(wanted) if wanted is not None else None,
        directory=str(place.directory),
        path=place.path,
        parent_id=parent_id,
        title=check_title(title) if title is not None else default_title(now, child=parent_id is not None),
        agent=agent,
        model=model,
        version=__version__,
        metadata=metadata,
        permission=permission,
        cost=0,
        tokens=ZERO_TOKENS,
        time=SessionTime(created=now, updated=now),
    )
    session, _ = storable(session, Session, "the session")
    await remember_project(store, place)
    try:
        view = await store.journal.create(session)
    except Conflict:
        return await store.queries.session(session.id)
    return await store.queries.whole(view.session)


def check_directory(place: ProjectPlace) -> None:
    """Raise Invalid if the directory does not exist or may not be entered. If it is deleted later, the tools fail."""
    try:
        os.stat(os.path.join(place.directory, "."))
    except PermissionError as error:
        raise Invalid(
            f"{str(place.directory)!r} may not be entered by this user; change the permissions, or name another"
        ) from error
    except OSError as error:
        raise Invalid(f"{str(place.directory)!r} is not a directory; make it, or name another") from error


async def remember_project(store: Store, place: ProjectPlace) -> None:
    """Write the document of a project if it does not exist."""
    if place.id in store.projects:
        return
    key = keys.project(place.id)
    [known] = await store.engine.get([key])
    if known is None:
        document = project_document(place.id, str(place.main_worktree), store.mint.now(), has_vcs=place.vcs is not None)
        await store.engine.put({key: encode(document)})
    store.projects.add(place.id)


def project_document(project_id: str, worktree: str, now: int, *, has_vcs: bool = True) -> dict[str, object]:
    """The document of a project: its worktree. ``global`` is the project of directories outside of repositories."""
    is_global = project_id == "global"
    project: dict[str, object] = {
        "id": project_id,
        "worktree": "/" if is_global else worktree,
        "time": {"created": now, "updated": now},
        "sandboxes": [],
    }
    if has_vcs and not is_global:
        project["vcs"] = "git"
    return project


async def _existing(store: Store, session_id: str) -> Session | None:
    try:
        check("session", session_id)
    except ValueError as error:
        raise Invalid(str(error)) from error
    try:
        return await store.queries.session(session_id)
    except NotFound:
        return None


async def _check_depth(store: Store, parent_id: str) -> None:
    depth, ancestor = 0, parent_id
    while True:
        session = await store.queries.session(ancestor)
        depth += 1
        if depth >= NESTING_MAX:
            raise Invalid(f"Child Sessions nest at most {NESTING_MAX} deep; make this one a child of an ancestor")
        if session.parent_id is None:
            return
        ancestor = session.parent_id
