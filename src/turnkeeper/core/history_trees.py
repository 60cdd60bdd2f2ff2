"""History trees: the snapshots that the turns of a history name."""

from collections.abc import Iterable, Iterator

from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import Part, PatchPart, SnapshotPart, StepFinishPart, StepStartPart
from turnkeeper.model.session import Revert
from turnkeeper.model.value import Value


class KnownTree(Value):
    """A snapshot, and the directory of the turn that took it."""

    tree: str
    directory: str


class TurnPatch(Value):
    """The files that one turn changed, with the snapshots before and after it."""

    before: KnownTree
    after: KnownTree
    files: tuple[str, ...]


def trees(turn: MessageWithParts) -> list[KnownTree]:
    """The snapshots of a turn in the order they were taken; empty for other messages."""
    if not isinstance(turn.info, AssistantMessage):
        return []
    found: list[str] = []
    for part in turn.parts:
        match part:
            case StepStartPart(snapshot=str(tree)) | StepFinishPart(snapshot=str(tree)) | SnapshotPart(snapshot=tree):
                found.append(tree)
            case PatchPart(after=str(tree)):
                found.append(tree)
            case PatchPart(hash=tree) if not found:
                found.append(tree)
    return [KnownTree(tree=tree, directory=turn.info.path.cwd) for tree in found]


def newest(history: Iterable[MessageWithParts], revert: Revert | None = None) -> KnownTree | None:
    """The last snapshot of a history. What a pending revert sets aside does not count: its changes are undone."""
    last: KnownTree | None = None
    for message in in_force(history, revert):
        last = next(reversed(trees(message)), last)
    return last


def in_force(history: Iterable[MessageWithParts], revert: Revert | None) -> Iterator[MessageWithParts]:
    """The messages, and the parts of the last one, that a pending revert does not set aside."""
    for message in history:
        if revert is not None and message.info.id == revert.message_id:
            yield message if revert.keeps_message else message.but(parts=_before(message, revert.part_id))
            return
        yield message


def patches(turns: Iterable[MessageWithParts]) -> Iterator[TurnPatch]:
    """The changes of turns with both snapshots known. Turns of other programs name only the first."""
    for turn in turns:
        if isinstance(turn.info, AssistantMessage):
            for part in turn.parts:
                if isinstance(part, PatchPart) and part.after is not None:
                    place = turn.info.path.cwd
                    yield TurnPatch(
                        before=KnownTree(tree=part.hash, directory=place),
                        after=KnownTree(tree=part.after, directory=place),
                        files=part.files,
                    )


def joined(found: Iterable[TurnPatch]) -> TurnPatch | None:
    """The changes of several turns as one; None if they changed nothing."""
    all_found = list(found)
    if not all_found:
        return None
    names = dict.fromkeys(name for one in all_found for name in one.files)
    return TurnPatch(before=all_found[0].before, after=all_found[-1].after, files=tuple(names))


def _before(message: MessageWithParts, part_id: str | None) -> tuple[Part, ...]:
    """The parts before one part; none if the whole message is set aside."""
    ids = [part.id for part in message.parts]
    return message.parts[: ids.index(part_id)] if part_id in ids else ()
