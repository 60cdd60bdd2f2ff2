"""The whole state of a session in one value, read at one moment."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from turnkeeper.core.family import total_cost
from turnkeeper.core.view import PermissionAsk, QuestionAsk
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import PatchPart, SnapshotPart, StepFinishPart, StepStartPart
from turnkeeper.model.permission import PermissionRequest, Ruleset
from turnkeeper.model.question import QuestionRequest
from turnkeeper.model.refusal import Busy, Invalid
from turnkeeper.model.session import FileDiff, Session, Tokens
from turnkeeper.model.status import Owner, Status
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Value
from turnkeeper.store.journal import ATTEMPTS_MAX
from turnkeeper.store.store import Store


class SessionState(Value):
    """Everything about a session. ``seq`` is the number of its newest event; ``tail`` continues after it."""

    seq: int
    session: Session
    status: Status
    owner: Owner | None = None
    """The process that runs the session."""
    messages: tuple[MessageWithParts, ...]
    """The history, oldest message first, and then the prompts that wait."""
    todos: tuple[Todo, ...]
    permissions: tuple[PermissionRequest, ...]
    """Permission requests that wait for an answer."""
    questions: tuple[QuestionRequest, ...]
    """Questions of the model that wait for an answer."""
    rules: Ruleset
    """The permission rules that hold: those of the agent, then those of the session. The last match wins."""
    snapshots: tuple[str, ...]
    """The git trees of the project's files that the messages name, oldest first."""
    diffs: tuple[FileDiff, ...]
    """The file changes of the session."""
    children: tuple[Session, ...]
    """The Child Sessions, without their own."""
    total_cost: float
    """US dollars so far, with those of all sessions below it."""

    @property
    def cost(self) -> float:
        """US dollars so far, of the session alone."""
        return self.session.cost

    @property
    def tokens(self) -> Tokens:
        """Tokens so far."""
        return self.session.tokens


async def state(
    store: Store,
    session_id: str,
    *,
    messages: int | None = None,
    rules: Callable[[Session], Awaitable[Ruleset]] | None = None,
) -> SessionState:
    """The state of a session, with at most this many of its newest messages. Raises NotFound.

    It is read again if the session changed meanwhile, and Busy is raised if it never stands still.
    """
    if messages is not None and messages < 0:
        raise Invalid(f"messages is how many of the newest there are at most, not {messages}")
    for _ in range(ATTEMPTS_MAX):
        before = (await store.queries.state(session_id)).seq
        found = await _read(store, session_id, messages, rules)
        if found.seq == before == (await store.queries.state(session_id)).seq:
            return found
    raise Busy(f"session {session_id!r} changes without pause; stop it, or read its parts one by one")


async def _read(
    store: Store,
    session_id: str,
    limit: int | None,
    rules: Callable[[Session], Awaitable[Ruleset]] | None,
) -> SessionState:
    queries = store.queries
    known, session = await queries.state(session_id), await queries.session(session_id)
    found: list[MessageWithParts] = await queries.waiting(session_id)
    found = found[::-1]
    async for message in queries.stream(session_id):
        if limit is not None and len(found) >= limit:
            break
        found.append(message)
    history = tuple(found[:limit][::-1])
    family = await queries.children(session_id, recursive=True)
    asks = [ask for one in await queries.asks(session_id) for ask in one.asks if ask.reply is None]
    return SessionState(
        seq=known.seq,
        session=session,
        status=known.status,
        owner=known.owner,
        messages=history,
        todos=await queries.todos(session_id),
        permissions=tuple(ask.request for ask in asks if isinstance(ask, PermissionAsk)),
        questions=tuple(ask.request for ask in asks if isinstance(ask, QuestionAsk)),
        rules=await _rules(session, rules),
        snapshots=tuple(dict.fromkeys(tree for message in history for tree in _trees(message))),
        diffs=await queries.diffs(session_id),
        children=tuple(one for one in family if one.parent_id == session_id),
        total_cost=total_cost(session, family),
    )


async def _rules(session: Session, rules: Callable[[Session], Awaitable[Ruleset]] | None) -> Ruleset:
    """The effective rules; those of the session alone if its directory or its agent is gone."""
    if rules is not None:
        with suppress(Invalid):
            return await rules(session)
    return session.permission or ()


def _trees(message: MessageWithParts) -> list[str]:
    """The snapshots that a message names."""
    named: list[str | None] = []
    for part in message.parts:
        match part:
            case StepStartPart(snapshot=tree) | StepFinishPart(snapshot=tree) | SnapshotPart(snapshot=tree):
                named.append(tree)
            case PatchPart(hash=before, after=after):
                named += [before, after]
            case _:
                pass
    return [tree for tree in named if tree]
