"""Responders: who is asked in this process when a call waits for the user."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from turnkeeper.model.permission import PermissionRequest, Reply
from turnkeeper.model.question import QuestionReply, QuestionRequest

Asker: TypeAlias = Callable[[PermissionRequest], Awaitable[Reply]]
"""Answers permission requests. Its reply is recorded like that of any client, and the first answer counts.

It raises NobodyToAsk if there is no user. The request is then rejected, and the model is told why."""

QuestionAsker: TypeAlias = Callable[[QuestionRequest], Awaitable[QuestionReply]]
"""Answers questions of the model."""


class NobodyToAsk(Exception):
    """There is no user who could be asked."""


async def reject_all(request: PermissionRequest) -> Reply:
    """Refuse, because no user can be asked."""
    raise NobodyToAsk


async def allow_all(request: PermissionRequest) -> Reply:
    """The user said yes to everything beforehand (``--auto``)."""
    return Reply(answer="once")


async def dismiss_all(request: QuestionRequest) -> QuestionReply:
    """Dismiss, because no user can answer. Models are not offered the tool that asks questions."""
    return QuestionReply(absence="nobody")
