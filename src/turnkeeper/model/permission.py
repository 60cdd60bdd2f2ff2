"""Permission: the rules an agent works under, the request that is put to the user, and the user's reply."""

from typing import Literal, TypeAlias

from turnkeeper.model.value import JsonObject, Private, Value

Action: TypeAlias = Literal["allow", "deny", "ask"]


class Rule(Value):
    """A permission, a wildcard pattern, and the action on a match."""

    permission: str
    pattern: str
    action: Action


Ruleset: TypeAlias = tuple[Rule, ...]

PermissionAnswer: TypeAlias = Literal["once", "always", "reject"]

Absence: TypeAlias = Literal["nobody", "late"]
"""The reason for a refusal that is not from the user: nobody could be asked, or nobody answered in time."""


class AskedBy(Value):
    """The tool call that asks."""

    message_id: str
    call_id: str


class PermissionRequest(Value):
    """A request to the user: may this call do that? In the shape that clients know."""

    id: str
    session_id: str
    permission: str
    patterns: tuple[str, ...]
    metadata: JsonObject
    always: tuple[str, ...]
    """The patterns that an answer "always" allows for good."""
    tool: AskedBy
    deadline: Private[int | None] = None
    """The time when the configured default answers in place of the user, in milliseconds since 1970."""
    default: Private[Literal["once", "reject"] | None] = None
    """The answer at the deadline."""


class Reply(Value):
    """The user's answer. Feedback with a rejection goes to the model, which then goes on by it."""

    answer: PermissionAnswer
    feedback: str | None = None
    absence: Absence | None = None
    """Set if the request was rejected in the place of a user."""


class SavedApproval(Value):
    """A permanent approval of a user in a project.

    ``directory`` is the top of its repository on this disk, or, without a repository, the directory it was given in.
    """

    id: str
    project_id: str
    permission: str
    pattern: str
    created: int
    directory: str | None = None
