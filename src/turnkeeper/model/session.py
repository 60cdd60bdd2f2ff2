"""Session: the settings, totals and times of one conversation, as in the API."""

from typing import Literal

import msgspec

from turnkeeper.model.permission import Rule
from turnkeeper.model.value import JsonObject, Private, Value


class FileDiff(Value):
    """Line changes of one file. ``before`` and ``after`` occur only in old imported data."""

    file: str | None = None
    patch: str | None = None
    before: str | None = None
    after: str | None = None
    additions: int
    deletions: int
    status: Literal["added", "deleted", "modified"] | None = None


class Summary(Value):
    """The numbers of changed lines and files of a session."""

    additions: int
    deletions: int
    files: int
    diffs: tuple[FileDiff, ...] | None = None


class Share(Value):
    """The public link of a shared session."""

    url: str


class Revert(Value):
    """A staged revert: the history from this message (or part) on is set aside until it is committed or cleared."""

    message_id: str
    part_id: str | None = None
    snapshot: str | None = None
    diff: str | None = None
    files: tuple[JsonObject, ...] | None = None
    keeps_message: Private[bool] = False
    """The second generation of the API sets aside the messages after this one, and not the message itself."""
    conflicts: Private[tuple[str, ...] | None] = None
    """Files that were left as they are, because others changed them."""


class CacheTokens(Value):
    """Tokens read from and written to the provider's cache."""

    read: int
    write: int


class Tokens(Value):
    """Usage by kind. ``input`` excludes tokens read from the cache."""

    total: int | None = None
    input: int
    output: int
    reasoning: int
    cache: CacheTokens


ZERO_TOKENS = Tokens(input=0, output=0, reasoning=0, cache=CacheTokens(read=0, write=0))


NO_VARIANT = "default"
"""The variant of a session's model without a variant."""


class SessionModel(Value):
    """The model a session last used: a ModelChoice whose key is ``id`` and not ``modelID``, as clients expect."""

    id: str
    provider_id: str
    variant: str | None = None

    @property
    def model_id(self) -> str:
        """The id of the model."""
        return self.id

    def __str__(self) -> str:
        return f"{self.provider_id}/{self.id}"


class SessionTime(Value):
    """Milliseconds since 1970."""

    created: int
    updated: int
    compacting: int | None = None
    archived: int | float | None = None


class Origin(Value):
    """The source of a fork; ``message_id`` is the first message that was not copied.

    ``seq`` is the event after which the history was copied, if that was not the newest one.
    """

    session_id: str
    message_id: str | None = None
    seq: int | None = None


class Session(Value):
    """One durable conversation."""

    id: str
    slug: str
    project_id: str
    workspace_id: str | None = None
    label: Private[str | None] = None
    """Only hosts that declare this label run the session (core/labels.py)."""
    directory: str
    path: str | None = None
    parent_id: str | None = None
    origin: Private[Origin | None] = None
    summary: Summary | None = None
    cost: int | float
    tokens: Tokens
    share: Share | None = None
    title: str
    agent: str | None = None
    model: SessionModel | None = None
    version: str
    metadata: JsonObject | None = None
    permission: tuple[Rule, ...] | None = None
    revert: Revert | None = None
    time: SessionTime
    extra: Private[JsonObject | None] = msgspec.field(default=None, name="$extra")
    """Unknown fields of imported data, which an export restores (core/extra.py)."""
