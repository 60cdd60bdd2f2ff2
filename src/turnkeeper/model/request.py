"""ModelRequest: a request to a model, independent of the wire protocol."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.value import Json, JsonObject, Value


class Text(Value, tag_field="type", tag="text"):
    """Text. ``metadata`` of the provider is sent back to the same model only."""

    text: str
    metadata: JsonObject | None = None


class Media(Value, tag_field="type", tag="media"):
    """An image, a PDF or audio: base64 in ``data``, or a URL that the provider fetches."""

    mime: str
    data: str | None = None
    url: str | None = None
    filename: str | None = None


class Reasoning(Value, tag_field="type", tag="reasoning"):
    """The model's reasoning, with signatures or encrypted content in ``metadata``."""

    text: str
    metadata: JsonObject | None = None


class Call(Value, tag_field="type", tag="call"):
    """A tool call the model made."""

    id: str
    name: str
    input: JsonObject
    executed: bool = False
    metadata: JsonObject | None = None


class Result(Value, tag_field="type", tag="result"):
    """The result of a call: text and media in order; ``raw`` is the result of a hosted tool, sent back unchanged."""

    call_id: str
    name: str
    output: tuple[Text | Media, ...]
    is_error: bool = False
    executed: bool = False
    raw: Json = None
    metadata: JsonObject | None = None


class UserTurn(Value, tag_field="role", tag="user"):
    """A message of the user."""

    content: tuple[Text | Media, ...]


class AssistantTurn(Value, tag_field="role", tag="assistant"):
    """A message of the model. Its results are those of hosted tools only."""

    content: tuple[Text | Reasoning | Call | Result, ...]


class ToolTurn(Value, tag_field="role", tag="tool"):
    """The results of all calls of the previous assistant turn, in the order of the calls."""

    results: tuple[Result, ...]


class SystemTurn(Value, tag_field="role", tag="system"):
    """A Mid-Conversation System Message at its place in the history."""

    text: str


ModelMessage: TypeAlias = UserTurn | AssistantTurn | ToolTurn | SystemTurn


class ToolDefinition(Value):
    """The name, description and schema of a tool in a request."""

    name: str
    description: str
    schema: JsonObject


class ModelRequest(Value):
    """One request. Equal requests give equal bytes: without times, random ids or unstable order."""

    model: ModelInfo
    system: tuple[str, ...]
    messages: Sequence[ModelMessage]
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: Literal["auto", "none", "required"] = "auto"
    output_max: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    session_id: str = ""
    """Sent to providers that route by it, so that requests of one session use the same cache."""
    parent_session_id: str | None = None
    options: JsonObject = {}
    headers: dict[str, str] = {}
