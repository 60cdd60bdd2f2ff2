"""Wanted: the permissions that one call needs. A rule that denies one of them does so before the user is asked."""

from collections.abc import Sequence
from typing import NamedTuple

from turnkeeper.model.value import JsonObject
from turnkeeper.tools.tool import AskPermission, ToolContext


class Wanted(NamedTuple):
    """One permission that a call needs; the fields are the arguments of AskPermission."""

    permission: str
    patterns: Sequence[str]
    always: Sequence[str]
    metadata: JsonObject


async def ask_all(wanted: Sequence[Wanted], context: ToolContext, ask: AskPermission | None = None) -> None:
    """Ask for all in their order, once no rule denies any. ``ask`` is used in the place of the context's own."""
    for one in wanted:
        context.refuse_denied(one.permission, one.patterns)
    for one in wanted:
        await (ask or context.ask)(one.permission, one.patterns, always=one.always, metadata=one.metadata)
