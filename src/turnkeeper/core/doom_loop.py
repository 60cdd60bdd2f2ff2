"""Doom Loop: a model that makes the same call again and again, across turns too, and will not stop by itself."""

from collections.abc import Iterable

import msgspec

from turnkeeper.core.limits import DOOM_LOOP_CALLS
from turnkeeper.model.parts import Part, ToolPart
from turnkeeper.model.parts.tool import ToolPending
from turnkeeper.model.value import Json


def is_doom_loop(earlier: Iterable[Part], tool: str, input: Json) -> bool:
    """Whether a call that is about to start is the third of its kind in a row.

    ``earlier`` are the parts before it, in order, from the last promoted user message on; of an approved loop, from
    the approved call on. Calls that the provider ran itself, or whose input is still being written, do not count.
    """
    trailing = [
        (part.tool, canonical(part.state.input))
        for part in earlier
        if isinstance(part, ToolPart)
        and not isinstance(part.state, ToolPending)
        and not (part.provider is not None and part.provider.executed)
    ][-(DOOM_LOOP_CALLS - 1) :]
    return trailing == [(tool, canonical(input))] * (DOOM_LOOP_CALLS - 1)


def canonical(json: Json) -> bytes:
    """Equal JSON values as equal bytes, in whatever order their keys were written."""
    return msgspec.json.encode(json, order="sorted")
