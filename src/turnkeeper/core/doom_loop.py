"""Doom Loop: a model that makes the same call again and again, across turns too, and will not stop by itself."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from turnkeeper.core.history import History, HistoryItem
from turnkeeper.core.limits import DOOM_LOOP_CALLS
from turnkeeper.model.parts import Part, ToolPart
from turnkeeper.model.parts.tool import ToolPending
from turnkeeper.model.value import Json


def latest_calls(history: History, user: HistoryItem) -> list[ToolPart]:
    """The calls since the user spoke that a loop may have begun with, in order. Those before them are not looked at."""
    return _newest(_backwards(history, user.message.seq))[::-1]


def is_doom_loop(earlier: Sequence[Part], tool: str, input: Json) -> bool:
    """Whether a call that is about to start is the third of its kind in a row.

    ``earlier`` are the parts before it, in order, from the last promoted user message on; of an approved loop, from
    the approved call on. Calls that the provider ran itself, or whose input is still being written, do not count.
    """
    row = _newest(reversed(earlier))
    if len(row) < DOOM_LOOP_CALLS - 1 or any(part.tool != tool for part in row):
        return False
    wanted = canonical(input)
    return all(canonical(part.state.input) == wanted for part in row)


def canonical(json: Json) -> bytes:
    """Equal JSON values as equal bytes, in whatever order their keys were written."""
    return msgspec.json.encode(json, order="sorted")


def _backwards(history: History, place: int) -> Iterator[Part]:
    for entry in reversed(history.entries):
        if entry.message.seq <= place:
            return
        yield from reversed(entry.parts)


def _newest(newest_first: Iterable[Part]) -> list[ToolPart]:
    calls = (part for part in newest_first if isinstance(part, ToolPart) and _counts(part))
    return list(islice(calls, DOOM_LOOP_CALLS - 1))


def _counts(part: ToolPart) -> bool:
    return not isinstance(part.state, ToolPending) and not (part.provider is not None and part.provider.executed)
