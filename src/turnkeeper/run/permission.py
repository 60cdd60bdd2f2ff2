"""Asking: what the rules leave open is put to the user; what they allow for good is remembered for the session."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeAlias

from turnkeeper.core.permission import Allow, Ask, Deny, decide
from turnkeeper.model.permission import Rule, Ruleset
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.tools.tool import Denied, Rejected


class PermissionRequest(Value):
    """A question to the user: may this call do that?"""

    id: str
    session_id: str
    message_id: str
    call_id: str
    permission: str
    patterns: tuple[str, ...]
    always: tuple[str, ...]
    metadata: JsonObject


class Reply(Value):
    """The user's answer. Feedback with a rejection goes to the model, which then goes on by it."""

    answer: Literal["once", "always", "reject"]
    feedback: str | None = None


Asker: TypeAlias = Callable[[PermissionRequest], Awaitable[Reply]]


async def reject_all(request: PermissionRequest) -> Reply:
    """Nobody is there to be asked."""
    return Reply(answer="reject", feedback=None)


async def allow_all(request: PermissionRequest) -> Reply:
    """The user said yes to everything beforehand (``--auto``)."""
    return Reply(answer="once")


class Approvals:
    """What the user allowed for good, by session, for as long as this process lives."""

    def __init__(self) -> None:
        self._rules: dict[str, list[Rule]] = {}

    def of(self, session_id: str) -> Sequence[Rule]:
        """The approvals of a session."""
        return self._rules.get(session_id, ())

    def add(self, session_id: str, permission: str, patterns: Sequence[str]) -> None:
        """Remember an approval."""
        rules = self._rules.setdefault(session_id, [])
        rules.extend(Rule(permission=permission, pattern=pattern, action="allow") for pattern in patterns)


async def permit(request: PermissionRequest, rules: Ruleset, approvals: Approvals, ask: Asker) -> None:
    """Return if the call may go on; raise Denied or Rejected. Asks at most once."""
    match decide(rules, request.permission, request.patterns, approvals.of(request.session_id)):
        case Allow():
            return
        case Deny() as deny:
            raise Denied(deny)
        case Ask(patterns=patterns):
            match await ask(request.but(patterns=patterns)):
                case Reply(answer="once"):
                    return
                case Reply(answer="always"):
                    approvals.add(request.session_id, request.permission, request.always or patterns)
                case Reply(answer="reject", feedback=feedback):
                    raise Rejected(feedback)
                case other:  # Python checks no types, and what is no answer must not allow anything.
                    given = other.answer if isinstance(other, Reply) else other
                    raise Rejected(words=f"{given!r} is no answer: only 'once' and 'always' allow this call.")
