"""Requests of one tool call to the user: rules and plugins decide first, and what they leave open is asked."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

import msgspec

from turnkeeper.core.answers import DISMISSED, REJECTED
from turnkeeper.core.permission import Ask, Deny, decide, offered
from turnkeeper.core.storable import storable
from turnkeeper.mint import Mint
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.permission import AskedBy, PermissionRequest, Ruleset
from turnkeeper.model.question import Question, QuestionRequest
from turnkeeper.model.value import JsonObject
from turnkeeper.plugins import calls
from turnkeeper.plugins.plugin_set import PluginSet
from turnkeeper.run.asking import Asking, WaitingCall
from turnkeeper.text.surrogates import clean, clean_object
from turnkeeper.tools.tool import Denied, Rejected, ToolFailure

PLUGIN_DENIED: Final = "The plugin {names} denies this call; the user was not asked, and asking again will not help."


class CallRequests(msgspec.Struct, frozen=True):
    """Asks the user for one call."""

    call: WaitingCall
    part: ToolPart
    rules: Ruleset
    asking: Asking
    plugins: PluginSet
    mint: Mint
    waiting: Callable[[], AbstractAsyncContextManager[None]]
    """Encloses a wait for the user."""

    async def permission(
        self, permission: str, patterns: Sequence[str], always: Sequence[str], metadata: JsonObject
    ) -> None:
        """Return once the call may go on. Raises Denied, Rejected or ToolFailure if it may not."""
        open_patterns: Sequence[str] = ()
        match decide(self.rules, permission, patterns, self.asking.approvals()):
            case Deny() as deny:
                raise Denied(deny)
            case Ask(patterns=left):
                open_patterns = tuple(map(clean, left))
        metadata, _ = storable(clean_object(metadata), dict[str, object], "what it asks")
        request = PermissionRequest(
            id=self.mint.ascending("per"),
            session_id=self.part.session_id,
            permission=permission,
            patterns=tuple(map(clean, patterns)),
            always=tuple(map(clean, offered(permission, open_patterns, always))),
            metadata=metadata,
            tool=self._asked_by,
        )
        if open_patterns:
            status, by = await calls.permission(self.plugins, request.but(patterns=open_patterns))
            if status.status == "deny":
                raise ToolFailure(PLUGIN_DENIED.format(names=", ".join(by)))
            open_patterns = () if status.status == "allow" else open_patterns
        async with self.waiting() if open_patterns else nullcontext():
            reply = await self.asking.permission(self.call, request, open_patterns)
        if reply.answer == "reject":
            raise Rejected(REJECTED[reply.absence], reply.feedback)

    async def answers(self, questions: Sequence[Question]) -> tuple[tuple[str, ...], ...]:
        """The user's answers to questions. Raises Rejected if there are none."""
        request = QuestionRequest(
            id=self.mint.ascending("que"),
            session_id=self.part.session_id,
            questions=tuple(questions),
            tool=self._asked_by,
        )
        async with self.waiting():
            reply = await self.asking.question(self.call, request)
        if reply.answers is None:
            raise Rejected(DISMISSED[reply.absence])
        return reply.answers

    @property
    def _asked_by(self) -> AskedBy:
        return AskedBy(message_id=self.part.message_id, call_id=self.part.call_id)
