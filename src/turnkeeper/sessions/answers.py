"""Requests to the user: what waits for an answer, and the answers, from any process on the store."""

import logging
from collections.abc import Awaitable, Callable, Sequence

from turnkeeper.core.answers import NotAsked
from turnkeeper.core.limits import ANSWERS_POLL_S
from turnkeeper.core.view import OpenAsk, PermissionAsk, QuestionAsk
from turnkeeper.model.permission import Absence, PermissionAnswer, PermissionRequest, Reply
from turnkeeper.model.question import QuestionReply, QuestionRequest
from turnkeeper.model.refusal import Refusal
from turnkeeper.run.answers import AnswerDoor
from turnkeeper.store.damaged import UNREADABLE
from turnkeeper.store.engine import EngineError
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import is_alive

log = logging.getLogger(__name__)


async def permissions(
    store: Store, *, directory: str | None = None, session_id: str | None = None
) -> list[PermissionRequest]:
    """Permission requests that wait for an answer; of one directory or session, or all."""
    asks = await _waiting(store, directory, session_id)
    return [ask.request for ask in asks if isinstance(ask, PermissionAsk)]


async def questions(
    store: Store, *, directory: str | None = None, session_id: str | None = None
) -> list[QuestionRequest]:
    """Questions that wait for an answer; of one directory or session, or all."""
    asks = await _waiting(store, directory, session_id)
    return [ask.request for ask in asks if isinstance(ask, QuestionAsk)]


async def reply(
    door: AnswerDoor,
    request_id: str,
    answer: PermissionAnswer,
    *,
    message: str | None = None,
    absence: Absence | None = None,
    session_id: str | None = None,
) -> str:
    """Answer a permission request; the session that it belongs to. Raises NotAsked and Conflict as the door does."""
    found = await _session_of(door.store, request_id, session_id)
    await door.reply(found, request_id, Reply(answer=answer, feedback=message, absence=absence))
    return found


async def answer_questions(
    door: AnswerDoor,
    request_id: str,
    answers: Sequence[Sequence[str]] | None,
    *,
    absence: Absence | None = None,
    session_id: str | None = None,
) -> str:
    """Answer questions, or dismiss them (None); the session that they belong to."""
    found = await _session_of(door.store, request_id, session_id)
    given = tuple(map(tuple, answers)) if answers is not None else None
    await door.answer(found, request_id, QuestionReply(answers=given, absence=absence))
    return found


async def watch(
    store: Store, sleep: Callable[[float], Awaitable[None]], go_on: Callable[[str], Awaitable[bool]]
) -> None:
    """Have sessions go on whose calls were answered by other processes. Never ends.

    ``go_on`` says whether it ran the session; else another process does, and if that one dies it is tried again.
    """
    begun: dict[str, frozenset[str]] = {}
    while True:
        await sleep(ANSWERS_POLL_S)
        try:
            answered = await store.queries.answered()
            begun = {session_id: requests for session_id, requests in begun.items() if session_id in answered}
            for session_id, requests in answered.items():
                if begun.get(session_id) != requests:
                    # Before it is tried: a session that cannot go on must neither be tried again nor stop others.
                    begun[session_id] = requests
                    if not await go_on(session_id):
                        del begun[session_id]
        except EngineError:
            begun = {}  # The store is locked or full, which is no fault of the session: look again.
        except (Refusal, *UNREADABLE) as error:
            log.warning("a session was answered and cannot go on: %s", error)


async def _waiting(store: Store, directory: str | None, session_id: str | None) -> list[OpenAsk]:
    asks = await _asks(store, session_id, lambda place, ask: ask.reply is None and directory in (None, place))
    # A call that cannot be run again ends with its process, so its request needs no answer any more.
    return [ask for ask in asks if ask.restarts or await _is_run(store, ask.request.session_id)]


async def _is_run(store: Store, session_id: str) -> bool:
    """Whether a process runs a session."""
    owner = (await store.queries.state(session_id)).owner
    return owner is not None and is_alive(owner)


async def _asks(store: Store, session_id: str | None, wanted: Callable[[str, OpenAsk], bool]) -> list[OpenAsk]:
    if session_id is not None:
        await store.queries.state(session_id)  # Raises NotFound.
    found = await store.queries.asks(session_id)
    return [ask for one in found for ask in one.asks if wanted(one.directory, ask)]


async def _session_of(store: Store, request_id: str, session_id: str | None) -> str:
    for ask in await _asks(store, session_id, lambda _, ask: ask.request.id == request_id):
        return ask.request.session_id
    raise NotAsked(f"there is no request {request_id!r} that waits for an answer")
