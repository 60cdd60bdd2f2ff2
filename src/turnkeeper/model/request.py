"""ModelRequest: what is asked of a model, before a provider's wire protocol gives it its final form."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.value import Json, JsonObject, Value


class Text(Value, tag_field="type", tag="text"):
    """Words. ``metadata`` is the provider's own, given back to the same model only."""

    text: str
    metadata: JsonObject | None = None


class Media(Value, tag_field="type", tag="media"):
    """An image, a PDF, sound: base64 in ``data``, or an address the provider fetches itself."""

    mime: str
    data: str | None = None
    url: str | None = None
    filename: str | None = None


class Reasoning(Value, tag_field="type", tag="reasoning"):
    """What the model thought, with signatures or encrypted content in ``metadata``."""

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
    """What came of a call: text and media in order; ``raw`` is a provider's own result, given back as it was."""

    call_id: str
    name: str
    output: tuple[Text | Media, ...]
    is_error: bool = False
    executed: bool = False
    raw: Json = None
    metadata: JsonObject | None = None


class UserTurn(Value, tag_field="role", tag="user"):
    """What the user said."""

    content: tuple[Text | Media, ...]


class AssistantTurn(Value, tag_field="role", tag="assistant"):
    """What the model said. Results stand here only for tools that the provider ran itself."""

    content: tuple[Text | Reasoning | Call | Result, ...]


class ToolTurn(Value, tag_field="role", tag="tool"):
    """The results of all calls of the assistant turn before it, in the order of the calls."""

    results: tuple[Result, ...]


class SystemTurn(Value, tag_field="role", tag="system"):
    """A Mid-Conversation System Message at its chronological place."""

    text: str


ModelMessage: TypeAlias = UserTurn | AssistantTurn | ToolTurn | SystemTurn


class ToolDefinition(Value):
    """A tool as the model is told of it."""

    name: str
    description: str
    schema: JsonObject


class ModelRequest(Value):
    """One request. Equal requests give equal bytes: no clock, no random id, no order by chance."""

    model: ModelInfo
    system: tuple[str, ...]
    messages: Sequence[ModelMessage]
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: Literal["auto", "none", "required"] = "auto"
    output_max: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    session_id: str = ""
    """Given to providers that route by it, so that requests of one session meet the same cache."""
    parent_session_id: str | None = None
    options: JsonObject = {}
    headers: dict[str, str] = {}
