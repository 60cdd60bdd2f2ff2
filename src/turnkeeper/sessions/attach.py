"""Attach a file of a prompt: the model gets its content as the result of a call of the read tool.

| URL | Stored parts |
|---|---|
| a resource of a server | a notice, its texts, its images and documents; a notice alone if it cannot be read |
| ``data:`` with text | the call, the text, the part |
| ``data:`` with an image | the image, within the limits |
| ``file:`` of text or of a directory | the call, its output, the part (or the image that the tool found) |
| ``file:`` of another type | the call, the part with the content |
| any other URL, which is not fetched | the unchanged part, and a notice if its type is text |

A file that cannot be read becomes a notice for the model, and the prompt is admitted. An image that no model accepts is
refused, and so is a path instead of a URL.
"""

import os
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from anyio import to_thread

from turnkeeper.core.limits import IMAGE_READ_MAX, MEDIA_BYTES_MAX
from turnkeeper.core.mcp import resource_pieces
from turnkeeper.model.parts import FilePart, Part, TextPart
from turnkeeper.model.parts.file import ResourceSource, SymbolSource
from turnkeeper.model.prompt import FileInput
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import JsonObject, encode
from turnkeeper.text.attachment_url import DataUrl, FileUrl, is_textual, read_data_url, read_file_url
from turnkeeper.text.surrogates import clean
from turnkeeper.tools.read import READ, ReadArguments
from turnkeeper.tools.reads import SessionReads
from turnkeeper.tools.services import ToolServices
from turnkeeper.tools.tool import ToolContext, ToolFailure, ToolOutput
from turnkeeper.workspace import file_kind, files, images
from turnkeeper.workspace.mcp_connection import McpFailure
from turnkeeper.workspace.project import ProjectPlace
from turnkeeper.workspace.symbols import FileSymbols, no_symbols

DIRECTORY: Final = "application/x-directory"
TEXT: Final = "text/plain"
ADDRESS_SHOWN_MAX: Final = 200
UNNAMED: Final = ""
"""The id of a part until ``resolve`` gives it one."""


class Attaching(msgspec.Struct, frozen=True):
    """Attaches files to a message. ``met`` is called with each file that was read."""

    session_id: str
    message_id: str
    place: ProjectPlace
    limits: images.ImageLimits = images.LIMITS
    pillow: Callable[[], images.Encodings | None] = images.pillow
    met: Callable[[Path], None] = lambda _: None
    reads: SessionReads = msgspec.field(default_factory=SessionReads)
    """Told of what the model is shown, so that it may change it without reading it again."""
    resource: Callable[[str, str], Awaitable[JsonObject]] | None = None
    """Reads a resource of an MCP server, by the name of the server and the address. Raises McpFailure."""
    symbols: FileSymbols = no_symbols
    """Where the symbols of a file are: a URL with one line means the symbol that begins there, if there is one."""

    async def attach(self, part: FileInput) -> list[Part]:
        """The stored parts of a file. Raises Invalid for a path, and for an image that no model accepts."""
        scheme, colon, _ = part.url.partition(":")
        scheme = scheme.lower()
        if not colon:
            raise Invalid(f"{part.url!r:.200} is no address of a file; write {self._address(part)!r:.400}")
        if isinstance(part.source, ResourceSource):
            return await self._from_server(part, part.source)
        if scheme == "file":
            return await self._from_disk(part)
        if scheme == "data" and is_textual(part.mime):
            return self._from_text(part)
        if scheme == "data" and part.mime.lower().startswith("image/"):
            return [await self._image(part, _content(part), _name(part))]
        if part.mime == DIRECTORY or is_textual(part.mime):  # The model gets no file of these types, only texts.
            shown = f"{part.url[:ADDRESS_SHOWN_MAX]} was attached, and its content is not here: only file: and data:"
            mime = DIRECTORY if part.mime == DIRECTORY else TEXT
            return [self.said(f"{shown} addresses are read."), self._kept(part, mime=mime)]
        return [self._kept(part)]

    def _address(self, part: FileInput) -> str:
        """The URL that was probably meant by a path."""
        return Path(os.path.normpath(self.place.directory / part.url.replace("\0", ""))).as_uri()

    def said(self, text: str) -> TextPart:
        """A synthetic text for the model."""
        return TextPart(
            id=UNNAMED, session_id=self.session_id, message_id=self.message_id, text=clean(text), synthetic=True
        )

    def _called(self, arguments: ReadArguments) -> TextPart:
        spelt = arguments.but(file_path=clean(arguments.file_path))
        return self.said(f"The read tool was called for the user with this input: {encode(spelt).decode()}")

    def _kept(self, part: FileInput, **changes: str | None) -> FilePart:
        stored = FilePart(
            id=part.id or UNNAMED,
            session_id=self.session_id,
            message_id=self.message_id,
            mime=part.mime,
            filename=part.filename,
            url=part.url,
            source=part.source,
        )
        return stored.but(**changes)

    def _from_text(self, part: FileInput) -> list[Part]:
        address = read_data_url(part.url)
        try:
            said = self.said(address.text() if address is not None else "")
        except ValueError as error:
            said = self.said(f"The attached text cannot be read: {error}.")
        return [self._called(ReadArguments(file_path=_name(part))), said, self._kept(part, mime=TEXT)]

    async def _from_server(self, part: FileInput, source: ResourceSource) -> list[Part]:
        server, uri = source.client_name, source.uri
        try:
            if self.resource is None:
                raise McpFailure(f"no server named {server!r} is connected")
            result = await self.resource(server, uri)
        except McpFailure as failure:
            return [self.said(f"{uri} cannot be read: {failure}"), self._kept(part)]
        found: list[Part] = [self.said(f"The resource {uri} of the MCP server {server} was read for the user:")]
        for piece in resource_pieces(result, part.mime, part.filename):
            found.append(self.said(piece.text))
            if piece.file is not None:
                own = part.but(mime=piece.file.mime, url=piece.file.url, filename=piece.file.filename)
                try:
                    found.append(await self._media(own))
                except Invalid as refusal:  # The user cannot help it.
                    found[-1] = self.said(f"[{piece.file.filename} is left out: {refusal}]")
        return found

    async def _from_disk(self, part: FileInput) -> list[Part]:
        address = read_file_url(part.url)
        if address is None or any(b"\0" in path for path in address.paths):
            return [self.said(f"{part.url} cannot be read: it names no file of this machine.")]
        path, is_directory = await to_thread.run_sync(_found, address, self.place.directory)
        if is_directory or part.mime == DIRECTORY or is_textual(part.mime):
            arguments = _arguments(path, part, await self._whole_symbol(path, part, address))
            return await self._read(part, arguments, DIRECTORY if is_directory else TEXT)
        called = self._called(ReadArguments(file_path=str(path)))
        try:
            mime, content = await to_thread.run_sync(_media, path, part.mime)
        except ToolFailure as failure:
            return [called, self.said(f"The read tool failed: {failure}")]
        self.met(path)
        if mime.startswith("image/"):
            return [called, await self._image(part, content, part.filename or path.name)]
        filename = part.filename or clean(path.name)
        return [called, self._kept(part, mime=mime, url=_data_url(mime, content), filename=filename)]

    async def _whole_symbol(self, path: Path, part: FileInput, address: FileUrl) -> FileUrl:
        """The URL with all lines of the symbol that begins at its only line, as clients name symbols."""
        if not address.first or address.first != address.last:
            return address
        if address.is_exact or isinstance(part.source, SymbolSource):
            return address
        known = await self.symbols(path)
        return address._replace(last=next((one.last for one in known if one.first == address.first), address.last))

    async def _read(self, part: FileInput, arguments: ReadArguments, mime: str) -> list[Part]:
        """Call the read tool without a permission request, because the user named the file."""
        called = self._called(arguments)
        try:
            output = await READ.run(arguments, self._context())
        except ToolFailure as failure:
            return [called, self.said(f"The read tool failed: {failure}")]
        behind = await self._behind(part, output)
        return [called, self.said(output.output), *(behind or [self._kept(part, mime=mime)])]

    async def _behind(self, part: FileInput, output: ToolOutput) -> list[Part]:
        """The images and documents that the tool found in a file that was declared as text."""
        found: list[Part] = []
        for attachment in output.attachments:
            own = part.but(mime=attachment.mime, url=attachment.url, filename=part.filename or attachment.filename)
            found.append(await self._media(own))
        return found

    async def _media(self, part: FileInput) -> FilePart:
        """The part of an image or a document in a ``data:`` URL."""
        return (
            await self._image(part, _content(part), _name(part)) if part.mime.startswith("image/") else self._kept(part)
        )

    async def _image(self, part: FileInput, content: bytes, name: str) -> FilePart:
        picture = await to_thread.run_sync(lambda: images.normalise(content, clean(name), self.pillow(), self.limits))
        return self._kept(part, mime=picture.mime, url=_data_url(*picture), filename=clean(name))

    def _context(self) -> ToolContext:
        return ToolContext(
            directory=self.place.directory,
            worktree=self.place.worktree,
            session_id=self.session_id,
            message_id=self.message_id,
            call_id="",
            ask=_allow,
            progress=_ignore,
            todos=_no_todos,
            set_todos=_keep_todos,
            discovered=self.met,
            services=ToolServices(reads=self.reads),
        )


def _found(address: FileUrl, directory: Path) -> tuple[Path, bool]:
    """The path of a URL, and whether it is a directory."""
    paths = [directory / os.fsdecode(path) for path in address.paths]
    path = next((path for path in paths if os.path.lexists(path)), paths[-1])
    return path, os.path.isdir(path)


def _arguments(path: Path, part: FileInput, address: FileUrl) -> ReadArguments:
    """The lines to read: those of the symbol, or else those in the URL."""
    first, last = address.first, address.last
    if isinstance(part.source, SymbolSource):
        # Language servers count from 0.
        first, last = part.source.range.start.line + 1, part.source.range.end.line + 1
    begin = max(first or 1, 1)
    limit = max(last - begin + 1, 1) if last is not None else None
    return ReadArguments(file_path=str(path), offset=begin if first is not None else None, limit=limit)


def _media(path: Path, mime: str) -> tuple[str, bytes]:
    """The media type of a file, by its first bytes if these are known, and its content.

    Raises ToolFailure if it cannot be read, and Invalid for an image that is too large.
    """
    is_image = mime.lower().startswith("image/")
    try:
        is_too_large = is_image and path.stat().st_size > IMAGE_READ_MAX
        content = b"" if is_too_large else files.read_bytes(path, IMAGE_READ_MAX if is_image else MEDIA_BYTES_MAX)
    except Invalid as refusal:
        raise ToolFailure(f"{refusal}.") from refusal
    except OSError as error:
        raise ToolFailure(f"{str(path)!r}: {error.strerror or error}.") from error
    if is_too_large:
        raise Invalid(f"{path.name} is larger than {IMAGE_READ_MAX} bytes; send a smaller image")
    return file_kind.media_type(content[: file_kind.SNIFFED_BYTES]) or mime.lower(), content


def _content(part: FileInput) -> bytes:
    """The bytes of an image in a ``data:`` URL. Raises Invalid if there are none."""
    address: DataUrl | None = read_data_url(part.url)
    try:
        content = address.content() if address is not None else b""
    except ValueError as error:
        raise Invalid(f"the data of {_name(part)} cannot be decoded ({error}); send it as base64") from error
    if not content:
        raise Invalid(f"{_name(part)} is empty; send an image")
    return content


def _data_url(mime: str, content: bytes) -> str:
    return f"data:{mime};base64,{b64encode(content).decode()}"


def _name(part: FileInput) -> str:
    return part.filename or "the attached file"


async def _allow(permission: str, patterns: Sequence[str], *, always: Sequence[str], metadata: JsonObject) -> None:
    """Allow the call, because the user named the file."""


async def _ignore(*, title: str | None = None, metadata: JsonObject | None = None) -> None:
    """Ignore progress."""


async def _no_todos() -> tuple[Todo, ...]:
    return ()


async def _keep_todos(todos: tuple[Todo, ...]) -> None:
    raise AssertionError("reading sets no todos")
