"""Fork a session: create a session with a copy of the history, in one transaction."""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from typing import Final

from turnkeeper.core.fork import Copier
from turnkeeper.core.history_trees import in_force
from turnkeeper.core.titles import base_of_fork, fork_title, number_of_fork
from turnkeeper.core.view import SessionView
from turnkeeper.mint import Mint
from turnkeeper.model.event import InstructionDiscovered, MessageRecorded, PartsQuarantined, TodosSet
from turnkeeper.model.message import UNKNOWN_MODEL, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import NO_VARIANT, ZERO_TOKENS, Origin, Revert, Session, SessionModel, SessionTime
from turnkeeper.model.version import __version__
from turnkeeper.sessions.create import check_directory, remember_project
from turnkeeper.sessions.past import past
from turnkeeper.store import keys
from turnkeeper.store.queries import Queries
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace

IDS_AT_ONCE: Final = 256


async def fork(
    store: Store,
    session_id: str,
    *,
    message_id: str | None = None,
    at: int | None = None,
    place: ProjectPlace | None = None,
) -> Session:
    """Copy a history, or the messages before ``message_id``, into a new session. Raises NotFound for either id.

    Without ``message_id``, what a pending revert sets aside is not copied: its files are undone. With ``at``, the
    history is copied as it was after that event. The copy has no cost: the ledger of the source has it. The copy keeps
    the agent, the model and the permission rules of the history, the discovered instruction files, and the quarantine
    of rejected parts; a copy of the whole history keeps the todos, too.
    """
    then = await past(store, session_id, at) if at is not None else None
    view = then.view if then is not None else await store.journal.view(session_id)
    queries = then.queries if then is not None else store.queries
    if place is not None:
        check_directory(place)
    source = view.session
    end = Revert(message_id=message_id) if message_id is not None else source.revert
    cut: MessageWithParts | None = None
    if end is not None:
        # The message of an imported session's revert may be missing.
        with suppress(NotFound) if message_id is None else nullcontext():
            cut = await queries.message(session_id, end.message_id)
    new_id = store.mint.session_id()
    mint = store.mint
    ids = _ids(mint, "msg").__next__, _ids(mint, "prt").__next__
    copier = Copier(new_id, *ids, frozenset(view.quarantined), now=source.time.updated)
    met = await _met(store, view, cut)
    copied = await _copies(queries, copier, session_id, end, met)
    moved = place is not None and str(place.directory) != source.directory
    found = [event for event in met if isinstance(event, InstructionDiscovered)] if not moved else []
    agent, model = _speaker(source, copied, is_whole=cut is None)
    now = store.mint.now()
    session = Session(
        id=new_id,
        slug=store.mint.slug(),
        project_id=place.id if place else source.project_id,
        workspace_id=source.workspace_id,
        label=source.label,
        directory=str(place.directory) if place else source.directory,
        path=place.path if place else source.path,
        origin=Origin(session_id=session_id, message_id=message_id, seq=at),
        title=await _title(store, source),
        version=__version__,
        agent=agent,
        model=model,
        metadata=source.metadata,
        permission=source.permission,
        cost=0,
        tokens=ZERO_TOKENS,
        time=SessionTime(created=now, updated=now),
    )
    if place is not None:
        await remember_project(store, place)
    todos = [TodosSet(todos=view.todos)] if view.todos and cut is None else []
    return (await store.journal.create(session, *copied, *found, *todos, source=session_id)).session


def _ids(mint: Mint, prefix: str) -> Iterator[str]:
    """An endless iterator of new ids."""
    while True:
        yield from mint.several(prefix, IDS_AT_ONCE)


async def _met(
    store: Store, view: SessionView, cut: MessageWithParts | None
) -> list[InstructionDiscovered | PartsQuarantined]:
    """The instructions discovered and the parts quarantined before the cut. Without any, the log is not read."""
    if not view.instructions and not view.quarantined:
        return []
    met: list[InstructionDiscovered | PartsQuarantined] = []
    for seq, _, event in await store.journal.read(view.session.id, limit=view.seq):
        if cut is not None and seq >= cut.info.seq:
            break
        if isinstance(event, PartsQuarantined) or (
            isinstance(event, InstructionDiscovered) and event.path in view.instructions and event not in met
        ):
            met.append(event)
    return met


async def _copies(
    queries: Queries,
    copier: Copier,
    session_id: str,
    end: Revert | None,
    met: Iterable[InstructionDiscovered | PartsQuarantined],
) -> list[MessageRecorded | PartsQuarantined]:
    """The copies of the messages before ``end``, in the order of the history.

    A quarantine follows its message. After the newest message it would be taken for the result of a failed turn.
    """
    quarantines: dict[str, list[PartsQuarantined]] = {}
    for event in met:
        if isinstance(event, PartsQuarantined):
            quarantines.setdefault(event.message_id, []).append(event)
    copied: list[MessageRecorded | PartsQuarantined] = []
    async for messages in queries.walk(session_id, with_marks=True):
        for message in in_force(messages, end):
            is_last = end is not None and message.info.id == end.message_id
            if message.parts or not is_last:
                copied.append(copier.copy(message.info, message.parts))
                for event in quarantines.get(message.info.id, ()):
                    copied += copier.quarantine(event)
            if is_last:
                return copied
    return copied


def _speaker(
    source: Session, copied: Iterable[MessageRecorded | PartsQuarantined], *, is_whole: bool
) -> tuple[str | None, SessionModel | None]:
    """The agent and the model of the copy: those of its newest prompt, or those of the source.

    A complete copy prefers those of the source, which may have changed after the newest prompt.
    """
    prompts = [one.message for one in copied if isinstance(one, MessageRecorded)]
    newest = next((one for one in reversed(prompts) if isinstance(one, UserMessage)), None)
    own = (source.agent, source.model)
    if newest is None:
        return own
    used = SessionModel(
        id=newest.model.model_id, provider_id=newest.model.provider_id, variant=newest.model.variant or NO_VARIANT
    )
    theirs = (newest.agent, used if newest.model.provider_id != UNKNOWN_MODEL else None)
    first, second = (own, theirs) if is_whole else (theirs, own)
    return first[0] or second[0], first[1] or second[1]


async def _title(store: Store, source: Session) -> str:
    """The title of the first source with the next free fork number."""
    title = fork_title(source.title)
    taken = await store.engine.scan(keys.forks(source.project_id, base_of_fork(title)), limit=1, reverse=True)
    if taken and (newest := int(taken[0][0][-2])) >= number_of_fork(title):
        return f"{base_of_fork(title)} (fork #{newest + 1})"
    return title
