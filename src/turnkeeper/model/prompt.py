"""Prompt: user input on its way in, as clients send it."""

from collections.abc import Mapping
from typing import TypeAlias

from turnkeeper.model.event import Delivery
from turnkeeper.model.message import ModelChoice, OutputFormat
from turnkeeper.model.parts.base import Mention, Span
from turnkeeper.model.parts.file import FilePartSource
from turnkeeper.model.value import JsonObject, Value


class TextInput(Value, tag_field="type", tag="text"):
    """Words."""

    id: str | None = None
    text: str
    synthetic: bool | None = None
    ignored: bool | None = None
    time: Span | None = None
    metadata: JsonObject | None = None


class FileInput(Value, tag_field="type", tag="file"):
    """A file by its address: ``file:`` (with ``?start=&end=`` for lines), ``data:`` or ``http(s):``.

    Text behind ``http(s):`` is not fetched; the model is told so. A path that is no address is refused.
    """

    id: str | None = None
    mime: str
    filename: str | None = None
    url: str
    source: FilePartSource | None = None


class AgentInput(Value, tag_field="type", tag="agent"):
    """An agent that the user named; refused if there is none of this name."""

    id: str | None = None
    name: str
    source: Mention | None = None


class SubtaskInput(Value, tag_field="type", tag="subtask"):
    """Work for a Child Session. Refused, as no subtasks are run yet; clients of opencode may send one."""

    id: str | None = None
    prompt: str
    description: str
    agent: str
    model: ModelChoice | None = None
    command: str | None = None


PartInput: TypeAlias = TextInput | FileInput | AgentInput | SubtaskInput


class Prompt(Value):
    """One prompt. With a ``message_id`` of the caller's, sending it again is harmless."""

    message_id: str | None = None
    parts: tuple[PartInput, ...]
    agent: str | None = None
    model: ModelChoice | None = None
    variant: str | None = None
    system: str | None = None
    tools: Mapping[str, bool] | None = None
    format: OutputFormat | None = None
    no_reply: bool = False
    delivery: Delivery = "steer"


class Receipt(Value):
    """That a prompt is safe: where it stands in the order of admission."""

    message_id: str
    session_id: str
    seq: int
    delivery: Delivery
