"""Doom Loop: a model repeats an identical tool call, also across turns."""

from collections.abc import Iterable, Sequence
from itertools import islice, takewhile

import msgspec

from turnkeeper.core.history import History, HistoryItem
from turnkeeper.core.limits import DOOM_LOOP_CALLS
from turnkeeper.model.parts import Part, ToolPart
from turnkeeper.model.parts.tool import ToolPending
from turnkeeper.model.value import Json


def latest_calls(history: History, user: HistoryItem) -> list[ToolPart]:
    """The newest calls since a user message, oldest first: as many as ``is_doom_loop`` compares."""
    new = takewhile(lambda entry: entry.message.seq > user.message.seq, reversed(history.entries))
    return _newest(part for entry in new for part in reversed(entry.parts))[::-1]


def is_doom_loop(earlier: Sequence[Part], tool: str, input: Json) -> bool:
    """Whether a call that is about to start is the third of its kind in a row.

    ``earlier`` are the parts before it, in order, from the last promoted user message on; of an approved loop, from
    the approved call on.
    """
    row = _newest(reversed(earlier))
    if len(row) < DOOM_LOOP_CALLS - 1 or any(part.tool != tool for part in row):
        return False
    wanted = canonical(input)
    return all(canonical(part.state.input) == wanted for part in row)


def canonical(json: Json) -> bytes:
    """JSON with sorted keys: equal values give equal bytes."""
    return msgspec.json.encode(json, order="sorted")


def _newest(newest_first: Iterable[Part]) -> list[ToolPart]:
    """The first calls that count. Hosted calls and calls whose input is incomplete do not count."""
    calls = (part for part in newest_first if isinstance(part, ToolPart) and not part.is_hosted)
    return list(islice((call for call in calls if not isinstance(call.state, ToolPending)), DOOM_LOOP_CALLS - 1))
