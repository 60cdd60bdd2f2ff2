"""Hooks: where others may change what a session does. Each is a plain function; plugins will set them."""

from collections.abc import Callable

import msgspec

from turnkeeper.model.value import Value


class Draft(Value):
    """What a summariser is about to be told: further ``context``, or a ``prompt`` in the place of ours."""

    context: tuple[str, ...] = ()
    prompt: str | None = None


def _as_it_is(session_id: str, draft: Draft) -> Draft:
    return draft


def _goes_on(session_id: str, overflow: bool) -> bool:
    return True


class Hooks(msgspec.Struct, frozen=True):
    """Every place where something may be changed; by default nothing is."""

    compacting: Callable[[str, Draft], Draft] = _as_it_is
    """opencode's ``experimental.session.compacting``: session and draft in, draft out."""
    autocontinue: Callable[[str, bool], bool] = _goes_on
    """opencode's ``experimental.compaction.autocontinue``: whether work goes on by itself after a compaction."""
