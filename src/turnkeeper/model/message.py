"""Message: one entry of a session's history, said by the user, the assistant or the system."""

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from turnkeeper.model.failure import Failure
from turnkeeper.model.session import FileDiff, Tokens
from turnkeeper.model.value import Json, JsonObject, Private, Value


class MessageTime(Value):
    """When a message came to be."""

    created: int


class AssistantTime(Value):
    """When a turn began and when it was over."""

    created: int
    completed: int | None = None


class ModelChoice(Value):
    """The model a prompt asks for."""

    provider_id: str
    model_id: str
    variant: str | None = None


UNKNOWN_MODEL: Final = "unknown"
"""Provider and model of an imported prompt that nobody answered, in data too old to say."""


class TextFormat(Value, tag_field="type", tag="text"):
    """Answer in prose."""


class JsonSchemaFormat(Value, tag_field="type", tag="json_schema"):
    """Answer with JSON that fits a schema."""

    schema: JsonObject
    retry_count: int = 2


OutputFormat: TypeAlias = TextFormat | JsonSchemaFormat


class MessageSummary(Value):
    """What came of a prompt: a title for it and the diffs of its turns."""

    title: str | None = None
    body: str | None = None
    diffs: tuple[FileDiff, ...]


class TurnPath(Value):
    """Where a turn ran."""

    cwd: str
    root: str


class ContextUpdate(Value):
    """The newly effective state of one Context Component, in the exact words sent to the model.

    ``gone``: the words say that the component is no longer there.
    """

    key: str
    text: str
    gone: bool = False


class BaseMessage(Value):
    """What every message has. ``seq`` is the place of the event that made it; 0 until it is recorded."""

    id: str
    session_id: str
    seq: Private[int] = 0
    extra: Private[JsonObject | None] = msgspec.field(default=None, name="$extra")


class UserMessage(BaseMessage, tag_field="role", tag="user"):
    """A promoted prompt."""

    time: MessageTime
    agent: str
    model: ModelChoice
    format: OutputFormat | None = None
    summary: MessageSummary | None = None
    system: str | None = None
    tools: Mapping[str, bool] | None = None


class AssistantMessage(BaseMessage, tag_field="role", tag="assistant"):
    """One provider turn: a request to a model and what came of it. ``mode`` repeats ``agent`` for old clients."""

    time: AssistantTime
    error: Failure | None = None
    parent_id: str
    model_id: str
    provider_id: str
    variant: str | None = None
    mode: str
    agent: str
    path: TurnPath
    summary: bool | None = None
    cost: int | float
    tokens: Tokens
    structured: Json = None
    finish: str | None = None


class SystemMessage(BaseMessage, tag_field="role", tag="system"):
    """A Mid-Conversation System Message: news of changed Context Components. Hidden from transcripts."""

    time: MessageTime
    updates: tuple[ContextUpdate, ...]


Message: TypeAlias = UserMessage | AssistantMessage | SystemMessage
