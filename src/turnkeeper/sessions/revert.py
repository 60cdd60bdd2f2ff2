"""Revert a session: set history and files aside from a message on, bring them back, or remove them for good."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from turnkeeper.core.restores import is_pending
from turnkeeper.model.message import UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import CompactionPart, TextPart
from turnkeeper.model.refusal import Busy, Invalid
from turnkeeper.model.restore import Reverted
from turnkeeper.model.session import Revert
from turnkeeper.run.pen import Pen
from turnkeeper.run.reverts import Planned, RevertTarget
from turnkeeper.run.runtime import Runtime
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import is_alive

NOTHING_TO_UNDO: Final = "there is nothing to undo: no prompt is left in this session"
NOTHING_TO_REDO: Final = "there is nothing to redo: no revert of this session is pending"


async def revert(
    store: Store, runtime: Runtime, session_id: str, target: RevertTarget, *, dry_run: bool = False
) -> Reverted:
    """Set history and files aside; an earlier revert is replaced. Raises NotFound for an unknown message, and Busy."""
    if dry_run:
        await _check_rests(store, runtime, session_id)
        return await _result(store, session_id, await runtime.reverts.plan(session_id, target), is_plan=True)
    return await _alone(store, runtime, session_id, lambda pen: runtime.reverts.stage(pen, target))


async def unrevert(store: Store, runtime: Runtime, session_id: str, *, dry_run: bool = False) -> Reverted:
    """Bring back what was set aside; nothing if nothing was. Raises Busy while the session runs."""
    if dry_run:
        await _check_rests(store, runtime, session_id)
        return await _result(store, session_id, await runtime.reverts.plan_clear(session_id), is_plan=True)
    return await _alone(store, runtime, session_id, runtime.reverts.clear)


async def commit(store: Store, runtime: Runtime, session_id: str) -> None:
    """Remove what comes after the message of a revert for good. Its message stays. Raises Busy."""

    async def work(pen: Pen) -> None:
        await runtime.reverts.commit(pen, keeps_message=True)

    if (await store.queries.session(session_id)).revert is not None:
        await runtime.alone(session_id, work, commits=False)


async def undo(
    store: Store, runtime: Runtime, session_id: str, *, message_id: str | None = None, dry_run: bool = False
) -> Reverted:
    """Revert the last prompt and what followed it; once more: the prompt before. Or revert from a message on."""
    pending = (await store.queries.session(session_id)).revert
    target = message_id or await prompt_before(store.queries.stream(session_id), pending)
    if target is None:
        raise Invalid(NOTHING_TO_UNDO)
    return await revert(store, runtime, session_id, RevertTarget(message_id=target), dry_run=dry_run)


async def redo(store: Store, runtime: Runtime, session_id: str, *, dry_run: bool = False) -> Reverted:
    """Bring back the first prompt that was undone, with what followed it. Raises Invalid if none was."""
    view = await store.journal.view(session_id)
    pending = view.session.revert
    if not is_pending(view):
        raise Invalid(NOTHING_TO_REDO)
    target = await prompt_after(store.queries.stream(session_id), pending) if pending is not None else None
    if target is None:
        return await unrevert(store, runtime, session_id, dry_run=dry_run)
    return await revert(store, runtime, session_id, RevertTarget(message_id=target), dry_run=dry_run)


async def _alone(store: Store, runtime: Runtime, session_id: str, do: Callable[[Pen], Awaitable[Planned]]) -> Reverted:
    done: list[Planned] = []

    async def work(pen: Pen) -> None:
        done.append(await do(pen))

    await store.queries.state(session_id)
    await runtime.alone(session_id, work, commits=False)
    if not done:
        raise Busy(f"session {session_id!r} was stopped before its revert was done; try again")
    return await _result(store, session_id, done[0])


async def _result(store: Store, session_id: str, planned: Planned, *, is_plan: bool = False) -> Reverted:
    session = await store.queries.session(session_id)
    return Reverted(session=session, files=planned.files, problem=planned.problem, is_plan=is_plan)


async def _check_rests(store: Store, runtime: Runtime, session_id: str) -> None:
    owner = (await store.queries.state(session_id)).owner
    if session_id in runtime.active or (owner is not None and is_alive(owner)):
        raise Busy(f"session {session_id!r} is running; wait until it rests, or stop it")


async def prompt_before(newest_first: AsyncIterator[MessageWithParts], revert: Revert | None) -> str | None:
    """The newest prompt that the pending revert has not set aside."""
    is_aside = revert is not None
    async for message in newest_first:
        if revert is not None and message.info.id == revert.message_id:
            is_aside = False
            if revert.part_id is None and not revert.keeps_message:
                continue
        if not is_aside and _is_prompt(message):
            return message.info.id
    return None


async def prompt_after(newest_first: AsyncIterator[MessageWithParts], revert: Revert) -> str | None:
    """The first prompt after the message of a revert."""
    found: str | None = None
    async for message in newest_first:
        if message.info.id == revert.message_id:
            return found
        if _is_prompt(message):
            found = message.info.id
    return None


def _is_prompt(message: MessageWithParts) -> bool:
    """Whether a message is from the user, and not one that the program added."""
    own = [part for part in message.parts if not isinstance(part, CompactionPart)]
    is_said = any(not (isinstance(part, TextPart) and part.synthetic) for part in own)
    return isinstance(message.info, UserMessage) and is_said
