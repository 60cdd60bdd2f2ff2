"""Outline of a session: one small row for each message, so that a reader can lay out a history without loading it."""

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from turnkeeper.core.handles import whole_output
from turnkeeper.core.history import HistoryItem, compaction_of, visible
from turnkeeper.model.message import AssistantMessage, SystemMessage, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import Part, ReasoningPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.value import Value
from turnkeeper.store.queries import Queries

TITLE_CHARS = 100

Role: TypeAlias = Literal["user", "assistant", "system", "summary", "compaction"]


class OutlineRow(Value):
    """A message in an outline. ``calls`` and ``failed`` count tool calls; ``title`` is its first line, shortened.

    ``hidden``: requests leave the message out, because a Summary stands for it.
    """

    id: str
    seq: int
    role: Role
    time: int
    chars: int = 0
    lines: int = 0
    calls: int = 0
    failed: int = 0
    title: str = ""
    error: str | None = None
    hidden: bool = False


class Outline(Value):
    """The rows of a session after event ``seq``, oldest first. ``damaged`` are documents that cannot be read."""

    seq: int
    rows: tuple[OutlineRow, ...]
    damaged: tuple[str, ...] = ()


async def outline(queries: Queries, session_id: str, *, after: int = 0) -> Outline:
    """The outline of a session, or its rows after a seq. ``hidden`` is only known for a whole outline."""
    state = await queries.state(session_id)
    damaged: list[str] = []
    if after:
        found = await _since(queries, session_id, after)
        return Outline(seq=state.seq, rows=tuple(map(_row, found)))
    entries: list[MessageWithParts] = []
    async for some in queries.walk(session_id, damaged=damaged):
        entries += some
    shown = {one.message.id for one in visible(HistoryItem(message=one.info, parts=one.parts) for one in entries)}
    rows = tuple(_row(one).but(hidden=one.info.id not in shown) for one in entries)
    return Outline(seq=state.seq, rows=rows, damaged=tuple(damaged))


async def _since(queries: Queries, session_id: str, after: int) -> list[MessageWithParts]:
    found: list[MessageWithParts] = []
    async for message in queries.stream(session_id):
        if message.info.seq <= after:
            break
        found.append(message)
    return found[::-1]


def _row(found: MessageWithParts) -> OutlineRow:
    info, parts = found.info, found.parts
    calls = [part for part in parts if isinstance(part, ToolPart)]
    sizes = list(map(_size, parts))
    error = info.error if isinstance(info, AssistantMessage) else None
    return OutlineRow(
        id=info.id,
        seq=info.seq,
        role=_role(found),
        time=info.time.created,
        chars=sum(chars for chars, _ in sizes),
        lines=sum(lines for _, lines in sizes),
        calls=len(calls),
        failed=sum(isinstance(call.state, ToolError) for call in calls),
        title=_title(found),
        error=str(type(error).__struct_config__.tag) if error is not None else None,
    )


def _role(found: MessageWithParts) -> Role:
    match found.info:
        case UserMessage():
            is_mark = compaction_of(HistoryItem(message=found.info, parts=found.parts)) is not None
            return "compaction" if is_mark else "user"
        case AssistantMessage(summary=summary):
            return "summary" if summary else "assistant"
        case _:
            return "system"


def _size(part: Part) -> tuple[int, int]:
    """The characters and lines of a part that a reader shows at once; folded ones count as one line."""
    match part:
        case TextPart(text=text):
            return len(text), text.count("\n") + 1
        case ReasoningPart(text=text):
            return len(text), 1
        case ToolPart(state=ToolCompleted() as state):
            return len(whole_output(state)), 1
        case ToolPart():
            return 0, 1
        case _:
            return 0, 0


def _title(found: MessageWithParts) -> str:
    if isinstance(found.info, SystemMessage):
        return _short(", ".join(update.key for update in found.info.updates))
    return _short(next(_texts(found.parts), ""))


def _texts(parts: Iterable[Part]) -> Iterator[str]:
    return (part.text for part in parts if isinstance(part, TextPart) and not part.synthetic and part.text.strip())


def _short(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= TITLE_CHARS else f"{line[: TITLE_CHARS - 1]}…"
