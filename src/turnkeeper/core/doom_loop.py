"""Doom Loop: a model that makes the same call again and again, across turns too, and will not stop by itself."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

import msgspec

from turnkeeper.core.history import History, HistoryItem
from turnkeeper.core.limits import DOOM_LOOP_CALLS
from turnkeeper.core.permission import DENIED
from turnkeeper.model.parts import Part, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolPending
from turnkeeper.model.value import Json


def latest_calls(history: History, user: HistoryItem) -> list[ToolPart]:
    """The newest calls since the user spoke that are all alike, in order: those that a loop may have begun with."""
    return _row(_backwards(history, user.message.seq))


def is_doom_loop(earlier: Sequence[Part], tool: str, input: Json) -> bool:
    """Whether a call that is about to start is the third of its kind in a row, across turns too.

    ``earlier`` are the parts before it, in order, from the last promoted user message on. A third call that completed
    was approved, and the count then begins again with it; one that failed or still waits for its answer was not. Calls
    that the provider ran itself, or whose input is still being written, do not count.
    """
    row = _row(reversed(earlier))
    if not row or not _is_alike(row[0], tool, canonical(input)):
        return False
    count = 0
    for call in row:
        count += 1
        if count >= DOOM_LOOP_CALLS:
            count = 1 if isinstance(call.state, ToolCompleted) else DOOM_LOOP_CALLS - 1
    return count >= DOOM_LOOP_CALLS - 1


def is_denied_loop(earlier: Sequence[Part], tool: str, input: Json) -> bool:
    """Whether a rule denied the calls before one that is the third of its kind in a row."""
    return is_doom_loop(earlier, tool, input) and all(map(_is_denied, _row(reversed(earlier))[1 - DOOM_LOOP_CALLS :]))


def canonical(json: Json) -> bytes:
    """Equal JSON values as equal bytes, for any order of their keys."""
    return msgspec.json.encode(json, order="sorted")


def _backwards(history: History, place: int) -> Iterator[Part]:
    for entry in reversed(history.entries):
        if entry.message.seq <= place:
            return
        yield from reversed(entry.parts)


def _row(newest_first: Iterable[Part]) -> list[ToolPart]:
    """The newest call and those before it that are like it, oldest first."""
    calls = (part for part in newest_first if isinstance(part, ToolPart) and _counts(part))
    newest = next(calls, None)
    if newest is None:
        return []
    wanted = canonical(newest.state.input)
    return [newest, *takewhile(lambda call: _is_alike(call, newest.tool, wanted), calls)][::-1]


def _is_alike(call: ToolPart, tool: str, input: bytes) -> bool:
    return call.tool == tool and canonical(call.state.input) == input


def _is_denied(call: ToolPart) -> bool:
    return isinstance(call.state, ToolError) and call.state.error.startswith(DENIED)


def _counts(part: ToolPart) -> bool:
    return not isinstance(part.state, ToolPending) and not part.is_hosted
