"""FilePart: an attached file, image or resource, and where the prompt mentions it."""

from typing import TypeAlias

from turnkeeper.model.parts.base import BasePart, Mention
from turnkeeper.model.value import Value


class Position(Value):
    """A position in a text document, counted from 0 as in the language server protocol."""

    line: int
    character: int


class Range(Value):
    """A range of a text document."""

    start: Position
    end: Position


class FileSource(Value, tag_field="type", tag="file"):
    """The prompt mentions the file by its path."""

    path: str
    text: Mention


class SymbolSource(Value, tag_field="type", tag="symbol"):
    """The prompt mentions the file by a symbol in it, as a language server reports it."""

    path: str
    range: Range
    name: str
    kind: int
    text: Mention


class ResourceSource(Value, tag_field="type", tag="resource"):
    """The content is a resource of an MCP server."""

    client_name: str
    uri: str
    text: Mention


FilePartSource: TypeAlias = FileSource | SymbolSource | ResourceSource


class FilePart(BasePart, tag_field="type", tag="file"):
    """An attached file. ``url`` is a ``data:``, ``file:`` or ``http(s):`` URL."""

    mime: str
    filename: str | None = None
    url: str
    source: FilePartSource | None = None
