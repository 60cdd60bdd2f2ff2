"""Prompts of the second generation: their shape, and how they are admitted."""

from mimetypes import guess_type
from typing import Annotated
from urllib.parse import unquote, urlsplit

import msgspec

from turnkeeper.api import Turnkeeper
from turnkeeper.model import event as e
from turnkeeper.model.event import Delivery
from turnkeeper.model.parts.base import Mention
from turnkeeper.model.parts.file import FileSource
from turnkeeper.model.prompt import AgentInput, FileInput, PartInput, Prompt, TextInput
from turnkeeper.model.refusal import Conflict, Elsewhere
from turnkeeper.model.value import Value
from turnkeeper.server.v2 import shape
from turnkeeper.server.v2.shape import AdmittedPrompt, AgentAttachment, FileAttachment, PromptSource, PromptText, number
from turnkeeper.text.attachment_url import read_data_url

MessageId = Annotated[str, msgspec.Meta(pattern="^msg_")]


class FileGiven(Value):
    """An attached file, by its URI."""

    uri: str
    name: str | None = None
    description: str | None = None
    source: PromptSource | None = None


class PromptGiven(Value):
    """The content of a prompt."""

    text: str
    files: tuple[FileGiven, ...] | None = None
    agents: tuple[AgentAttachment, ...] | None = None


class PromptBody(Value):
    """A prompt. With an ``id`` of the caller, sending it again is harmless."""

    id: MessageId | None = None
    prompt: PromptGiven
    delivery: Delivery = "steer"
    resume: bool = True


class Taken(Conflict):
    """The id belongs to a different prompt or message."""

    def __init__(self, message: str, resource: str) -> None:
        super().__init__(message)
        self.resource = resource


async def prompt(turnkeeper: Turnkeeper, session_id: str, given: PromptBody) -> AdmittedPrompt:
    """Admit a prompt, and run the session unless ``resume`` is false."""
    parts: list[PartInput] = [TextInput(text=given.prompt.text)]
    parts += [_file(one) for one in given.prompt.files or ()]
    parts += [AgentInput(name=one.name, source=_mention(one.source)) for one in given.prompt.agents or ()]
    wanted = Prompt(message_id=given.id, parts=tuple(parts), delivery=given.delivery)
    try:
        receipt = await turnkeeper.prompt(session_id, wanted, resume=given.resume)
    except Elsewhere:
        raise
    except Conflict as error:
        raise Taken(str(error), given.id or "") from error
    [recorded] = await turnkeeper.store.journal.read(session_id, after=receipt.seq - 1, limit=1)
    assert isinstance(recorded.event, e.PromptAdmitted), "a receipt names its admission"
    return AdmittedPrompt(
        admitted_seq=number(receipt.seq),
        id=receipt.message_id,
        session_id=session_id,
        prompt=_shown(given.prompt),
        delivery=receipt.delivery,
        time_created=recorded.event.message.time.created,
    )


def mime_of(uri: str, name: str | None) -> str:
    """The media type of a file, guessed from its URI or name."""
    if (address := read_data_url(uri)) is not None:
        return address.mime
    return guess_type(name or unquote(urlsplit(uri).path))[0] or "text/plain"


def _shown(given: PromptGiven) -> PromptText:
    files = tuple(
        FileAttachment(
            uri=one.uri, mime=mime_of(one.uri, one.name), name=one.name, description=one.description, source=one.source
        )
        for one in given.files or ()
    )
    return shape.PromptText(text=given.text, files=files or None, agents=given.agents or None)


def _file(one: FileGiven) -> FileInput:
    mention = _mention(one.source)
    path = unquote(urlsplit(one.uri).path) if one.uri.startswith("file:") else one.name or one.uri
    source = FileSource(path=path, text=mention) if mention is not None else None
    return FileInput(mime=mime_of(one.uri, one.name), filename=one.name, url=one.uri, source=source)


def _mention(source: PromptSource | None) -> Mention | None:
    return Mention(value=source.text, start=source.start, end=source.end) if source is not None else None
