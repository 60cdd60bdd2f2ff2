"""Revert a session: set history and files aside from a message on, bring them back, or remove them for good."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from turnkeeper.core.restores import is_open, is_pending
from turnkeeper.core.revert_plan import Planned, RevertTarget
from turnkeeper.core.view import SessionView
from turnkeeper.model.message import UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import CompactionPart, TextPart
from turnkeeper.model.refusal import Busy, Invalid
from turnkeeper.model.restore import Reverted
from turnkeeper.model.session import Revert
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.runtime import Runtime
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import is_alive
from turnkeeper.workspace.restore import Progress, no_progress

NOTHING_TO_UNDO: Final = "there is nothing to undo: no prompt is left in this session"
NOTHING_TO_REDO: Final = "there is nothing to redo: nothing of this session is undone"


async def revert(
    store: Store,
    runtime: Runtime,
    session_id: str,
    target: RevertTarget,
    *,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> Reverted:
    """Set history and files aside; an earlier revert is replaced. Raises NotFound for an unknown message, and Busy."""
    if dry_run:
        await _check_rests(store, runtime, session_id)
        return await _result(store, session_id, await runtime.reverts.plan(session_id, target), is_plan=True)
    return await _alone(store, runtime, session_id, lambda writer: runtime.reverts.stage(writer, target, progress))


async def unrevert(
    store: Store, runtime: Runtime, session_id: str, *, dry_run: bool = False, progress: Progress = no_progress
) -> Reverted:
    """Bring back what was set aside; nothing if nothing was. Raises Busy while the session runs."""
    if dry_run:
        await _check_rests(store, runtime, session_id)
        return await _result(store, session_id, await runtime.reverts.plan_clear(session_id), is_plan=True)
    return await _alone(store, runtime, session_id, lambda writer: runtime.reverts.clear(writer, progress))


async def commit(store: Store, runtime: Runtime, session_id: str) -> None:
    """Remove what comes after the message of a revert for good. Its message stays. Raises Busy."""

    async def work(writer: FencedWriter) -> None:
        await runtime.reverts.commit(writer, keeps_message=True)

    if is_pending(await store.journal.view(session_id)):
        await runtime.alone(session_id, work, commits=False)


async def undo(
    store: Store,
    runtime: Runtime,
    session_id: str,
    *,
    message_id: str | None = None,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> Reverted:
    """Revert the last prompt and what followed it; once more: the prompt before. Or revert from a message on.

    A revert that was cut off is finished first. Files that could not be written are tried again before it goes further.
    """
    view = await store.journal.view(session_id)
    target = await _undo_target(store, view, message_id)
    if (finished := await _finished(store, runtime, view, dry_run=dry_run, progress=progress)) is not None:
        if dry_run or (target is not None and _is_begun(view, target)):
            return finished
        target = await _undo_target(store, await store.journal.view(session_id), message_id)
    if target is None:
        raise Invalid(NOTHING_TO_UNDO)
    return await revert(store, runtime, session_id, target, dry_run=dry_run, progress=progress)


async def redo(
    store: Store, runtime: Runtime, session_id: str, *, dry_run: bool = False, progress: Progress = no_progress
) -> Reverted:
    """Bring back the first prompt that was undone, with what followed it. Raises Invalid if none was.

    What was cut off is finished first.
    """
    view = await store.journal.view(session_id)
    target = await _redo_target(store, view)
    if (finished := await _finished(store, runtime, view, dry_run=dry_run, progress=progress)) is not None:
        if dry_run or _is_begun(view, target):
            return finished
        view = await store.journal.view(session_id)
        target = await _redo_target(store, view)
    if not is_pending(view):
        raise Invalid(NOTHING_TO_REDO)
    if target is None:
        return await unrevert(store, runtime, session_id, dry_run=dry_run, progress=progress)
    return await revert(store, runtime, session_id, target, dry_run=dry_run, progress=progress)


async def _undo_target(store: Store, view: SessionView, message_id: str | None) -> RevertTarget | None:
    pending, restore = view.session.revert, view.restore
    if message_id is not None:
        return RevertTarget(message_id=message_id)
    if pending is not None and restore is not None and restore.unwritten:
        return RevertTarget(message_id=pending.message_id, part_id=pending.part_id, keeps_message=pending.keeps_message)
    found = await prompt_before(store.queries.stream(view.session.id), pending)
    return RevertTarget(message_id=found) if found is not None else None


async def _redo_target(store: Store, view: SessionView) -> RevertTarget | None:
    pending = view.session.revert
    found = await prompt_after(store.queries.stream(view.session.id), pending) if pending is not None else None
    return RevertTarget(message_id=found) if found is not None else None


def _is_begun(view: SessionView, target: RevertTarget | None) -> bool:
    """Whether what was cut off is what is asked for now."""
    assert view.restore is not None, "something was cut off"
    begun = view.restore.revert
    if begun is None or target is None:
        return begun is None and target is None and view.session.revert is not None
    return (begun.message_id, begun.part_id) == (target.message_id, target.part_id)


async def _finished(
    store: Store, runtime: Runtime, view: SessionView, *, dry_run: bool, progress: Progress
) -> Reverted | None:
    """Finish what was cut off, or say what that would do; None if nothing was. Raises Conflict if it cannot be done."""
    if not is_open(view):
        return None
    session_id = view.session.id
    if dry_run:
        await _check_rests(store, runtime, session_id)
        planned = await runtime.reverts.plan_finish(session_id)
        return await _result(store, session_id, planned or Planned(), is_plan=True)

    async def finish(writer: FencedWriter) -> Planned:
        return await runtime.reverts.finish(writer, progress) or Planned()

    return await _alone(store, runtime, session_id, finish)


async def _alone(
    store: Store, runtime: Runtime, session_id: str, do: Callable[[FencedWriter], Awaitable[Planned]]
) -> Reverted:
    done: list[Planned] = []

    async def work(writer: FencedWriter) -> None:
        done.append(await do(writer))

    await store.queries.state(session_id)
    await runtime.alone(session_id, work, commits=False)
    if not done:
        raise Busy(f"session {session_id!r} was stopped before its revert was done; try again")
    return await _result(store, session_id, done[0])


async def _result(store: Store, session_id: str, planned: Planned, *, is_plan: bool = False) -> Reverted:
    session = await store.queries.session(session_id)
    message_id = planned.revert.message_id if planned.revert is not None else None
    return Reverted(
        session=session, message_id=message_id, files=planned.files, problem=planned.problem, is_plan=is_plan
    )


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
