"""Prompt: user input, as clients send it."""

from collections.abc import Mapping
from typing import TypeAlias

from turnkeeper.model.event import Delivery
from turnkeeper.model.message import ModelChoice, OutputFormat
from turnkeeper.model.parts.base import Mention, Span
from turnkeeper.model.parts.file import FilePartSource
from turnkeeper.model.value import JsonObject, Value


class TextInput(Value, tag_field="type", tag="text"):
    """Text. With ``mentions``, the files, folders and agents that it names after ``@`` are parts of the prompt, too."""

    id: str | None = None
    text: str
    synthetic: bool | None = None
    ignored: bool | None = None
    time: Span | None = None
    metadata: JsonObject | None = None
    mentions: bool = False


class FileInput(Value, tag_field="type", tag="file"):
    """A file by its URL: ``file:`` (with ``?start=&end=`` for lines), ``data:`` or ``http(s):``.

    Equal lines mean the symbol that begins there, if there is one; with ``&exact=1`` the line.
    Text behind ``http(s):`` is not fetched, and a note tells the model. A path that is not a URL is refused.
    """

    id: str | None = None
    mime: str
    filename: str | None = None
    url: str
    source: FilePartSource | None = None


class AgentInput(Value, tag_field="type", tag="agent"):
    """An agent that the user mentions; refused if it does not exist."""

    id: str | None = None
    name: str
    source: Mention | None = None


class SubtaskInput(Value, tag_field="type", tag="subtask"):
    """A task for a Child Session, which is run before the model is asked; refused if its agent does not exist."""

    id: str | None = None
    prompt: str
    description: str
    agent: str
    model: ModelChoice | None = None
    command: str | None = None


PartInput: TypeAlias = TextInput | FileInput | AgentInput | SubtaskInput


class Prompt(Value):
    """One prompt. With a ``message_id`` of the caller, a repeated prompt is admitted once."""

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
    """The acknowledgement of an admitted prompt; ``seq`` is the seq of its admission."""

    message_id: str
    session_id: str
    seq: int
    delivery: Delivery
