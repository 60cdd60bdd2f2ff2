"""Message: one message of a session's history, from the user, the assistant or the system."""

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from turnkeeper.model.failure import Failure
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import NO_VARIANT, FileDiff, SessionModel, Tokens
from turnkeeper.model.value import Json, JsonObject, Private, Value


class MessageTime(Value):
    """When a message was created."""

    created: int


class AssistantTime(Value):
    """When a turn began and ended."""

    created: int
    completed: int | None = None


class ModelChoice(Value):
    """A model by its provider and id. ``str`` gives ``provider/model``, which ``parse`` reads."""

    provider_id: str
    model_id: str
    variant: str | None = None

    @classmethod
    def parse(cls, name: str) -> "ModelChoice":
        """The model of ``provider/model``, which need not exist. Raises Invalid for a text of another form."""
        provider_id, _, model_id = name.partition("/") if isinstance(name, str) else ("", "", "")
        if not provider_id or not model_id:
            raise Invalid(f"{name!r:.80} names no model; write PROVIDER/MODEL, as `turnkeeper models` lists them")
        return cls(provider_id=provider_id, model_id=model_id)

    def __str__(self) -> str:
        return f"{self.provider_id}/{self.model_id}"


ModelName: TypeAlias = str | ModelChoice | SessionModel
"""How callers name a model: ``provider/model``, or a value."""


def model_choice(given: ModelName) -> ModelChoice:
    """The model that a caller names. Raises Invalid for anything else than a name."""
    match given:
        case ModelChoice():
            return given
        case SessionModel(id=id, provider_id=provider_id, variant=variant):
            return ModelChoice(provider_id=provider_id, model_id=id, variant=variant if variant != NO_VARIANT else None)
        case _:
            return ModelChoice.parse(given)


def session_model(given: ModelName | None) -> SessionModel | None:
    """The model that a caller names for a session. A dictionary is returned as it is: the store reads it."""
    if given is not None and not isinstance(given, SessionModel | Mapping):
        named = model_choice(given)
        return SessionModel(id=named.model_id, provider_id=named.provider_id, variant=named.variant)
    return given


UNKNOWN_MODEL: Final = "unknown"
"""Provider and model of an unanswered imported prompt, if the old data does not name them."""


class TextFormat(Value, tag_field="type", tag="text"):
    """The answer is text."""


class JsonSchemaFormat(Value, tag_field="type", tag="json_schema"):
    """The answer is JSON that fits a schema."""

    schema: JsonObject
    retry_count: int = 2


OutputFormat: TypeAlias = TextFormat | JsonSchemaFormat


class MessageSummary(Value):
    """The result of a prompt: a title and the diffs of its turns."""

    title: str | None = None
    body: str | None = None
    diffs: tuple[FileDiff, ...]


class TurnPath(Value):
    """The directories of a turn."""

    cwd: str
    root: str


class ContextUpdate(Value):
    """The update text of one Context Component, as it is sent to the model. ``gone``: it announces a removal."""

    key: str
    text: str
    gone: bool = False


class BaseMessage(Value):
    """The fields of every message. ``seq`` is the seq of the event that added it; 0 until it is recorded."""

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
    """One provider turn: a request to a model and its answer. ``mode`` repeats ``agent`` for old clients."""

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
    """A Mid-Conversation System Message with changed Context Components. Clients do not show it."""

    time: MessageTime
    updates: tuple[ContextUpdate, ...]


Message: TypeAlias = UserMessage | AssistantMessage | SystemMessage
